/// Names one store, at random: made with it, and kept in its marker. Whoever does not know it can not make bytes that pass for a
/// record of the store: what a body holds is never taken for one, even where a damaged segment is searched for records.
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

    /// Of records that are in no store: in archives.
    package static let none = StoreID(high: 0, low: 0)

    /// From 32 hexadecimal digits; nil where it is anything else.
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

/// One file of one store: what its records say of where they are.
package struct SegmentIdentity: Hashable, Sendable {
    package let store: StoreID
    package let number: UInt32

    package init(store: StoreID, number: UInt32) {
        self.store = store
        self.number = number
    }

    /// Of records in archives.
    package static let none = SegmentIdentity(store: .none, number: 0)

    /// What every record carries of the store's name.
    var tag: UInt32 { UInt32(truncatingIfNeeded: store.low) }
    /// What every checksum of a record's head part begins with.
    var seed: UInt32 { UInt32(truncatingIfNeeded: store.high) }
}
