import Message

/// A challenge in `WWW-Authenticate` or `Proxy-Authenticate` (RFC 9110 §11.3).
package struct Challenge: Equatable, Sendable {
    /// In lower case.
    package let scheme: [UInt8]
    package let content: Content

    package enum Content: Equatable, Sendable {
        /// One text without a structure, as NTLM and Negotiate send it.
        case token68([UInt8])
        /// None is repeated. There may be none at all.
        case parameters([AuthParameter])
    }

    /// The value of a parameter. Nil if there is no such parameter.
    package func value(_ name: StaticString) -> [UInt8]? {
        guard case .parameters(let parameters) = content else { return nil }
        return parameters.first { equalsIgnoringCase($0.name, name) }?.value
    }
}

/// `token BWS "=" BWS ( token / quoted-string )` (RFC 9110 §11.2).
package struct AuthParameter: Equatable, Sendable {
    /// In lower case.
    package let name: [UInt8]
    /// Without quotes and escapes.
    package let value: [UInt8]

    package init(name: some Sequence<UInt8>, value: [UInt8]) {
        self.name = name.map(asciiLowercased)
        self.value = value
    }

    /// Returns nil if the bytes are anything else than one parameter.
    init?(_ bytes: ArraySlice<UInt8>) {
        let name = bytes.prefix(while: isTchar)
        let rest = bytes[name.endIndex...].drop(while: isOWS)
        guard !name.isEmpty, rest.first == UInt8(ascii: "="), let value = unquoted(trimOWS(rest.dropFirst())) else {
            return nil
        }
        self.init(name: name, value: value)
    }
}

/// `token68` (RFC 9110 §11.2).
package func isToken68(_ bytes: some Collection<UInt8>) -> Bool {
    let text = bytes.prefix { isUnreserved($0) || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/") }
    return !text.isEmpty && bytes.dropFirst(text.count).allSatisfy { $0 == UInt8(ascii: "=") }
}
