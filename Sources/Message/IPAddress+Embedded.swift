/// IPv4 addresses inside IPv6 addresses: where the bytes go when a translator or the end of a tunnel takes them over.
extension IPAddress {
    /// The IPv4 addresses that the address may stand for. Nil if it has none.
    ///
    /// A mapped address is not among them: it is an IPv4 address (see `IPAddress`). Where the form is open, each possible address is there.
    package var embedded: Embedded? {
        guard !isV4 else { return nil }
        let (high, low) = v6
        if let found = Self.translated(high, low) { return found }
        let lowest = UInt32(truncatingIfNeeded: low)
        switch (high, high >> 32, high >> 48) {
        case (_, 0x2001_0000, _):
            // Teredo (RFC 4380 §4): the server, and the client with its bits inverted.
            return Embedded([UInt32(truncatingIfNeeded: high), ~lowest], bits: 32)
        case (_, _, 0x2002):
            // 6to4 (RFC 3056 §2).
            return Embedded([UInt32(truncatingIfNeeded: high >> 16)], bits: 16)
        // ISATAP (RFC 5214 §6.1), in any network: the interface identifier 0000:5efe or 0200:5efe and the address.
        case _ where low >> 32 & 0xFDFF_FFFF == 0x5EFE: return Embedded([lowest], bits: 64, isGlobal: false)
        default: return nil
        }
    }

    package struct Embedded: Equatable, Sendable {
        package let addresses: [IPAddress]
        /// The length of the prefix that all addresses of the form have; of one that any network may have, the length of its own.
        package let bits: Int
        /// The prefix is that of a translator or of tunnels all over the internet: what kind of address it is, the IPv4 address says alone.
        package let isGlobal: Bool

        init(_ v4: [UInt32], bits: Int, isGlobal: Bool = true) {
            addresses = v4.map { IPAddress(v4: $0) }
            self.bits = bits
            self.isGlobal = isGlobal
        }
    }

    private static func translated(_ high: UInt64, _ low: UInt64) -> Embedded? {
        let lowest = UInt32(truncatingIfNeeded: low)
        switch high {
        case 0:
            // ::a.b.c.d (RFC 4291 §2.5.5.1) and ::ffff:0:a.b.c.d (RFC 2765 §2.1); not :: and ::1.
            let isEmbedded = low >> 32 == 0 && low > 1 || low >> 32 == 0xFFFF_0000
            return isEmbedded ? Embedded([lowest], bits: 96) : nil
        // NAT64, the well-known prefix (RFC 6052 §2.1).
        case 0x0064_FF9B_0000_0000 where low >> 32 == 0: return Embedded([lowest], bits: 96)
        case 0x0064_FF9B_0001_0000...0x0064_FF9B_0001_FFFF:
            // NAT64 with a prefix of the site (RFC 8215), of 48, 56, 64 or 96 bits. Bits 64 to 71 are left out (RFC 6052 §2.2).
            let low56 = low & 0x00FF_FFFF_FFFF_FFFF
            return Embedded(
                [
                    UInt32(truncatingIfNeeded: high << 16) | UInt32(truncatingIfNeeded: low56 >> 40),
                    UInt32(truncatingIfNeeded: high << 24) | UInt32(truncatingIfNeeded: low56 >> 32),
                    UInt32(truncatingIfNeeded: low56 >> 24), lowest,
                ], bits: 48, isGlobal: false)
        default: return nil
        }
    }
}
