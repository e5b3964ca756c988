import Accounts
import Admin
import EventLoop
import Glibc
import Provisioning
import Routing
import Server
import Settings
import TLS
import Upstream

/// Starts the proxy and its admin server, and runs them until the process is told to stop.
///
/// This thread becomes the control thread: it serves the admin listeners, handles signals, reloads, and ends the process.
/// - Parameters:
///   - reading: a configuration without errors.
///   - reload: reads the configuration again, for SIGHUP.
func runServe(
    _ reading: ConfigurationReading, reload: @escaping () -> ConfigurationReading, _ console: Console
) -> Int32 {
    guard let configuration = reading.configuration else { preconditionFailure("serve runs with a configuration") }
    SignalWatcher.block([SIGTERM, SIGINT, SIGHUP])
    Diagnostics.configure(configuration.log)
    DescriptorLimit.raise()
    if configuration.hasSecrets { hideMemory(console) }
    // Before the first thread: both read and change the environment.
    let manager = ServiceManager()
    _ = InheritedSockets.all
    do {
        let pacFiles = PACFiles(fetch: fetchPAC)
        defer { pacFiles.close() }
        let start = try startProxy(reading, pacFiles)
        for warning in start.warnings { console.error("larder: warning: \(warning)") }
        let proxy = start.proxy
        let loop = try EventLoop()
        let administered = RunningProxy(proxy: proxy, version: larderVersion)
        let admin: AdminServer
        do {
            admin = try openAdmin(
                configuration.admin, proxy: administered, loop: loop, isFromFile: reading.file != nil, console)
        } catch {
            proxy.stop()
            proxy.join()
            console.error("larder: \(reading.problem(error.key, error.message, hint: error.hint))")
            return ExitStatus.failed
        }
        proxy.shared.setAdminAddresses(admin.addresses)
        proxy.shared.learning.open(learningDirectories(configuration)) { makeDirectories($0, mode: 0o700) }
        do { try administered.joinFleet() } catch {
            console.error("larder: warning: the fleet: \(error); this Larder stays alone")
        }
        let control = Control(
            proxy: proxy, loop: loop, administered: administered, zonesWithoutDisk: start.zonesWithoutDisk,
            pacFiles: pacFiles, reload: reload, manager: manager,
            console: console)
        try control.watchSignals()
        if let line = setupLine(proxy.snapshot, at: proxy.addresses) { console.print(line) }
        console.print(readyLine(proxy))
        control.sayReady()
        control.run()
        admin.close()
        // Everything is closed and on the disk. Freeing millions of stored responses takes up to a minute; the system takes their memory back at once.
        unsafe keptUntilExit = proxy
        return ExitStatus.done
    } catch let fault as ProvisioningFault {
        console.error("larder: \(reading.problem(fault))")
        return ExitStatus.failed
    } catch let error as Proxy.StartError {
        let fault = error.fault(configuration, isFromFile: reading.file != nil)
        console.error("larder: \(fault.map { "\(reading.problem($0))" } ?? "\(error)")")
        return ExitStatus.failed
    } catch {
        console.error("larder: \(error)")
        return ExitStatus.failed
    }
}

/// The proxy, which is not freed before the process ends. Set once, by the only thread that is left.
private nonisolated(unsafe) var keptUntilExit: Proxy?

/// Where journals of jobs are tried to be kept, in this order.
private func learningDirectories(_ configuration: Configuration) -> [String] {
    configuration.learn.directory.map { [$0] } ?? LearnSettings.directories(environment: environmentVariable)
}

private func readyLine(_ proxy: Proxy) -> String {
    let places = proxy.addresses.map { "\($0)" }.joined(separator: ", ")
    return "larder \(larderVersion) serves on \(places)"
}

extension Configuration {
    /// Others could act in Larder's name with what it keeps in memory.
    fileprivate var hasSecrets: Bool {
        intercept.isOn || access.authentication.isConfigured || listen.contains { $0.tls != nil }
            || !credentials.isEmpty
            || !cookieJars.isEmpty || fleet.redis != nil
            || origins.contains { $0.tls?.identity != nil }
    }
}

/// Keeps the authority's key, what clients log in with, the secrets of `credentials` and of `fleet`, and the cookies of `cookie_jars` from core dumps and from other processes of the same user.
private func hideMemory(_ console: Console) {
    guard let code = ProcessMemory.hide() else { return }
    console.error("larder: warning: secrets can get into a core dump: prctl(2) failed: \(systemErrorText(code))")
}

/// The work of the control thread: it receives signals and controls the proxy.
private final class Control {
    private let proxy: Proxy
    private let loop: EventLoop
    private let administered: RunningProxy
    private let zonesWithoutDisk: [String]
    private let pacFiles: PACFiles
    private let lists: ListWatch
    private let reload: () -> ConfigurationReading
    private let manager: ServiceManager
    private let console: Console
    private var watchdogTimer: Timer?
    /// A configuration that was read, and waits for the PAC files of its URLs.
    private var pending: (number: UInt64, configuration: Configuration, reading: ConfigurationReading)?
    private var reloadCount: UInt64 = 0
    private var drainTimer: Timer?
    private var pollTimer: Timer?

    init(
        proxy: Proxy, loop: EventLoop, administered: RunningProxy, zonesWithoutDisk: [String],
        pacFiles: PACFiles, reload: @escaping () -> ConfigurationReading, manager: ServiceManager,
        console: Console
    ) {
        self.manager = manager
        self.proxy = proxy
        self.loop = loop
        self.administered = administered
        self.zonesWithoutDisk = zonesWithoutDisk
        self.pacFiles = pacFiles
        lists = ListWatch(of: proxy, pacFiles, on: loop)
        self.reload = reload
        self.console = console
    }

    func watchSignals() throws(EventLoopError) {
        let control = Handle(self)
        try SignalWatcher.watch([SIGTERM, SIGINT, SIGHUP], inbox: loop.inbox) { signal in
            control.value?.arrived(signal)
        }
    }

    func run() {
        administered.startSampling(on: loop)
        let listeners = ListenerWatch(on: loop) {
            [proxy] in
            proxy.snapshot
        } changed: {
            [proxy] in
            proxy.noteListenersChanged()
        }
        listeners.start()
        let peers = proxy.shared.peerTerms.map { PeerWatch(on: loop, $0) }
        peers?.start()
        feedWatchdog()
        let secrets = SecretWatch(on: loop) { [proxy] in proxy.snapshot }
        secrets.start()
        let files = PACWatch(pacFiles, on: loop)
        files.start()
        let authentication = AuthenticationWatch(on: loop, of: { [proxy] in proxy.snapshot }, fetch: fetchKeySet) {
            [proxy] in proxy.adopt($0, for: $1)
        }
        authentication.start()
        lists.start()
        loop.run()
        peers?.stop()
        lists.stop()
        authentication.stop()
        files.stop()
        secrets.stop()
        listeners.stop()
        administered.stopSampling()
        for timer in [drainTimer, pollTimer, watchdogTimer] { if let timer { loop.timers.cancel(timer) } }
        proxy.join()
    }

    func sayReady() { manager.ready(String(readyLine(proxy).dropFirst("larder ".count))) }

    /// Twice as often as has to be. It says that this thread is alive, which reads signals and serves the admin listeners.
    private func feedWatchdog() {
        guard let interval = manager.watchdog else { return }
        manager.signOfLife()
        let timer = Timer { [unowned self] in feedWatchdog() }
        watchdogTimer = timer
        loop.timers.schedule(timer, after: interval / 2)
    }

    private func arrived(_ signal: CInt) {
        if signal == SIGHUP { return reloadConfiguration() }
        guard drainTimer == nil else {
            // This is the second signal: stop waiting.
            proxy.stop()
            return loop.stop()
        }
        drain()
    }

    /// Accepts no more connections. Ends when the running requests have ended, or after `timeouts.drain`.
    private func drain() {
        Diagnostics.info("stopping: waiting for running requests")
        manager.stopping()
        proxy.drain()
        let limit = Timer { [unowned self] in
            proxy.stop()
            loop.stop()
        }
        drainTimer = limit
        loop.timers.schedule(limit, after: proxy.snapshot.configuration.timeouts.drain)
        pollDrained()
    }

    private func pollDrained() {
        guard !proxy.isDrained else { return loop.stop() }
        let timer = Timer { [unowned self] in pollDrained() }
        pollTimer = timer
        loop.timers.schedule(timer, after: .milliseconds(100))
    }

    /// Reads the configuration again. It takes effect when the PAC files that it fetches have come, and the lists of its rules have been read.
    private func reloadConfiguration() {
        manager.reloading()
        var reading = reload()
        reading.chooseDisk(like: proxy.snapshot.configuration.cache)
        for error in reading.errors { console.error("larder: \(error)") }
        guard var configuration = reading.configuration else {
            sayReady()
            return console.error("larder: warning: the old configuration stays in force")
        }
        for zone in zonesWithoutDisk { configuration.cache = configuration.cache.withoutDisk(ofZone: zone) }
        reloadCount += 1
        pending = (reloadCount, configuration, reading)
        pacFiles.expedite()
        let (number, control, inbox) = (reloadCount, Handle(self), loop.inbox)
        pacFiles.prefetch(for: configuration) { answers in
            inbox.post { control.value?.readLists(number, answers) }
        }
    }

    private func readLists(_ number: UInt64, _ answers: [PACSource: PACDownload.Answer]) {
        // Another reload has begun since.
        guard let access = pending?.configuration.access, pending?.number == number else { return }
        lists.read(access) { [unowned self] in adopt(number, answers, $0) }
    }

    /// Puts the whole new configuration into effect, or keeps the old one and prints why.
    private func adopt(
        _ number: UInt64, _ answers: [PACSource: PACDownload.Answer], _ access: Result<ReadAccess, ProvisioningFault>
    ) {
        guard let (_, configuration, reading) = pending, pending?.number == number else { return }
        pending = nil
        defer { sayReady() }
        pacFiles.keep(answers)
        do throws(ProvisioningFault) {
            if configuration.hasSecrets { hideMemory(console) }
            let earlier = proxy.snapshot
            let snapshot = try makeSnapshot(configuration, pacFiles, access: try access.get(), after: earlier)
            for change in changesNeedingRestart(from: earlier.configuration, to: configuration) {
                console.error("larder: warning: \(change) changed, which takes effect at the next start")
            }
            proxy.adopt(snapshot)
            lists.retire(earlier)
            Diagnostics.configure(configuration.log)
            Diagnostics.info("the configuration of \(reading.name) is in force")
        } catch {
            console.error("larder: \(reading.problem(error)); the old configuration stays in force")
        }
        pacFiles.forget(besides: proxy.snapshot.scripts)
    }
}
