import Message

/// Decides who can ask the admin server for what.
///
/// Everybody who reaches the listener under an address or `localhost` can read statistics. Only clients of the Unix socket and holders
/// of the token can change anything, or see URLs and rules. There is no CORS, so no page of another site can read an answer.
package struct AdminAuthority: Sendable {
    /// The token that `Authorization: Bearer` must carry. If nil, only the Unix socket is trusted.
    private let token: [UInt8]?

    package init(token: [UInt8]?) {
        precondition(token.map { !$0.isEmpty } ?? true, "an empty token would let everybody in")
        self.token = token
    }

    /// Refuses a request whose `Host` is a name that a hostile page can have pointed here (DNS rebinding). Returns nil if it is not one.
    package func refusalOfHost(_ request: AdminRequest) -> AdminResponse? {
        switch request.door {
        case .unixSocket: return nil
        case .tcp:
            guard let host = request.host, isTrustworthyHost(host) else {
                return .problem(403, "ask for the admin server by address or as localhost, not by another name")
            }
            return nil
        }
    }

    /// Refuses a request that changes something, or that reads what is not for everybody. Returns nil if the client is trusted.
    package func refusalOfChange(_ request: AdminRequest) -> AdminResponse? {
        switch request.door {
        case .unixSocket: return nil
        case .tcp: break
        }
        guard let token else {
            return .problem(403, "this is for the Unix socket; over TCP it needs admin.token in larder.yaml")
        }
        let challenge = AdminResponse.Field("WWW-Authenticate", "Bearer realm=\"larder\"")
        guard let authorization = request.authorization else {
            return .problem(401, "over TCP this needs Authorization: Bearer TOKEN", fields: [challenge])
        }
        guard let offered = bearerToken(authorization), isEqualInConstantTime(offered, token) else {
            return .problem(401, "this is not the token", fields: [challenge])
        }
        return nil
    }
}

/// Whether the host is an address literal, or a name that no name server outside this machine can redirect.
func isTrustworthyHost(_ authority: String) -> Bool {
    let bytes = Array(authority.utf8)
    guard let (host, port) = splitAuthority(bytes[...]) else { return false }
    guard port.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), port.count <= 5 else {
        return false
    }
    let name = String(decoding: host, as: UTF8.self).lowercased()
    return name == "localhost" || name.hasSuffix(".localhost") || isAddressLiteral(host)
}

/// Splits `Host` into host and port, which is empty if there is none. Returns nil if the value is malformed.
private func splitAuthority(_ bytes: ArraySlice<UInt8>) -> (host: ArraySlice<UInt8>, port: ArraySlice<UInt8>)? {
    let colon = UInt8(ascii: ":")
    guard bytes.first == UInt8(ascii: "[") else {
        let parts = bytes.split(separator: colon, maxSplits: 1, omittingEmptySubsequences: false)
        return parts.isEmpty ? nil : (parts[0], parts.count == 2 ? parts[1] : [])
    }
    guard let close = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
    let rest = bytes[(close + 1)...]
    guard rest.isEmpty || rest.first == colon else { return nil }
    return (bytes[...close], rest.dropFirst())
}

/// Whether the host is a dotted quad or an IPv6 address in brackets. Anything that is almost one of them is a name, and is refused.
private func isAddressLiteral(_ host: ArraySlice<UInt8>) -> Bool {
    if host.first == UInt8(ascii: "[") {
        return host.dropFirst().dropLast().allSatisfy {
            hexValue($0) != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
        }
    }
    let parts = host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count == 4
        && parts.allSatisfy { part in
            (1...3).contains(part.count)
                && part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        }
}

/// The token in `Bearer` SP token (RFC 6750 §2.1). The case of the scheme does not matter. Returns nil for another scheme.
private func bearerToken(_ value: [UInt8]) -> ArraySlice<UInt8>? {
    let scheme = Array("bearer ".utf8)
    guard value.count > scheme.count else { return nil }
    let isBearer = zip(value, scheme).allSatisfy { $0 | 0x20 == $1 || $0 == $1 }
    return isBearer ? value[scheme.count...] : nil
}

/// Compares in a time that does not depend on where the first difference is.
private func isEqualInConstantTime(_ a: ArraySlice<UInt8>, _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    return zip(a, b).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
}
