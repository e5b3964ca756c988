package import Message

/// The origin that every request of a connection is for, if the requests themselves do not name one.
///
/// A client that opened a tunnel with `CONNECT host:port` sends requests in origin-form through it. If the proxy reads them, scheme and
/// port are those of the tunnel, and the Host field must name the tunnel's host (RFC 9110 §7.4).
package struct FixedOrigin: Equatable, Sendable {
    package let scheme: Scheme
    /// The host as in a request: in lower case, an IPv6 address in brackets.
    package let host: [UInt8]
    package let port: UInt16

    package init(scheme: Scheme, host: String, port: UInt16) {
        self.scheme = scheme
        self.host = host.utf8.map(lowercased)
        self.port = port
    }

    package enum Completion: Equatable, Sendable {
        /// The target with scheme, host and port, as in absolute-form.
        case complete(RequestTarget)
        /// The request names another origin than that of the connection (421, RFC 9110 §15.5.20), or none: the target with the origin that it names.
        case misdirected(RequestTarget)
    }

    /// Completes the target of a request.
    ///
    /// - Parameter bytes: the head that the ranges of the target refer to.
    package func complete(_ target: RequestTarget, _ bytes: borrowing Span<UInt8>) -> Completion {
        switch target.form {
        case .absolute:
            return names(target, bytes) && target.scheme == scheme ? .complete(target) : .misdirected(target)
        // CONNECT: there are no tunnels inside a tunnel.
        case .authority: return .misdirected(target)
        case .origin, .asterisk: break
        }
        // If neither the target nor Host has a port, the parser has set the default port of http.
        var completed = target
        completed.scheme = scheme
        if target.port == target.scheme.defaultPort, target.scheme != scheme { completed.port = scheme.defaultPort }
        completed.form = .absolute
        // `*` means the origin as a whole, and not the proxy: in absolute-form a target without a path (RFC 9112 §3.2.4).
        if target.form == .asterisk { completed.pathRange = target.pathRange.upperBound..<target.pathRange.upperBound }
        return names(completed, bytes) ? .complete(completed) : .misdirected(completed)
    }

    private func names(_ target: RequestTarget, _ bytes: borrowing Span<UInt8>) -> Bool {
        let range = target.hostRange
        guard range.count == host.count, target.port == port else { return false }
        for index in 0..<range.count where lowercased(bytes[range.lowerBound + index]) != host[index] { return false }
        return true
    }
}

private func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
