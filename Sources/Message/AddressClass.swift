/// What kind of destination an address is, by the IANA special-purpose address registries (RFC 6890).
///
/// A destination that is not `public` is refused unless a rule opens it: a proxy is inside the network that it serves, and must not
/// become a way into it. An address that stands for an IPv4 address is judged by that one as
/// well.
package enum AddressClass: String, CaseIterable, Sendable {
    case `public`
    /// 127.0.0.0/8, ::1.
    case loopback
    /// 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 (RFC 1918); 64:ff9b:1::/48 (RFC 8215).
    case privateUse = "private-use"
    /// fc00::/7 (RFC 4193) and fec0::/10, deprecated but still routed on some sites (RFC 3879).
    case uniqueLocal = "unique-local"
    /// 169.254.0.0/16, fe80::/10.
    case linkLocal = "link-local"
    /// Services of clouds that give credentials to any process on the host. `private_destinations: allow` does not open them.
    case metadata
    /// 100.64.0.0/10, between a provider and its customers (RFC 6598).
    case sharedSpace = "shared-space"
    /// 224.0.0.0/4, ff00::/8.
    case multicast
    /// 255.255.255.255.
    case broadcast
    /// 0.0.0.0 and ::, which Linux connects to itself; the rest of 0.0.0.0/8 with them.
    case unspecified
    /// 192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24, 2001:db8::/32, 3fff::/20.
    case documentation
    /// 198.18.0.0/15, 2001:2::/48.
    case benchmarking
    /// 240.0.0.0/4, protocol assignments, and all of IPv6 outside 2000::/3 that is not named above.
    case reserved

    package var isPublic: Bool { self == .public }
}

/// The class of `address`. An IPv6 address that stands for IPv4 addresses (NAT64, 6to4, Teredo, ISATAP, the deprecated compatible form) is judged by
/// them too, because that is where the bytes would go, and the stricter class counts.
package func addressClass(_ address: IPAddress) -> AddressClass {
    if metadataAddresses.contains(address) { return .metadata }
    if let v4 = address.v4 { return classOfV4(v4) }
    let own = classOfV6(address)
    guard let embedded = address.embedded else { return own }
    let classes = embedded.addresses.map(addressClass)
    if classes.contains(.metadata) { return .metadata }
    return own.isPublic || embedded.isGlobal ? classes.first { !$0.isPublic } ?? .public : own
}

/// The services that cloud hosts offer to every process on them, by their documentation.
private let metadataAddresses: Set<IPAddress> = [
    IPAddress(v4: 0xA9FE_A9FE),  // 169.254.169.254: nearly all of them
    IPAddress(v4: 0xA9FE_AA02),  // 169.254.170.2: container credentials
    IPAddress(v4: 0xA9FE_AA17),  // 169.254.170.23: pod credentials
    IPAddress(v4: 0xA9FE_0017),  // 169.254.0.23
    IPAddress(v4: 0x6464_64C8),  // 100.100.100.200
    IPAddress(v4: 0xA83F_8110),  // 168.63.129.16: inside public space
    IPAddress(v4: 0xC000_00C0),  // 192.0.0.192
    IPAddress(v6: 0xFD00_0EC2_0000_0000, low: 0x254),  // fd00:ec2::254
    IPAddress(v6: 0xFD00_0EC2_0000_0000, low: 0x23),  // fd00:ec2::23: pod credentials
    IPAddress(v6: 0xFD20_00CE_0000_0000, low: 0x254),  // fd20:ce::254
    IPAddress(v6: 0xFE80_0000_0000_0000, low: 0xA9FE_A9FE),  // fe80::a9fe:a9fe
]

/// One row of a registry: the addresses that begin with `bits` bits of `prefix`.
private struct Block<Word: FixedWidthInteger & Sendable>: Sendable {
    let prefix: Word
    let bits: Int
    let addressClass: AddressClass

    init(_ prefix: Word, _ bits: Int, _ addressClass: AddressClass) {
        self.prefix = prefix
        self.bits = bits
        self.addressClass = addressClass
    }

    func contains(_ word: Word) -> Bool { (word ^ prefix) >> Word(Word.bitWidth - bits) == 0 }
}

/// More specific rows first.
private let v4Blocks: [Block<UInt32>] = [
    Block(0x0000_0000, 8, .unspecified), Block(0x0A00_0000, 8, .privateUse), Block(0x6440_0000, 10, .sharedSpace),
    Block(0x7F00_0000, 8, .loopback), Block(0xA9FE_0000, 16, .linkLocal), Block(0xAC10_0000, 12, .privateUse),
    Block(0xC000_0000, 24, .reserved), Block(0xC000_0200, 24, .documentation), Block(0xC058_6300, 24, .reserved),
    Block(0xC0A8_0000, 16, .privateUse), Block(0xC612_0000, 15, .benchmarking), Block(0xC633_6400, 24, .documentation),
    Block(0xCB00_7100, 24, .documentation), Block(0xE000_0000, 4, .multicast), Block(0xFFFF_FFFF, 32, .broadcast),
    Block(0xF000_0000, 4, .reserved),
]

/// Blocks by the high half of the address. `classOfV6` has the rows that need the low half.
private let v6Blocks: [Block<UInt64>] = [
    Block(0x0064_FF9B_0001_0000, 48, .privateUse), Block(0x2001_0002_0000_0000, 48, .benchmarking),
    Block(0x2001_0DB8_0000_0000, 32, .documentation), Block(0x2001_0000_0000_0000, 23, .reserved),
    Block(0x3FFF_0000_0000_0000, 20, .documentation), Block(0x2000_0000_0000_0000, 3, .public),
    Block(0xFC00_0000_0000_0000, 7, .uniqueLocal), Block(0xFEC0_0000_0000_0000, 10, .uniqueLocal),
    Block(0xFE80_0000_0000_0000, 10, .linkLocal), Block(0xFF00_0000_0000_0000, 8, .multicast),
]

private func classOfV4(_ v4: UInt32) -> AddressClass {
    v4Blocks.first { $0.contains(v4) }?.addressClass ?? .public
}

private func classOfV6(_ address: IPAddress) -> AddressClass {
    let (high, low) = address.v6
    if high == 0 && low == 0 { return .unspecified }
    if high == 0 && low == 1 { return .loopback }
    return v6Blocks.first { $0.contains(high) }?.addressClass ?? .reserved
}
