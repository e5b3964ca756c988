import EventLoop
import Message
import Routing
import Transaction

/// The addresses of hosts.
enum HostAddresses {
    /// The addresses of a host for which no name server need be asked: an address itself, or a name in the cache.
    /// Returns nil if the resolver has to ask.
    static func known(of host: String, worker: Worker) -> Result<[SocketAddress], NameFailure>? {
        if let address = IPAddress(strict: host.utf8) { return .success([SocketAddress(address, port: 0)]) }
        // What some resolver would take for an address, although it is none in its canonical form, leads nowhere.
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
