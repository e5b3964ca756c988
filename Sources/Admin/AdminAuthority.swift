/// Who may ask the admin server what.
///
/// Reading numbers is for everybody who reaches the listener under an address or `localhost`; changing, and what tells of
/// URLs and rules, is for the Unix socket and for holders of the token. There is no CORS: no other site reads an answer.
package struct AdminAuthority: Sendable {
    /// What `Authorization: Bearer` must carry; nil: nothing of that over TCP.
    private let token: [UInt8]?

    package init(token: [UInt8]?) {
        precondition(token.map { !$0.isEmpty } ?? true, "an empty token would let everybody in")
        self.token = token
    }

    /// The refusal of a request whose `Host` a hostile page may have pointed here (DNS rebinding); nil: go on.
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

    /// The refusal of a change, or of telling what is not for everybody; nil: go on.
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

/// An address literal, or a name that no resolver outside this machine answers for.
func isTrustworthyHost(_ authority: String) -> Bool {
    let bytes = Array(authority.utf8)
    guard let (host, port) = splitAuthority(bytes[...]) else { return false }
    guard port.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), port.count <= 5 else {
        return false
    }
    let name = String(decoding: host, as: UTF8.self).lowercased()
    return name == "localhost" || name.hasSuffix(".localhost") || isAddressLiteral(host)
}

/// Host and port (empty where there is none); nil where it is neither.
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

/// A dotted quad or a bracketed IPv6 address. What is not quite one of them is a name, and refused.
private func isAddressLiteral(_ host: ArraySlice<UInt8>) -> Bool {
    if host.first == UInt8(ascii: "[") {
        return host.dropFirst().dropLast().allSatisfy {
            hexDigitValue($0) != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
        }
    }
    let parts = host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count == 4
        && parts.allSatisfy { part in
            (1...3).contains(part.count)
                && part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        }
}

/// `Bearer` SP token (RFC 6750 §2.1); the scheme's case does not matter. nil: another scheme.
private func bearerToken(_ value: [UInt8]) -> ArraySlice<UInt8>? {
    let scheme = Array("bearer ".utf8)
    guard value.count > scheme.count else { return nil }
    let isBearer = zip(value, scheme).allSatisfy { $0 | 0x20 == $1 || $0 == $1 }
    return isBearer ? value[scheme.count...] : nil
}

/// How long it takes does not depend on where the first difference is.
private func isEqualInConstantTime(_ a: ArraySlice<UInt8>, _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    return zip(a, b).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
}
