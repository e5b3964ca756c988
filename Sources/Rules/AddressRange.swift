package import Message

/// The addresses that share their first bits: `10.0.0.0/8`, `fd00::/8`, or one address, `::1` (RFC 4632 §3.1).
///
/// IPv4 and IPv6 never match each other. An IPv4-mapped IPv6 address counts as IPv4 (see `IPAddress`).
package struct AddressRange: Sendable, Hashable, CustomStringConvertible {
    package let first: IPAddress
    /// How many leading bits count: 0...32 for IPv4, 0...128 for IPv6.
    package let prefixLength: Int

    /// Returns nil if `prefixLength` is out of bounds, or if `first` has bits set beyond it: `10.1.2.3/8` is probably a mistake.
    package init?(_ first: IPAddress, prefixLength: Int) {
        guard prefixLength >= 0, prefixLength <= (first.isV4 ? 32 : 128) else { return nil }
        self.first = first
        self.prefixLength = prefixLength
        guard masked(first) == first else { return nil }
    }

    package init(_ address: IPAddress) {
        first = address
        prefixLength = address.isV4 ? 32 : 128
    }

    /// Strict: only the usual spellings of addresses (`IPAddress.init(strict:)`), no signs, no leading zeros.
    package init?(_ text: some StringProtocol) {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(strict: parts[0]) else { return nil }
        guard parts.count == 2 else {
            self.init(address)
            return
        }
        guard let length = parseDecimal(parts[1], max: 128) else { return nil }
        self.init(address, prefixLength: Int(length))
    }

    package func contains(_ address: IPAddress) -> Bool {
        address.isV4 == first.isV4 && masked(address) == first
    }

    /// All of IPv4 or all of IPv6.
    package var isEverything: Bool { prefixLength == 0 }

    package var description: String {
        prefixLength == (first.isV4 ? 32 : 128) ? "\(first)" : "\(first)/\(prefixLength)"
    }

    private func masked(_ address: IPAddress) -> IPAddress {
        if let v4 = address.v4 { return IPAddress(v4: v4 & (~0 << UInt32(32 - prefixLength))) }
        let (high, low) = address.v6
        if prefixLength <= 64 { return IPAddress(v6: high & (~0 << UInt64(64 - prefixLength)), low: 0) }
        return IPAddress(v6: high, low: low & (~0 << UInt64(128 - prefixLength)))
    }

    /// 127.0.0.0/8 and ::1.
    package static let loopback = [
        AddressRange(IPAddress(v4: 0x7F00_0000), prefixLength: 8), AddressRange(IPAddress(v6: 0, low: 1)),
    ].compactMap { $0 }
}

/// Parses a decimal number without sign, space or leading zeros. Returns nil if it is anything else, or above `max`.
func parseDecimal(_ digits: some Collection<UInt8>, max: UInt64) -> UInt64? {
    guard let first = digits.first, digits.count <= 19, digits.count == 1 || first != UInt8(ascii: "0") else {
        return nil
    }
    var value: UInt64 = 0
    for digit in digits {
        guard (0x30...0x39).contains(digit) else { return nil }
        value = value * 10 + UInt64(digit - 0x30)
    }
    return value <= max ? value : nil
}
