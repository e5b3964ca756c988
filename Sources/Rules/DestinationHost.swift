package import Message

/// A host as rules compare it: a name in lower case, or an address, however it was spelled.
///
/// `0x7f.1`, `2130706433`, `[::ffff:127.0.0.1]` and `127.0.0.1` are the same host. Text that a resolver might read as an address, but
/// that Larder cannot parse as one, is not a host: otherwise rules would see a name where the connection goes to an address.
package enum DestinationHost: Sendable, Hashable, CustomStringConvertible {
    case name(String)
    case address(IPAddress)

    /// - Parameter host: the host as in a URI (RFC 3986 §3.2.2), an IPv6 address in brackets. One trailing dot of a name is dropped.
    /// - Returns: nil if the text is not a host.
    package init?(_ host: some Collection<UInt8>) {
        if let address = IPAddress(anySpelling: host) {
            self = .address(address)
            return
        }
        var name = Array(host)
        if name.last == UInt8(ascii: ".") { name.removeLast() }
        guard !hostEndsInNumber(name), let text = Self.lowerCasedName(name) else { return nil }
        self = .name(text)
    }

    /// The name in lower case. Returns nil unless it has letters, digits, `-` and `_` only (RFC 952, RFC 1123 §2.1), in labels of 1 to 63 bytes and at
    /// most 253 bytes in all (RFC 1035 §2.3.4). An internationalised name has its A-labels (RFC 5890 §2.3.2.1): Unicode is refused and not converted,
    /// because programs convert it differently. Percent-encoding is refused, because programs differ in decoding it before they resolve a name
    /// (RFC 3986 §3.2.2). `_` is no letter of host names, but in DNS, and names with it are in use.
    static func lowerCasedName(_ bytes: [UInt8]) -> String? {
        guard !bytes.isEmpty, bytes.count <= 253 else { return nil }
        for label in bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard (1...63).contains(label.count), label.allSatisfy(isNameByte) else { return nil }
        }
        return String(decoding: bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }

    /// As in a URI: an IPv6 address has brackets.
    package var uriText: String {
        if case .address(let address) = self, !address.isV4 { return "[\(address)]" }
        return description
    }

    package var address: IPAddress? {
        if case .address(let address) = self { return address }
        return nil
    }

    /// The name in lower case, or the canonical text of the address, without brackets.
    package var description: String {
        switch self {
        case .name(let name): name
        case .address(let address): "\(address)"
        }
    }
}
