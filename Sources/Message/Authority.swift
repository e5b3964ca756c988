/// `host [ ":" port ]` of a target, a Host field or a URI (RFC 3986 §3.2, RFC 9112 §3.2), as offsets.
///
/// Userinfo is refused (RFC 9110 §4.2.4).
package struct Authority: Sendable, Equatable {
    /// The host, with brackets if it is an IP literal. Never empty. Without the dot at the end that makes a name absolute in DNS (RFC 1034 §3.1):
    /// with it and without it is one host, and everything behind the parser knows the name in this form alone.
    package var host: Range<Int>
    /// The port. Nil if there is none, or only its colon.
    package var port: UInt16?

    package enum Failure: Error { case userinfo, host, port }

    @inlinable
    package init(host: Range<Int>, port: UInt16?) {
        self.host = host
        self.port = port
    }
}

/// Parses an authority in a span of bytes.
package func parseAuthority(
    _ bytes: borrowing Span<UInt8>, in range: Range<Int>
) throws(Authority.Failure) -> Authority {
    try parseAuthority(unsafe bytes.bytes, in: range)
}

/// Parses a host: a name or an IP literal. The `reg-name` of the grammar also allows sub-delims and percent-encoding. No name in DNS has
/// them, and two recipients may decode them differently, so they are refused, as are zone ids (RFC 6874).
package func parseAuthority(
    _ bytes: RawSpan, in range: Range<Int>
) throws(Authority.Failure) -> Authority {
    let hostEnd = try endOfHost(bytes, in: range)
    guard hostEnd > range.lowerBound, hostEnd - range.lowerBound <= 255 else { throw .host }
    let host = range.lowerBound..<endOfName(bytes, hostEnd)
    guard hostEnd < range.upperBound else { return Authority(host: host, port: nil) }
    return Authority(host: host, port: try parsePort(bytes, in: (hostEnd + 1)..<range.upperBound))
}

/// Parses the usual form of an authority: a name or dotted address, with or without a port, up to "/", "?" or `limit`.
///
/// What it accepts, `parseAuthority` accepts with the same result. Returns nil for everything unusual, valid or not; `parseAuthority`
/// decides about that.
package func parsePlainAuthority(_ bytes: RawSpan, from start: Int, to limit: Int) -> (Authority, end: Int)? {
    guard start > 0, start < limit, byte(bytes, start) != 0x2E else { return nil }
    let hostEnd = scanPairs(bytes, from: start, to: limit) { block, before in
        .!isNameByte(block) .| ((block .== vector(0x2E)) .& (before .== vector(0x2E)))
    }
    guard hostEnd > start, hostEnd &- start <= 255 else { return nil }
    let host = start..<endOfName(bytes, hostEnd)
    if hostEnd == limit || endsAuthority(byte(bytes, hostEnd)) { return (Authority(host: host, port: nil), hostEnd) }
    guard byte(bytes, hostEnd) == 0x3A else { return nil }
    var value: UInt32 = 0
    var index = hostEnd &+ 1
    while index < limit {
        let digit = byte(bytes, index) &- 0x30
        guard digit < 10 else { break }
        value = value &* 10 &+ UInt32(digit)
        guard value <= 65535 else { return nil }
        index &+= 1
    }
    guard value > 0, index == limit || endsAuthority(byte(bytes, index)) else { return nil }
    return (Authority(host: host, port: UInt16(truncatingIfNeeded: value)), index)
}

/// Whether the byte is "/" or "?", which begin a path or a query.
@inlinable @inline(__always)
package func endsAuthority(_ byte: UInt8) -> Bool { byte == 0x2F || byte == 0x3F }

@inline(__always)
private func byte(_ bytes: RawSpan, _ index: Int) -> UInt8 {
    unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)
}

/// The end of the host without a dot at its end. No name begins with a dot, so something is left.
@inline(__always)
private func endOfName(_ bytes: RawSpan, _ hostEnd: Int) -> Int {
    byte(bytes, hostEnd &- 1) == 0x2E ? hostEnd &- 1 : hostEnd
}

/// The index of the colon before the port, or the end. Every byte before it is valid.
private func endOfHost(_ bytes: RawSpan, in range: Range<Int>) throws(Authority.Failure) -> Int {
    if !range.isEmpty, byte(bytes, range.lowerBound) == 0x5B { return try endOfLiteral(bytes, in: range) }
    var index = range.lowerBound
    var previous: UInt8 = 0x2E
    while index < range.upperBound {
        let next = byte(bytes, index)
        guard isUnreserved(next) else { break }
        // A name has no empty labels, except the one behind a dot at its end (RFC 1034 §3.1).
        if next == 0x2E, previous == 0x2E { throw .host }
        previous = next
        index &+= 1
    }
    if index == range.upperBound || byte(bytes, index) == 0x3A {
        // Up to here `user:password@host` looks like host and port.
        if contains(bytes, 0x40, in: index..<range.upperBound) { throw .userinfo }
        return index
    }
    throw contains(bytes, 0x40, in: index..<range.upperBound) ? .userinfo : .host
}

/// Parses `"[" IPv6address "]"` (RFC 3986 §3.2.2). The future forms (`[v1.…]`) do not exist.
private func endOfLiteral(_ bytes: RawSpan, in range: Range<Int>) throws(Authority.Failure) -> Int {
    var index = range.lowerBound + 1
    var text: [UInt8] = []
    while index < range.upperBound, byte(bytes, index) != 0x5D, text.count < 46 {
        text.append(byte(bytes, index))
        index += 1
    }
    guard index < range.upperBound, byte(bytes, index) == 0x5D, parseIPv6(text[...]) != nil else { throw .host }
    index += 1
    guard index == range.upperBound || byte(bytes, index) == 0x3A else { throw .host }
    return index
}

private func contains(_ bytes: RawSpan, _ wanted: UInt8, in range: Range<Int>) -> Bool {
    var index = range.lowerBound
    while index < range.upperBound {
        if byte(bytes, index) == wanted { return true }
        index &+= 1
    }
    return false
}

/// Parses a port, 1 to 65535. Returns nil if there are no digits (RFC 3986 §3.2.3 allows `host:`).
private func parsePort(_ bytes: RawSpan, in range: Range<Int>) throws(Authority.Failure) -> UInt16? {
    if range.isEmpty { return nil }
    var value: UInt32 = 0
    for index in range {
        guard isDigit(byte(bytes, index)) else { throw .port }
        value = value * 10 + UInt32(byte(bytes, index) - 0x30)
        if value > 65535 { throw .port }
    }
    guard value > 0 else { throw .port }
    return UInt16(value)
}
