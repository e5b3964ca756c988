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
}

extension NameFailure {
    init(_ error: ResolverError) {
        switch error {
        case .timedOut: self = .timedOut
        case .notFound, .badName, .serverFailure, .serverUnreachable, .tooManyQueries, .failed: self = .notFound
        }
    }
}
