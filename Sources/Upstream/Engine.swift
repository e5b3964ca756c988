import Accounts
import EventLoop
import Interception
import Provisioning
import Rules
import Server
import Settings

/// Larder's engine in this process: a proxy without listeners, which one client asks over connections inside the process.
///
/// Its control thread starts the proxy, looks whether files with secrets and PAC files have changed, and ends the proxy. It lives until
/// `stop`, or until the engine is released.
final class Engine: Sendable {
    private let proxy: Proxy
    private let identity: Identity?
    private let inbox: Inbox
    private let control: EngineControlReference
    private let thread: OwnedThread
    /// What the operator of a Larder would be told at its start.
    let warnings: [String]

    init(_ settings: Client.EngineSettings) throws(ClientError) {
        let start = EngineStart()
        let thread: ThreadHandle
        do throws(EventLoopError) {
            thread = try startThread(name: "engine") { start.run(settings) }
        } catch { throw .cannotStart("\(error)") }
        self.thread = OwnedThread(thread)
        let parts = try start.wait()
        proxy = parts.proxy
        inbox = parts.inbox
        control = parts.control
        warnings = parts.warnings
        identity = settings.user.map { Identity(name: $0, scheme: .basic, scope: .connection) }
    }

    deinit { stop() }

    /// A connection with the proxy.
    ///
    /// - Returns: the client's end, and what the proxy says beside it. Nil if the engine has stopped, or if there are no descriptors.
    func connect(_ use: (consuming Descriptor, ProgramLink) -> Void) -> Bool {
        let link = ProgramLink(as: identity)
        guard let socket = proxy.connect(link) else { return false }
        use(socket, link)
        return true
    }

    /// Ends all requests and the threads. Does not wait for them.
    func stop() { inbox.post { [control] in control.value.stop() } }

    /// Waits until `stop` has been carried out.
    func join() { thread.join() }
}

/// Where the control thread reports whether the proxy has started.
private final class EngineStart: Sendable {
    struct Parts: Sendable {
        let proxy: Proxy
        let inbox: Inbox
        let control: EngineControlReference
        let warnings: [String]
    }
    private let outcome = Locked<Result<Parts, ClientError>?>(nil)
    private let signal = CountingSemaphore()

    func run(_ settings: Client.EngineSettings) {
        do throws(ClientError) {
            let control = try EngineControl(settings)
            outcome.withLock {
                $0 = .success(
                    Parts(
                        proxy: control.proxy, inbox: control.loop.inbox, control: EngineControlReference(control),
                        warnings: control.warnings))
            }
            signal.signal()
            control.run()
        } catch {
            outcome.withLock { $0 = .failure(error) }
            signal.signal()
        }
    }

    func wait() throws(ClientError) -> Parts {
        signal.wait()
        guard let outcome = outcome.withLock({ $0.take() }) else { preconditionFailure("the thread has reported") }
        return try outcome.get()
    }
}

/// The control thread of an engine. Everything here belongs to it.
private final class EngineControl {
    let loop: EventLoop
    let proxy: Proxy
    let warnings: [String]
    private let pacFiles: PACFiles

    init(_ settings: Client.EngineSettings) throws(ClientError) {
        let reading = settings.read()
        guard let configuration = reading.configuration else {
            throw .badConfiguration(reading.errors.map(\.description))
        }
        if settings.logs { Diagnostics.configure(configuration.log) }
        pacFiles = PACFiles(evaluator: settings.pacEvaluator, fetch: fetchPAC)
        do {
            loop = try EventLoop()
            let started = try startProxy(reading, pacFiles)
            proxy = started.proxy
            warnings = (reading.warnings + started.warnings).map(\.description)
        } catch {
            pacFiles.close()
            if let fault = error as? ProvisioningFault {
                throw .badConfiguration([reading.problem(fault).description])
            }
            throw .cannotStart("\(error)")
        }
    }

    /// Runs until `stop`, and ends the proxy.
    func run() {
        let secrets = SecretWatch(on: loop) { [proxy] in proxy.snapshot }
        let files = PACWatch(pacFiles, on: loop)
        let lists = ListWatch(of: proxy, pacFiles, on: loop)
        secrets.start()
        files.start()
        lists.start()
        loop.run()
        lists.stop()
        files.stop()
        secrets.stop()
        proxy.stop()
        proxy.join()
        pacFiles.close()
    }

    func stop() { loop.stop() }
}

/// A reference for jobs in the control thread's own inbox. Such a job runs on that thread while the loop lives, or never.
@safe private struct EngineControlReference: @unchecked Sendable {
    private unowned(unsafe) let reference: EngineControl
    init(_ control: EngineControl) { unsafe reference = control }
    var value: EngineControl { unsafe reference }
}

extension Client.EngineSettings {
    /// Reads the configuration, and takes out of it what belongs to a process of its own.
    fileprivate func read() -> ConfigurationReading {
        var reading =
            switch configuration {
            case .defaults: readDefaultConfiguration()
            case .file(let path): readConfiguration(file: path)
            case .text(let text, let name): readConfiguration(text: Array(text.utf8), name: name)
            }
        // A disk is used only if the configuration asks for one.
        if reading.configuration?.cache.isDiskLeftOut == false { reading.chooseDisk() }
        guard var own = reading.configuration else { return reading }
        own.listen = []
        own.intercept = InterceptSettings()  // nobody asks for a tunnel, so the key of the authority is not needed
        // One client is one thread: more workers would wait for it.
        if own.workers == .auto { own.workers = .count(1) }
        if own.log.access == .stdout, !logs { own.log.access = .off }
        reading.configuration = own
        return reading
    }
}
