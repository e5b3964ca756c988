import Access
import Admin
import EventLoop
import Glibc
import Server
import Settings
import TLS

/// Wires the rooms and runs the proxy until it is told to stop.
///
/// This thread becomes the control thread: admin, signals, reload and the end are its business.
/// - Parameter reload: reads the configuration again, for SIGHUP.
func runServe(_ configuration: Configuration, reload: @escaping () -> ConfigurationReading, _ console: Console) -> Int32
{
    SignalWatcher.block([SIGTERM, SIGINT, SIGHUP])
    Diagnostics.setLevel(configuration.log.level)
    do {
        let proxy = try Proxy.start(try makeSnapshot(configuration))
        let loop = try EventLoop()
        let house = RunningHouse(proxy: proxy, version: larderVersion)
        let admin: AdminServer
        do {
            admin = try openAdmin(configuration.admin, house: house, loop: loop, console)
        } catch {
            proxy.stop()
            proxy.join()
            console.error("larder: \(error.message)")
            return ExitStatus.failed
        }
        proxy.shared.keepOut(admin.addresses)
        let control = Control(proxy: proxy, loop: loop, house: house, reload: reload, console: console)
        try control.watchSignals()
        console.print(readyLine(proxy))
        control.run()
        admin.close()
        return ExitStatus.done
    } catch Proxy.StartError.disk(let refusal) {
        console.error("larder: the disk tier can not be opened: \(text(of: refusal))")
        return ExitStatus.failed
    } catch {
        console.error("larder: \(error)")
        return ExitStatus.failed
    }
}

private func readyLine(_ proxy: Proxy) -> String {
    let places = proxy.addresses.map { "\($0)" }.joined(separator: ", ")
    return "larder \(larderVersion) serves on \(places)"
}

/// Why the configuration can not be put to work, though each of its values is right.
struct SnapshotFailure: Error, CustomStringConvertible {
    var description: String
}

/// Reads what the configuration names: users, certificates.
func makeSnapshot(_ configuration: Configuration) throws(SnapshotFailure) -> Snapshot {
    var users: HtpasswdFile?
    if let authentication = configuration.access.authentication { users = try readUsers(authentication.usersFile) }
    do throws(TLSContextError) {
        return try Snapshot(configuration: configuration, users: users)
    } catch {
        throw SnapshotFailure(description: "tls: \(error)")
    }
}

private func readUsers(_ path: String) throws(SnapshotFailure) -> HtpasswdFile {
    do throws(FileError) {
        let (file, errors) = HtpasswdFile.parse(try readFile(path))
        if let first = errors.first { throw FileError(path: "\(path):\(first)", code: 0) }
        return file
    } catch {
        throw SnapshotFailure(
            description: "access.authentication.basic.users: \(error.code == 0 ? error.path : error.text)")
    }
}

/// The control thread's part: signals in, orders to the proxy out.
private final class Control {
    private let proxy: Proxy
    private let loop: EventLoop
    private let house: RunningHouse
    private let reload: () -> ConfigurationReading
    private let console: Console
    private var drainTimer: Timer?
    private var pollTimer: Timer?

    init(
        proxy: Proxy, loop: EventLoop, house: RunningHouse, reload: @escaping () -> ConfigurationReading,
        console: Console
    ) {
        self.proxy = proxy
        self.loop = loop
        self.house = house
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
        house.startSampling(on: loop)
        loop.run()
        house.stopSampling()
        for timer in [drainTimer, pollTimer] { if let timer { loop.timers.cancel(timer) } }
        proxy.join()
    }

    private func arrived(_ signal: CInt) {
        if signal == SIGHUP { return reloadConfiguration() }
        guard drainTimer == nil else {
            // Asked twice: without patience.
            proxy.stop()
            return loop.stop()
        }
        drain()
    }

    /// No new connections; what is under way has its time, and ends with the last of it.
    private func drain() {
        Diagnostics.info("stopping: waiting for requests under way")
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

    /// The whole new configuration, or the old one and a reason (all or nothing).
    private func reloadConfiguration() {
        let reading = reload()
        for error in reading.errors { console.error("larder: \(error)") }
        guard let configuration = reading.configuration else {
            return console.error("larder: warning: the configuration stays as it was")
        }
        do throws(SnapshotFailure) {
            let snapshot = try makeSnapshot(configuration)
            for change in changesNeedingRestart(from: proxy.snapshot.configuration, to: configuration) {
                console.error("larder: warning: \(change) changed; that takes a restart")
            }
            proxy.adopt(snapshot)
            Diagnostics.setLevel(configuration.log.level)
            Diagnostics.info("the configuration of \(reading.name) is in force")
        } catch {
            console.error("larder: \(error); the configuration stays as it was")
        }
    }
}
