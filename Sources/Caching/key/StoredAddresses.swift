/// The addresses from which a response was fetched, or for which it was served, if its key is that of a digest and says none of them (`DigestKey`).
/// Purges, listings and exports by host or prefix find the response by these. To look through all keys of digests instead would read every layer of
/// a registry for the listing of one repository.
///
/// They are bounded. Once there are `countMax`, no further one is noted: a purge or listing by it does not find the response. To put it in the
/// place of another would write the head to the disk with each use, where clients ask more mirrors in turn than there is room for.
package struct StoredAddresses: Sendable, Equatable {
    package static let countMax = 16
    /// A longer address is known by its first bytes. The disk needs six more bytes at most for an entry of 255 (`AddressTag`, Disk).
    package static let addressBytesMax = 249

    /// Normalised URIs, the oldest first. Each is there once.
    package private(set) var list: [[UInt8]] = []

    package init() {}

    /// What exceeds the limits, which another version or a damaged head may have, is left out.
    package init(_ addresses: some Sequence<[UInt8]>) { for address in addresses { _ = note(address[...]) } }

    package var isEmpty: Bool { list.isEmpty }

    /// Returns false if nothing has changed: the address was there before, or there is no room for it.
    package mutating func note(_ uri: ArraySlice<UInt8>) -> Bool {
        guard canNote(uri) else { return false }
        list.append(Array(uri.prefix(Self.addressBytesMax)))
        return true
    }

    /// Whether `note` would change anything. Allocates nothing.
    package func canNote(_ uri: ArraySlice<UInt8>) -> Bool {
        let beginning = uri.prefix(Self.addressBytesMax)
        return list.count < Self.countMax && !beginning.isEmpty && !list.contains { $0.elementsEqual(beginning) }
    }

    /// Whether the address begins so, or may do so: of a long one, only the beginning is known.
    package static func begins(_ address: [UInt8], with prefix: [UInt8]) -> Bool {
        address.starts(with: prefix) || address.count == addressBytesMax && prefix.starts(with: address)
    }
}
