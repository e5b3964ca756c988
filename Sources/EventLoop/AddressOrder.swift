/// The order in which the addresses of a name are tried (RFC 6724 §6), as far as it does not depend on settings of the kernel.
///
/// c-ares sorts what one question has found. The families are asked for separately, so that neither waits for the other, and are sorted together here.
enum AddressOrder {
    /// - Parameter source: the address from which this machine would reach another one. Nil: it cannot.
    static func sorted(
        _ addresses: [SocketAddress], source: (SocketAddress) -> SocketAddress?
    ) -> [SocketAddress] {
        guard addresses.count > 1 else { return addresses }
        return addresses.enumerated()
            .map { (rank: rank(of: $1, from: source($1)) + [$0], address: $1) }
            .sorted { $0.rank.lexicographicallyPrecedes($1.rank) }
            .map(\.address)
    }

    /// One number for each rule, the better the smaller. Rules 3, 4 and 7 need what no socket tells: which addresses are deprecated, home addresses, or
    /// behind a tunnel.
    private static func rank(of address: SocketAddress, from source: SocketAddress?) -> [Int] {
        let kind = Kind(address)
        guard let source else { return [1, 1, 1, -kind.precedence, kind.scope, 0] }
        let own = Kind(source)
        return [
            0,  // rule 1: unusable destinations are avoided
            own.scope == kind.scope ? 0 : 1,  // rule 2: matching scope
            own.label == kind.label ? 0 : 1,  // rule 5: matching label
            -kind.precedence,  // rule 6: higher precedence
            kind.scope,  // rule 8: smaller scope
            -commonPrefix(address, source),  // rule 9: longest matching prefix, of IPv6 alone
        ]
    }

    /// What RFC 6724 says of an address: its scope (§3.1, §3.2), and its row in the policy table (§2.1).
    private struct Kind {
        var scope: Int
        var precedence: Int
        var label: Int

        private static let linkLocal = 2
        private static let siteLocal = 5
        private static let global = 14

        init(_ address: SocketAddress) {
            if let v4 = address.v4 {
                // 127/8 and 169.254/16 have the scope of a link, private addresses are global. IPv4 has the row of ::ffff:0:0/96.
                let isOfLink = v4 >> 24 == 127 || v4 >> 16 == 0xa9fe
                (scope, precedence, label) = (isOfLink ? Kind.linkLocal : Kind.global, 35, 4)
            } else if let (high, low) = address.v6 {
                scope = Kind.scope(high, low)
                (precedence, label) = Kind.policy(high, low)
            } else {
                (scope, precedence, label) = (Kind.global, 0, -1)
            }
        }

        private static func scope(_ high: UInt64, _ low: UInt64) -> Int {
            if high >> 56 == 0xff { return Int(high >> 48 & 0xf) }  // multicast
            if high >> 54 == 0xfe80 >> 6 || (high == 0 && low == 1) { return linkLocal }
            return high >> 54 == 0xfec0 >> 6 ? siteLocal : global
        }

        /// The row of the default policy table.
        private static func policy(_ high: UInt64, _ low: UInt64) -> (precedence: Int, label: Int) {
            if high == 0 {
                if low == 1 { return (50, 0) }  // ::1/128
                if low >> 32 == 0xffff { return (35, 4) }  // ::ffff:0:0/96
                if low >> 32 == 0 { return (1, 3) }  // ::/96
            }
            if high >> 48 == 0x2002 { return (30, 2) }  // 2002::/16
            if high >> 32 == 0x2001_0000 { return (5, 5) }  // 2001::/32
            if high >> 57 == 0xfc >> 1 { return (3, 13) }  // fc00::/7
            if high >> 54 == 0xfec0 >> 6 { return (1, 11) }  // fec0::/10
            if high >> 48 == 0x3ffe { return (1, 12) }  // 3ffe::/16
            return (40, 1)
        }
    }

    /// The bits at the beginning that are the same. Beyond 64 they are of the interface, not of the network (RFC 6724 §2.2).
    private static func commonPrefix(_ a: SocketAddress, _ b: SocketAddress) -> Int {
        guard let a = a.v6, let b = b.v6 else { return 0 }
        return (a.high ^ b.high).leadingZeroBitCount
    }
}
