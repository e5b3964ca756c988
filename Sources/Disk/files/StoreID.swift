/// The random name of a store. It is chosen when the store is made, and the marker keeps it. The checksum of each record
/// includes it: whoever does not know it cannot make a body that is taken for a record, even when a damaged segment is searched
/// for records byte by byte.
package struct StoreID: Hashable, Sendable, CustomStringConvertible {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package static func random() -> StoreID {
        var generator = SystemRandomNumberGenerator()
        return StoreID(high: generator.next(), low: generator.next())
    }

    /// For records outside of any store: in archives.
    package static let none = StoreID(high: 0, low: 0)

    /// From 32 hexadecimal digits. Returns nil for anything else.
    package init?(_ text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 32, digits.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
            let high = UInt64(String(decoding: digits[..<16], as: UTF8.self), radix: 16),
            let low = UInt64(String(decoding: digits[16...], as: UTF8.self), radix: 16)
        else { return nil }
        self.init(high: high, low: low)
    }

    package var description: String { [high, low].map(hexadecimal).joined() }

    private func hexadecimal(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

/// One file of one store: each record says which one it is in.
package struct SegmentIdentity: Hashable, Sendable {
    package let store: StoreID
    package let number: UInt32

    package init(store: StoreID, number: UInt32) {
        self.store = store
        self.number = number
    }

    /// For records in archives.
    package static let none = SegmentIdentity(store: .none, number: 0)

    /// The part of the store's name that each record contains.
    var tag: UInt32 { UInt32(truncatingIfNeeded: store.low) }
    /// The part with which the checksum of each head part begins.
    var seed: UInt32 { UInt32(truncatingIfNeeded: store.high) }
}
