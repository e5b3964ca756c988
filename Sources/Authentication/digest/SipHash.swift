/// SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012): a keyed hash of short texts whose result tells nothing of the text to who does
/// not know the key.
package struct SipHash: Sendable {
    private let key: (UInt64, UInt64)

    /// - Parameter key: 16 bytes that nobody else knows, as two little-endian words.
    package init(key: (UInt64, UInt64)) { self.key = key }

    package func digest(of bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Digest {
        var state = State(key)
        var offset = range.lowerBound
        while range.upperBound - offset >= 8 {
            state.absorb(word(bytes, offset..<(offset + 8)))
            offset += 8
        }
        state.absorb(UInt64(truncatingIfNeeded: range.count) << 56 | word(bytes, offset..<range.upperBound))
        return state.finish()
    }

    /// The lower half of the digest of the eight bytes of a number, the lowest one first. It takes less time than the whole.
    package func half(of number: UInt64) -> UInt64 {
        var state = State(key)
        state.absorb(number)
        state.absorb(8 << 56)
        return state.finishLow()
    }

    package struct Digest: Sendable, Equatable {
        package let low, high: UInt64

        package init(low: UInt64, high: UInt64) {
            self.low = low
            self.high = high
        }
    }

    /// At most eight bytes, the first one the lowest.
    private func word(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> UInt64 {
        var word: UInt64 = 0
        for index in range.reversed() { word = word << 8 | UInt64(bytes[index]) }
        return word
    }

    private struct State {
        private var a, b, c, d: UInt64

        init(_ key: (UInt64, UInt64)) {
            a = key.0 ^ 0x736F_6D65_7073_6575
            b = key.1 ^ 0x646F_7261_6E64_6F6D ^ 0xEE
            c = key.0 ^ 0x6C79_6765_6E65_7261
            d = key.1 ^ 0x7465_6462_7974_6573
        }

        mutating func absorb(_ word: UInt64) {
            d ^= word
            for _ in 0..<2 { mix() }
            a ^= word
        }

        mutating func finishLow() -> UInt64 {
            c ^= 0xEE
            for _ in 0..<4 { mix() }
            return a ^ b ^ c ^ d
        }

        mutating func finish() -> Digest {
            let low = finishLow()
            b ^= 0xDD
            for _ in 0..<4 { mix() }
            return Digest(low: low, high: a ^ b ^ c ^ d)
        }

        private mutating func mix() {
            a &+= b
            c &+= d
            b = rotated(b, 13) ^ a
            d = rotated(d, 16) ^ c
            a = rotated(a, 32)
            c &+= b
            a &+= d
            b = rotated(b, 17) ^ c
            d = rotated(d, 21) ^ a
            c = rotated(c, 32)
        }

        private func rotated(_ word: UInt64, _ count: UInt64) -> UInt64 { word << count | word >> (64 - count) }
    }
}
