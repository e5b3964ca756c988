package import Accounts
import Learning
package import Authentication
import CLarder
import Caching
package import EventLoop
import Glibc
package import LogIns
package import Message
import Settings
package import Storage
import Synchronization
import TLS

/// The running proxy: its workers, what they share, and the calls that control them.
///
/// The control thread makes and controls it. Everything for a worker goes through the worker's inbox.
package final class Proxy: Sendable {
    package let shared: Shared
    package let startedAt: WallTime
    private let started = MonotonicTime.read()
    /// For how long it has run.
    package var uptime: Duration { MonotonicTime.read().duration(since: started) }
    private let state: Locked<State>

    private struct State {
        var snapshot: Snapshot
        /// The zones of `snapshot`.
        var zones: [Zone]
        var workers: [WorkerHandle] = []
        var addresses: [SocketAddress] = []
        var isDraining = false
        /// Connections that `connect` has made.
        var programLinks = 0
    }

    /// The parts of a worker that other threads may use.
    struct WorkerHandle: Sendable {
        let number: Int
        let inbox: Inbox
        let counters: Counters
        let thread: OwnedThread
        let worker: WorkerReference
    }

    package enum StartError: Error, CustomStringConvertible {
        /// - Parameter index: the entry of `Configuration.listen`. Nil: `fleet.node.peer`.
        case listen(index: Int?, address: String, SocketError)
        /// The service manager has passed no such socket, or none that listens.
        case notInherited(index: Int?, address: String)
        /// A socket that the service manager has passed lets other machines in, and the configuration names neither clients nor users.
        case unguarded(index: Int?, address: String)
        case worker(String)
        case log(path: String, errno: CInt)
        /// The access log would lie in the directory of a disk that is no store yet, and that would not become one then.
        case logInDisk(path: String, zone: String)
        case disk(BackStoreRefusal)

        package var description: String {
            switch self {
            case .listen(_, let address, let reason): "cannot listen on \(address): \(reason)"
            case .notInherited(_, let address):
                "cannot listen on \(address): the service manager has passed no such socket that listens (LISTEN_FDS)"
            case .unguarded(_, let address):
                "\(address): a listener beyond loopback needs access.clients or access.authentication"
            case .worker(let reason): "cannot start a worker: \(reason)"
            case .disk(let refusal): "the disk tier: \(refusal)"
            case .log(let path, let code): "cannot open the access log \(path): \(systemErrorText(code))"
            case .logInDisk(let path, let zone): "\(path) lies in the directory of the disk of zone \(zone)"
            }
        }
    }

    /// Where a purge frees what it removed.
    package var responseHomes: ResponseHomes {
        ResponseHomes(state.withLock { $0.workers.map(\.inbox) })
    }

    private init(shared: Shared, snapshot: Snapshot) {
        self.shared = shared
        startedAt = WallTime(secondsSinceEpoch: Int64(time(nil)))
        state = Locked(State(snapshot: snapshot, zones: shared.zones.current))
    }

    // MARK: start

    /// Starts the proxy. Returns when every worker accepts connections.
    ///
    /// - Parameter fleet: nil if this Larder is alone. It takes part from `joinFleet` on.
    package static func start(_ snapshot: Snapshot, fleet: FleetTerms? = nil) throws -> Proxy {
        let configuration = snapshot.configuration
        if let fault = StartCheck.faults(of: configuration).first { throw fault }
        // Check this before the rest: if another program has the address, nothing has to be undone.
        for place in try ListeningPlace.all(snapshot, fleet?.peers) { try place.checkFree() }
        let log = AccessLogSink(configuration.log.access)
        do {
            try log.start()
        } catch let error as AccessLogSink.Failure {
            guard case .cannotOpen(let path, let code) = error else { throw error }
            throw StartError.log(path: path, errno: code)
        }
        let hasher = Shared.Hasher()
        let zones: Zones
        do throws(BackStoreRefusal) {
            zones = try Zones(configuration, hasher: hasher)
        } catch {
            log.stop()
            throw StartError.disk(error)
        }
        let shared = Shared(
            zones: zones, hasher: hasher,
            pool: try BlockingPool(threads: 2, queueMax: 256), accessLog: log,
            fleet: fleet.map { FleetDesk($0, zones: zones) })
        shared.cookies.adopt(configuration.cookieJars)
        shared.nameServers.adopt(snapshot.originCircuit)
        shared.learning.adopt(RecipePaths(configuration))
        shared.limits.adopt(snapshot.limitPlan)
        shared.budgets.adopt(configuration.budgetsFile)
        if let fleet = shared.fleet { snapshot.authentication.shareNonces(fleet.key(for: .nonces)) }
        let proxy = Proxy(shared: shared, snapshot: snapshot)
        do {
            try proxy.startWorkers(snapshot)
        } catch {
            // Those that have started end.
            proxy.stop()
            proxy.join()
            throw error
        }
        return proxy
    }

    /// Begins to share with the other nodes, and to follow their purges. Does nothing if this Larder is alone.
    package func joinFleet(_ effects: FleetEffects) throws {
        let shared = shared
        let counted = CountedTogether(
            limits: shared.limits, attempts: shared.attempts,
            authenticates: { [weak self] in self?.snapshot.authentication.authenticator != nil },
            waitBegan: { [weak shared] in shared?.closeShortWays() })
        let dns = Resolver.Options(snapshot.configuration.dns, judge: shared.nameServers)
        try shared.fleet?.begin(effects, counted, dns: dns) { address, port in
            shared.isOwnListener(address, port: port)
        }
    }

    private static func workerCount(_ configuration: Configuration) -> Int {
        switch configuration.workers {
        case .auto: Int(clarder_cpu_count())
        case .count(let count): count
        }
    }

    private func startWorkers(_ snapshot: Snapshot) throws(StartError) {
        let count = Proxy.workerCount(snapshot.configuration)
        precondition(count > 0, "a proxy has at least one worker")
        var places = try ListeningPlace.all(snapshot, shared.fleet?.peers?.terms)
        for number in 0..<count {
            var listeners: [ListeningSocket] = []
            for index in places.indices where places[index].isShared || number == 0 {
                let socket = try places[index].open()
                // For port 0 the system has chosen a port. The other workers use the same one.
                places[index].address = Proxy.localAddress(socket.descriptor) ?? places[index].address
                listeners.append(socket)
            }
            let started = try Proxy.launch(number, shared: shared, snapshot: snapshot, listeners: listeners)
            state.withLock { $0.workers.append(started) }
            shared.onWait { started.inbox.post { started.worker.value.closeShortWays() } }
        }
        shared.setProxyAddresses(places.map(\.address))
        let ofClients = places.filter { !$0.terms.isForPeers }.map(\.address)
        state.withLock { $0.addresses = ofClients }
    }

    private static func localAddress(_ fd: CInt) -> SocketAddress? {
        do { return try Sockets.localAddress(fd) } catch { return nil }
    }

    /// Starts a thread that makes and runs a worker. Returns when the worker is ready.
    private static func launch(
        _ number: Int, shared: Shared, snapshot: Snapshot, listeners: [ListeningSocket]
    ) throws(StartError) -> WorkerHandle {
        let report = LaunchReport()
        let thread: ThreadHandle
        do {
            thread = try startThread(name: "larder-\(number)") {
                do {
                    let worker = try Worker(number: number, shared: shared, snapshot: snapshot)
                    for socket in listeners { worker.listen(on: socket) }
                    report.succeeded((worker.loop.inbox, worker.counters, WorkerReference(worker)))
                    worker.run()
                } catch {
                    report.failed("\(error)")
                }
            }
        } catch { throw .worker("\(error)") }
        switch report.wait() {
        case .success(let parts):
            return WorkerHandle(
                number: number, inbox: parts.inbox, counters: parts.counters, thread: OwnedThread(thread),
                worker: parts.worker)
        case .failure(let error):
            thread.join()
            throw error
        }
    }

    /// Where a new thread reports whether its worker could be made.
    private final class LaunchReport: Sendable {
        typealias Parts = (inbox: Inbox, counters: Counters, worker: WorkerReference)
        private let outcome = Locked<Result<Parts, StartError>?>(nil)
        private let signal = CountingSemaphore()

        func succeeded(_ parts: Parts) {
            outcome.withLock { $0 = .success(parts) }
            signal.signal()
        }

        func failed(_ reason: String) {
            outcome.withLock { $0 = .failure(.worker(reason)) }
            signal.signal()
        }

        func wait() -> Result<Parts, StartError> {
            signal.wait()
            return outcome.withLock { $0 } ?? .failure(.worker("it ended before it began"))
        }
    }

    // MARK: seen from outside

    /// The addresses on which clients are accepted, with the ports that the system chose.
    package var addresses: [SocketAddress] { state.withLock { $0.addresses } }
    /// Whether every worker has ended, after `drain`.
    package var isDrained: Bool {
        state.withLock { $0.workers.allSatisfy { $0.counters.gauges[Gauge.isFinished.rawValue] == 1 } }
    }
    package var snapshot: Snapshot { state.withLock { $0.snapshot } }
    /// The configuration and the zones that belong to it.
    var snapshotAndZones: (Snapshot, [Zone]) { state.withLock { ($0.snapshot, $0.zones) } }
    package var isDraining: Bool { state.withLock { $0.isDraining } }
    package var counters: [Counters] { state.withLock { $0.workers.map(\.counters) } }

    /// A worker for questions that every worker can answer. Nil after `join`.
    var anyWorker: WorkerHandle? { state.withLock { $0.workers.first } }

    /// Each worker in turn. Nil after `join`.
    func nextWorker() -> WorkerHandle? {
        state.withLock { state in
            guard !state.workers.isEmpty else { return nil }
            state.programLinks &+= 1
            return state.workers[state.programLinks % state.workers.count]
        }
    }

    /// The present transfers of all workers. A worker that does not answer within `timeout` is left out. Blocks.
    package func transfers(timeout: Duration = .milliseconds(500)) -> [TransferReport] {
        let gathering = Gathering<TransferReport>()
        let workers = state.withLock { $0.workers }
        for worker in workers { worker.inbox.post { gathering.add(worker.worker.value.transfers) } }
        return gathering.wait(for: workers.count, timeout: timeout)
    }

    /// Ends a transfer. Blocks.
    ///
    /// - Returns: false if it is over already.
    package func cancelTransfer(_ id: TransferID, timeout: Duration = .milliseconds(500)) -> Bool {
        let workers = state.withLock { $0.workers }
        guard workers.indices.contains(id.worker) else { return false }
        let (worker, gathering) = (workers[id.worker], Gathering<Bool>())
        worker.inbox.post { gathering.add([worker.worker.value.cancel(id)]) }
        return gathering.wait(for: 1, timeout: timeout) == [true]
    }

    /// Runs `work` on each worker's thread, and waits until all have done so. A worker that does not answer within `timeout` is not waited for.
    func onEachWorker(timeout: Duration = .milliseconds(500), _ work: @escaping @Sendable (Worker) -> Void) {
        let gathering = Gathering<Bool>()
        let workers = state.withLock { $0.workers }
        for worker in workers {
            worker.inbox.post {
                work(worker.worker.value)
                gathering.add([true])
            }
        }
        _ = gathering.wait(for: workers.count, timeout: timeout)
    }

    private final class Gathering<Element: Sendable>: Sendable {
        private let found = Locked<[Element]>([])
        private let signal = CountingSemaphore()

        func add(_ elements: [Element]) {
            found.withLock { $0 += elements }
            signal.signal()
        }

        func wait(for count: Int, timeout: Duration) -> [Element] {
            for _ in 0..<count where !signal.wait(timeout: timeout) { break }
            return found.withLock { $0 }
        }
    }

    // MARK: control

    /// Adopts a new configuration for requests that begin from now on. Present requests keep theirs.
    package func adopt(_ snapshot: Snapshot) {
        let zones = shared.zones.adopt(snapshot.configuration)
        shared.cookies.adopt(snapshot.configuration.cookieJars)
        shared.nameServers.adopt(snapshot.originCircuit)
        shared.learning.adopt(RecipePaths(snapshot.configuration))
        shared.limits.adopt(snapshot.limitPlan)
        shared.budgets.adopt(snapshot.configuration.budgetsFile)
        if let fleet = shared.fleet {
            snapshot.authentication.shareNonces(fleet.key(for: .nonces))
            fleet.adopt(snapshot.configuration.fleet.peers)
        }
        let workers = state.withLock { state in
            state.snapshot = snapshot
            state.zones = zones
            return state.workers
        }
        for worker in workers { worker.inbox.post { worker.worker.value.adopt(snapshot, zones: zones) } }
        shared.accessLog.reopen()
    }

    /// Uses what the files of `access.authentication` say now, if the settings are still those for which they were read.
    package func adopt(_ material: AuthenticationMaterial, for shelf: AuthenticationShelf) {
        let workers = state.withLock { $0.snapshot.authentication === shelf ? $0.workers : nil }
        guard let workers else { return }
        shelf.replace(material)
        for worker in workers { worker.inbox.post { worker.worker.value.forgetProofs() } }
    }

    /// Takes note that listeners have read the authorities of clients again, and their revocation lists.
    package func noteListenersChanged() {
        for worker in state.withLock({ $0.workers }) { worker.inbox.post { worker.worker.value.forgetProofs() } }
    }

    /// Stops accepting connections, and lets present requests end.
    package func drain() {
        for worker in beginDrain() { worker.inbox.post { worker.worker.value.drain() } }
    }

    /// Ends all workers now.
    package func stop() {
        for worker in beginDrain() { worker.inbox.post { worker.worker.value.finish() } }
    }

    private func beginDrain() -> [WorkerHandle] {
        state.withLock { state in
            state.isDraining = true
            return state.workers
        }
    }

    /// Waits for the workers to end, after `drain` or `stop`.
    package func join() {
        let workers = state.withLock { state in
            defer { state.workers = [] }
            return state.workers
        }
        for worker in workers { worker.thread.join() }
        shared.fleet?.stop()
        shared.zones.close()
        shared.pool.shutdown()
        shared.tickets.close()
        shared.acceptor.close()
        shared.directory.close()
        shared.cookies.close()
        shared.learning.close(now: WallTime(ticks: readWallTicks()))
        shared.budgets.close()
        shared.accessLog.stop()
    }
}
