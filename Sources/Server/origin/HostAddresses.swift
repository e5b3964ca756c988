import EventLoop
import Message
import Routing
import Transaction

/// Addresses of hosts that need no query.
enum HostAddresses {
    /// The addresses of a host that is itself an address, or a name in the cache. Returns nil if a name server must be asked.
    static func known(of host: String, worker: Worker) -> Result<[SocketAddress], NameFailure>? {
        if let address = IPAddress(strict: host.utf8) { return .success([SocketAddress(address, port: 0)]) }
        // Some resolvers accept addresses in other forms, such as 127.1 or 0x7f000001. Larder does not: rules could not judge them.
        if hostEndsInNumber(host.utf8) { return .failure(.notFound) }
        switch worker.resolver.cached(host) {
        case .success(let resolution): return .success(resolution.addresses)
        case .failure(let error): return .failure(NameFailure(error))
        case nil: return nil
        }
    }

    /// For whom a name is looked up. Clients of a Unix socket are one.
    static func asker(_ request: OwnedRequest) -> SocketAddress {
        SocketAddress(request.access.client ?? IPAddress(v4: 0), port: 0)
    }

    /// Asks name servers for the addresses of the request's host, so that the access rules can decide. `timeouts.connect` bounds the wait and the first
    /// connection to the host together: the request keeps how long it has waited.
    static func ask(
        for request: OwnedRequest, _ snapshot: Snapshot, worker: Worker,
        _ done: @escaping (Result<[SocketAddress], NameFailure>) -> Void
    ) -> ResolverTicket {
        let start = worker.loop.now
        let left = snapshot.origins.terms(for: request.access).connect - request.nameWait
        return worker.resolver.resolve(request.host, by: start.advanced(by: left), for: asker(request)) {
            [loop = worker.loop] outcome in
            request.addNameWait(loop.now.duration(since: start))
            done(outcome.map(\.addresses).mapError(NameFailure.init))
        }
    }
}

extension NameFailure {
    init(_ error: ResolverError) {
        switch error {
        case .timedOut: self = .timedOut
        case .unasked: self = .unasked
        case .tooManyQueries: self = .tooMany
        case .notFound, .badName, .serverFailure, .serverUnreachable, .failed: self = .notFound
        }
    }
}
