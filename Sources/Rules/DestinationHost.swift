package import Message

/// A host as rules see it: a name in lower case, or an address, however it was spelled.
///
/// `0x7f.1`, `2130706433`, `[::ffff:127.0.0.1]` and `127.0.0.1` are one host. What a resolver might take for an
/// address, but we can not read as one, is no host at all: nobody shall connect where the rules saw a name.
package enum DestinationHost: Sendable, Hashable, CustomStringConvertible {
    case name(String)
    case address(IPAddress)

    /// - Parameter host: as in a URI (RFC 3986 §3.2.2), an IPv6 address in brackets. One trailing dot of a name is dropped.
    /// - Returns: nil for what must be refused with 400.
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

    /// Letters, digits, `-`, `_`, `~` in labels of 1 to 63 bytes, 253 in all. Percent-encoding is refused:
    /// whether it is undone before the look-up differs between programs (RFC 3986 §3.2.2).
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
        case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: false
        }
    }

    package var address: IPAddress? {
        if case .address(let address) = self { return address }
        return nil
    }

    /// Lower-case name or canonical address text, without brackets.
    package var description: String {
        switch self {
        case .name(let name): name
        case .address(let address): "\(address)"
        }
    }
}
