/// One spelling for all URIs that mean the same (RFC 9110 §4.2.3, RFC 3986 §6.2.2): what cache keys are made of.
///
/// Scheme and host in lower case, a dot at the end of the host dropped, the default port left away, percent-encoding of
/// unreserved characters undone and the rest in upper case, dot segments removed, an empty path "/".

/// Appends the target as `scheme://host[:port]/path?query`.
///
/// A target of OPTIONS with an empty path or "*" is appended as "*" after the authority, which no other URI is;
/// authority-form as `host:port`, after `http://`.
package func appendNormalisedURI(_ target: RequestTarget, of bytes: borrowing Span<UInt8>, to result: inout [UInt8]) {
    appendNormalisedOrigin(target.scheme, bytes, host: target.hostRange, port: target.port, to: &result)
    switch target.form {
    case .origin, .absolute: appendNormalisedPath(bytes, target.pathRange, to: &result)
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

/// In lower case, without the dot that makes a name absolute in DNS: it names the same host.
package func appendNormalisedHost(_ bytes: borrowing Span<UInt8>, _ host: Range<Int>, to result: inout [UInt8]) {
    var end = host.upperBound
    if host.count > 1, bytes[end - 1] == 0x2E { end -= 1 }
    let start = result.count
    result.append(bytes, host.lowerBound..<end)
    for index in start..<result.count where result[index] &- 0x41 < 26 { result[index] |= 0x20 }
}

/// Path and query. What needs no change, as nearly everything, is copied at once.
package func appendNormalisedPath(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>, to result: inout [UInt8]) {
    guard !range.isEmpty, bytes[range.lowerBound] == 0x2F else {
        result.append(0x2F)
        return appendDecodingUnreserved(bytes, range, to: &result)
    }
    guard needsNormalising(bytes, range) else { return result.append(bytes, range) }
    let start = result.count
    appendDecodingUnreserved(bytes, range, to: &result)
    removeDotSegments(&result, from: start)
}

/// Whether there is any percent sign, or a dot that begins a segment.
private func needsNormalising(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Bool {
    var previous: UInt8 = 0
    var index = range.lowerBound
    while index < range.upperBound {
        let byte = bytes[index]
        if byte == 0x25 || (byte == 0x2E && previous == 0x2F) { return true }
        previous = byte
        index &+= 1
    }
    return false
}

/// RFC 3986 §6.2.2.1, §6.2.2.2. A percent sign that begins no encoding stays as it is.
private func appendDecodingUnreserved(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>, to result: inout [UInt8]) {
    var index = range.lowerBound
    while index < range.upperBound {
        let byte = bytes[index]
        index += 1
        guard byte == 0x25, index + 1 < range.upperBound, let high = hexValue(bytes[index]),
            let low = hexValue(bytes[index + 1])
        else {
            result.append(byte)
            continue
        }
        let decoded = high << 4 | low
        if isUnreserved(decoded) {
            result.append(decoded)
        } else {
            result.append(contentsOf: [0x25, upperHexDigit(high), upperHexDigit(low)])
        }
        index += 2
    }
}

package func upperHexDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }

/// RFC 3986 §5.2.4 on the path that begins at `start` with "/"; a query behind it stays.
///
/// In place: what is written never overtakes what is read.
package func removeDotSegments(_ bytes: inout [UInt8], from start: Int) {
    let pathEnd = bytes[start...].firstIndex(of: 0x3F) ?? bytes.count
    var write = start
    var read = start
    while read < pathEnd {
        // `read` stands on the "/" before a segment.
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
