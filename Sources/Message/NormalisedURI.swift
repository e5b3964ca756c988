// One spelling for all equivalent URIs (RFC 9110 §4.2.3, RFC 3986 §6.2.2), from which cache keys are made.
//
// Scheme and host are in lower case, a dot at the end of the host and the default port are dropped, and an empty path is "/".
// Path and query do not change (docs/decisions/0008-paths-as-they-stand.md).

/// Appends the target as `scheme://host[:port]/path?query`.
///
/// A target of OPTIONS with an empty path or "*" is appended as "*" after the authority, which no other URI has. Authority-form is
/// appended as `host:port`, after `http://`.
package func appendNormalisedURI(_ target: RequestTarget, of bytes: borrowing Span<UInt8>, to result: inout [UInt8]) {
    if let whole = target.normalisedRange { return result.append(bytes, whole) }
    appendNormalisedOrigin(target.scheme, bytes, host: target.hostRange, port: target.port, to: &result)
    switch target.form {
    case .origin, .absolute: appendPath(bytes, target.pathRange, to: &result)
    case .asterisk: result.append(0x2A)
    case .authority: break
    }
}

/// `scheme://host[:port]`.
package func appendNormalisedOrigin(
    _ scheme: Scheme, _ bytes: borrowing Span<UInt8>, host: Range<Int>, port: UInt16, to result: inout [UInt8]
) {
    switch scheme {
    case .http: result.append("http://")
    case .https: result.append("https://")
    }
    appendNormalisedHost(bytes, host, to: &result)
    if port != scheme.defaultPort {
        result.append(0x3A)
        appendDecimal(UInt64(port), to: &result)
    }
}

/// Appends the host in lower case.
package func appendNormalisedHost(_ bytes: borrowing Span<UInt8>, _ host: Range<Int>, to result: inout [UInt8]) {
    let start = result.count
    result.append(bytes, host)
    for index in start..<result.count where result[index] &- 0x41 < 26 { result[index] |= 0x20 }
}

/// Appends path and query without a change. A proxy must not change them (RFC 9110 §7.7), so an origin may answer equivalent spellings
/// differently, and they must not share a stored response.
package func appendPath(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>, to result: inout [UInt8]) {
    if range.isEmpty || bytes[range.lowerBound] != 0x2F { result.append(0x2F) }
    result.append(bytes, range)
}

/// Whether the bytes of a target in absolute-form, as received, are its normalised URI.
package func isNormalisedURI(_ target: RequestTarget, _ bytes: RawSpan) -> Bool {
    let (host, path) = (target.hostRange, target.pathRange)
    guard !path.isEmpty, loadByte(bytes, path.lowerBound) == 0x2F,
        hasLowercaseScheme(target.scheme, bytes, before: host.lowerBound)
    else { return false }
    if host.upperBound == path.lowerBound {
        guard target.port == target.scheme.defaultPort else { return false }
    } else {
        // There may be a dot behind the host, which is no part of it.
        guard target.port != target.scheme.defaultPort, path.lowerBound - host.upperBound > 1,
            loadByte(bytes, host.upperBound) == 0x3A,
            loadByte(bytes, host.upperBound + 1) != 0x30
        else { return false }
    }
    return scan(bytes, from: host.lowerBound, to: host.upperBound, { ($0 &- vector(0x41)) .< vector(26) })
        == host.upperBound
}

private func hasLowercaseScheme(_ scheme: Scheme, _ bytes: RawSpan, before host: Int) -> Bool {
    let word = loadWord(bytes, host - scheme.prefixLength)
    return switch scheme {
    case .http: word & 0xFF_FFFF_FFFF_FFFF == 0x2F_2F3A_7074_7468
    case .https: word == 0x2F2F_3A73_7074_7468
    }
}

/// Removes dot segments (RFC 3986 §5.2.4) from the path that begins with "/" at `start`. A query behind it does not change.
///
/// It works in place: the position that is written is never beyond the one that is read.
package func removeDotSegments(_ bytes: inout [UInt8], from start: Int) {
    let pathEnd = bytes[start...].firstIndex(of: 0x3F) ?? bytes.count
    var write = start
    var read = start
    while read < pathEnd {
        // `read` is at the "/" before a segment.
        let segment = read + 1
        let end = bytes[segment..<pathEnd].firstIndex(of: 0x2F) ?? pathEnd
        let isDot = end - segment == 1 && bytes[segment] == 0x2E
        let isDotDot = end - segment == 2 && bytes[segment] == 0x2E && bytes[segment + 1] == 0x2E
        if isDotDot {
            while write > start, bytes[write - 1] != 0x2F { write -= 1 }
            if write > start { write -= 1 }
        }
        if isDot || isDotDot {
            if end == pathEnd {
                bytes[write] = 0x2F
                write += 1
            }
        } else {
            for index in read..<end {
                bytes[write] = bytes[index]
                write += 1
            }
        }
        read = end
    }
    bytes.removeSubrange(write..<pathEnd)
}
