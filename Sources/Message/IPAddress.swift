/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address (`::ffff:a.b.c.d`, RFC 4291 §2.5.5.2) equals the IPv4 address, because a rule for
/// one spelling must apply to the other.
package struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64
    package let isV4: Bool

    package init(v4: UInt32) {
        self.init(high: 0, low: UInt64(v4), isV4: true)
    }

    package init(v6 high: UInt64, low: UInt64) {
        if high == 0, low >> 32 == 0xFFFF {
            self.init(v4: UInt32(truncatingIfNeeded: low))
        } else {
            self.init(high: high, low: low, isV4: false)
        }
    }

    private init(high: UInt64, low: UInt64, isV4: Bool) {
        self.high = high
        self.low = low
        self.isV4 = isV4
    }

    /// The 32 bits in host byte order. Nil for an IPv6 address.
    package var v4: UInt32? { isV4 ? UInt32(truncatingIfNeeded: low) : nil }

    /// The 128 bits in host byte order; an IPv4 address as its mapped form.
    package var v6: (high: UInt64, low: UInt64) { isV4 ? (0, 0xFFFF_0000_0000 | low) : (high, low) }

    /// Dotted decimal, or the canonical form of RFC 5952.
    package var description: String {
        if isV4 { return [24, 16, 8, 0].map { String(low >> $0 & 0xFF) }.joined(separator: ".") }
        let groups = (0..<8).map { UInt16(truncatingIfNeeded: ($0 < 4 ? high : low) >> (UInt64(3 - $0 % 4) * 16)) }
        let zeros = longestZeroRun(groups)
        let before = groups[..<zeros.lowerBound].map { String($0, radix: 16) }.joined(separator: ":")
        let after = groups[zeros.upperBound...].map { String($0, radix: 16) }.joined(separator: ":")
        return zeros.isEmpty ? before : before + "::" + after
    }
}

/// The first of the longest runs of two or more zero groups (RFC 5952 §4.2). An empty range at the end if there is none.
private func longestZeroRun(_ groups: [UInt16]) -> Range<Int> {
    var best = 8..<8
    var start = 0
    while start < 8 {
        var end = start
        while end < 8, groups[end] == 0 { end += 1 }
        if end - start >= 2, end - start > best.count { best = start..<end }
        start = end + 1
    }
    return best
}
