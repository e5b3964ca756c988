import Glibc

/// The name that a leaf certificate is for: exactly one, and no wildcard.
///
/// A certificate for several hosts would let a client send requests for one host through the connection to another (RFC 9113 §9.1.1).
package enum LeafName: Hashable, Sendable {
    /// In lower case, in A-labels, without a dot at the end.
    case dns(String)
    /// 4 or 16 bytes.
    case address([UInt8])

    /// Returns nil unless `host` is an IP address (without brackets) or a host name of letters, digits, hyphens and underscores.
    package init?(host: String) {
        if let address = LeafName.address(host) {
            self = .address(address)
            return
        }
        let name = host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host
        self = .dns(name.lowercased())
        guard isValid else { return nil }
    }

    /// Whether the value keeps what its cases promise.
    var isValid: Bool {
        switch self {
        case .address(let bytes): bytes.count == 4 || bytes.count == 16
        case .dns(let name): LeafName.isHostName(name)
        }
    }

    /// The name as it stands in a URI, but an IPv6 address has no brackets.
    package var text: String {
        switch self {
        case .dns(let name): name
        case .address(let bytes): addressText(bytes)
        }
    }

    private static func isHostName(_ name: String) -> Bool {
        guard !name.isEmpty, name.utf8.count <= 253 else { return false }
        let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return labels.allSatisfy { label in
            (1...63).contains(label.count) && label.allSatisfy(isNameCharacter)
        }
    }

    private static func isNameCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private static func address(_ text: String) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 16)
        if unsafe inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes[..<4]) }
        if unsafe inet_pton(AF_INET6, text, &bytes) == 1 { return bytes }
        return nil
    }
}

/// An address of 4 or 16 bytes as text: `192.0.2.1`, `2001:db8::1`. Empty if there are more or fewer.
func addressText(_ bytes: [UInt8]) -> String {
    guard bytes.count == 4 || bytes.count == 16 else { return "" }
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let family = bytes.count == 4 ? AF_INET : AF_INET6
    guard unsafe inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else { return "" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
