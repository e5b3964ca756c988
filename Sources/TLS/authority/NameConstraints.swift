/// The names for which an authority may certify (RFC 5280 §4.2.1.10), as far as host names and addresses are concerned.
package struct NameConstraints: Equatable, Sendable {
    /// A range of addresses: 4 or 16 bytes, and as many of the mask.
    package struct AddressRange: Equatable, Sendable {
        package let address: [UInt8]
        package let mask: [UInt8]

        package init(address: [UInt8], mask: [UInt8]) {
            precondition(address.count == mask.count && (address.count == 4 || address.count == 16))
            self.address = address
            self.mask = mask
        }

        /// One address alone.
        package init(_ address: [UInt8]) {
            self.init(address: address, mask: [UInt8](repeating: 0xFF, count: address.count))
        }

        package static let allIPv4 = AddressRange(
            address: Array(repeating: 0, count: 4), mask: Array(repeating: 0, count: 4))
        package static let allIPv6 = AddressRange(
            address: Array(repeating: 0, count: 16), mask: Array(repeating: 0, count: 16))

        func contains(_ other: [UInt8]) -> Bool {
            other.count == address.count
                && address.indices.allSatisfy { address[$0] & mask[$0] == other[$0] & mask[$0] }
        }

        /// `192.0.2.0/24`, or the mask in full if it is no prefix.
        package var text: String {
            let length = mask.reduce(0) { $0 + $1.nonzeroBitCount }
            let prefix = mask.indices.map { index in
                let ones = min(max(length - index * 8, 0), 8)
                return UInt8(truncatingIfNeeded: 0xFF00 >> ones)
            }
            return "\(addressText(address))/\(prefix == mask ? String(length) : addressText(mask))"
        }
    }

    /// `example.org` stands for itself and every name below it, `.example.org` for the names below it alone, the empty name for all. In lower case.
    /// If a list of permitted names is empty, names of its kind are not restricted.
    package var permittedNames: [String] = []
    package var excludedNames: [String] = []
    package var permittedAddresses: [AddressRange] = []
    package var excludedAddresses: [AddressRange] = []
    /// There are constraints on subjects. A leaf without a subject meets them.
    package var constrainsSubjects = false

    package init() {}

    package func permits(_ name: LeafName) -> Bool {
        switch name {
        case .dns(let name):
            func isBelow(_ base: String) -> Bool { NameConstraints.isWithin(name, base) }
            return !excludedNames.contains(where: isBelow)
                && (permittedNames.isEmpty || permittedNames.contains(where: isBelow))
        case .address(let address):
            return !excludedAddresses.contains { $0.contains(address) }
                && (permittedAddresses.isEmpty || permittedAddresses.contains { $0.contains(address) })
        }
    }

    private static func isWithin(_ name: String, _ base: String) -> Bool {
        guard !base.isEmpty, name != base else { return true }
        guard name.hasSuffix(base) else { return false }
        let dot = UInt8(ascii: ".")
        return base.utf8.first == dot || name.utf8.dropLast(base.utf8.count).last == dot
    }
}
