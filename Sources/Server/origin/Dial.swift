import Access
import EventLoop
import Glibc
import Message
import Transaction

/// From a host and a port to a connected socket: name, addresses, permission for each, the race of RFC 8305.
///
/// Permission is asked for the address that is dialled, whatever the name promised: a name that leads to a private
/// address opens nothing (DNS rebinding).
final class Dial {
    enum Outcome {
        case connected(fd: CInt, address: SocketAddress)
        case failed(Refusal)
        /// No address of the host may be dialled; why the first may not.
        case denied(Denial)
    }

    private let worker: Worker
    private let request: AccessRequest
    private let snapshot: Snapshot
    private var ticket: ResolverTicket?
    private var attempt: ConnectAttempt?
    private var done: ((Outcome) -> Void)?

    init(worker: Worker, request: AccessRequest, snapshot: Snapshot, done: @escaping (Outcome) -> Void) {
        self.worker = worker
        self.request = request
        self.snapshot = snapshot
        self.done = done
    }

    func start() {
        switch Dial.knownAddresses(of: request.host, worker: worker) {
        case .success(let addresses):
            connect(addresses)
        case .failure(let refusal):
            finish(.failed(refusal))
        case nil:
            ticket = worker.resolver.resolve(request.host) { [weak self] result in
                guard let self else { return }
                ticket = nil
                switch result {
                case .success(let resolution): connect(resolution.addresses)
                case .failure(let error): finish(.failed(Refusal(error)))
                }
            }
        }
    }

    /// The addresses of a host where no name server need be asked: an address itself, or a name in the cache.
    static func knownAddresses(of host: String, worker: Worker) -> Result<[SocketAddress], Refusal>? {
        if let address = IPAddress(strict: host.utf8) { return .success([SocketAddress(address, port: 0)]) }
        // What looks like an address to some resolver but is none in its canonical form goes nowhere.
        if hostEndsInNumber(host.utf8) { return .failure(.nameNotFound) }
        switch worker.resolver.cached(host) {
        case .success(let resolution): return .success(resolution.addresses)
        case .failure(let error): return .failure(Refusal(error))
        case nil: return nil
        }
    }

    private func connect(_ addresses: [SocketAddress]) {
        var denial: Denial?
        let allowed = addresses.filter { address in
            guard let ip = IPAddress(address) else { return false }
            let objection = snapshot.access.mayDial(request, address: ip) ?? adminDenial(ip)
            denial = denial ?? objection
            return objection == nil
        }
        if let denial, allowed.isEmpty { return finish(.denied(denial)) }
        guard !allowed.isEmpty else { return finish(.failed(.nameNotFound)) }
        attempt = ConnectAttempt.start(
            allowed.map { $0.with(port: request.port) }, loop: worker.loop, attemptDelay: .milliseconds(250),
            timeout: snapshot.configuration.timeouts.connect
        ) { [weak self] result in
            switch result {
            case .success(let (fd, address)):
                guard let self, done != nil else {
                    Glibc.close(fd)
                    return
                }
                attempt = nil
                finish(.connected(fd: fd, address: address))
            case .failure(let error):
                guard let self else { return }
                attempt = nil
                worker.counters.add(.originConnectionsFailed)
                finish(.failed(Refusal(error)))
            }
        }
    }

    private func adminDenial(_ address: IPAddress) -> Denial? {
        guard worker.shared.isAdmin(address, port: request.port) else { return nil }
        return Denial(reason: .privateDestination, text: "the admin server is not reached through the proxy")
    }

    private func finish(_ outcome: Outcome) {
        let done = self.done
        self.done = nil
        done?(outcome)
    }

    func cancel() {
        done = nil
        ticket?.cancel()
        ticket = nil
        attempt?.cancel()
        attempt = nil
    }
}

extension Refusal {
    init(_ error: ResolverError) {
        switch error {
        case .timedOut: self = .nameTimeout
        default: self = .nameNotFound
        }
    }

    init(_ error: ConnectError) {
        switch error {
        case .refused: self = .connectionRefused
        case .timedOut: self = .connectionTimeout
        case .unreachable, .noAddress: self = .destinationUnroutable
        case .failed: self = .connectionTerminated
        }
    }
}
