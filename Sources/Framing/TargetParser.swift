import Message

/// Parses the four forms of a request-target (RFC 9112 §3.2). The caller has checked that its bytes are visible ASCII without "#".
@inline(__always)
func parseTarget(_ bytes: RawSpan, _ range: Range<Int>, _ method: Method) throws(FramingError) -> RequestTarget {
    if method == .connect { return try parseAuthorityForm(bytes, range) }
    let first = loadByte(bytes, range.lowerBound)
    if first == 0x2F { return RequestTarget(form: .origin, scheme: .http, host: 0..<0, port: 80, path: range) }
    if first == 0x2A, range.count == 1 {
        guard method == .options else { throw .formNotForMethod }
        return RequestTarget(form: .asterisk, scheme: .http, host: 0..<0, port: 80, path: range)
    }
    return try parseAbsoluteForm(bytes, range)
}

/// Parses `absolute-URI` with a scheme that Larder forwards (§3.2.2).
private func parseAbsoluteForm(_ bytes: RawSpan, _ range: Range<Int>) throws(FramingError) -> RequestTarget {
    // "http://" in any case. ":" and "/" have the bit for lower case set anyway, and the bytes that it could confuse are not VCHAR.
    let word = loadWord(bytes, range.lowerBound) | 0x2020_2020_2020_2020
    let scheme: Scheme
    let start: Int
    if word & 0xFF_FFFF_FFFF_FFFF == 0x2F_2F3A_7074_7468, range.count >= 7 {
        (scheme, start) = (.http, range.lowerBound &+ 7)
    } else if word == 0x2F2F_3A73_7074_7468, range.count >= 8 {
        (scheme, start) = (.https, range.lowerBound &+ 8)
    } else {
        throw notAbsolute(bytes, range)
    }
    let (authority, end) = try parsePrecedingAuthority(bytes, start..<range.upperBound)
    var target = RequestTarget(
        form: .absolute, scheme: scheme, host: authority.host, port: authority.port ?? scheme.defaultPort,
        path: end..<range.upperBound)
    target.isNormalised = isNormalisedURI(target, bytes)
    return target
}

/// Parses the authority at the beginning of the range. `end` is where path or query begin.
@inline(__always)
private func parsePrecedingAuthority(
    _ bytes: RawSpan, _ range: Range<Int>
) throws(FramingError) -> (Authority, end: Int) {
    if let plain = parsePlainAuthority(bytes, from: range.lowerBound, to: range.upperBound) { return plain }
    var end = range.lowerBound
    while end < range.upperBound, !endsAuthority(loadByte(bytes, end)) { end &+= 1 }
    return (try parseTargetAuthority(bytes, range.lowerBound..<end), end)
}

/// Parses `uri-host ":" port` for CONNECT (§3.2.3). The port is required (RFC 9110 §9.3.6).
private func parseAuthorityForm(_ bytes: RawSpan, _ range: Range<Int>) throws(FramingError) -> RequestTarget {
    for index in range where endsAuthority(loadByte(bytes, index)) { throw .formNotForMethod }
    if range.count == 1, loadByte(bytes, range.lowerBound) == 0x2A { throw .formNotForMethod }
    let authority = try parseTargetAuthority(bytes, range)
    guard let port = authority.port else { throw .badPort }
    return RequestTarget(
        form: .authority, scheme: .http, host: authority.host, port: port, path: range.upperBound..<range.upperBound)
}

private func parseTargetAuthority(_ bytes: RawSpan, _ range: Range<Int>) throws(FramingError) -> Authority {
    do throws(Authority.Failure) {
        return try parseAuthority(bytes, in: range)
    } catch {
        switch error {
        case .userinfo: throw .userinfoInTarget
        case .host: throw .badHostInTarget
        case .port: throw .badPort
        }
    }
}

/// The error for a target with another scheme, in authority-form without CONNECT, or in no valid form.
private func notAbsolute(_ bytes: RawSpan, _ range: Range<Int>) -> FramingError {
    guard isAlpha(loadByte(bytes, range.lowerBound)) else { return .badTarget }
    var index = range.lowerBound
    while index < range.upperBound, loadByte(bytes, index) != 0x3A { index += 1 }
    guard index < range.upperBound else { return .badTarget }
    let isPort = index + 1 < range.upperBound && isDigit(loadByte(bytes, index + 1))
    return isPort ? .formNotForMethod : .schemeNotSupported
}

extension RequestHead {
    /// Checks Host (RFC 9112 §3.2), and takes host and port from it if the target has none.
    ///
    /// A Host that differs from an absolute target is not an error: the target applies (§3.2.2).
    @inline(__always)
    mutating func completeTarget(_ bytes: borrowing Span<UInt8>) throws(FramingError) {
        guard fields.present.contains(.host) else {
            // HTTP/1.0 does not require Host (§3.2).
            if minorVersion == 0 { return }
            throw .missingHost
        }
        var value: Range<Int>?
        for line in fields.lines {
            // A pattern, since it is compared in place.
            guard case .host = line.name else { continue }
            guard value == nil else { throw .repeatedHost }
            value = line.valueRange
        }
        guard let value, !value.isEmpty else { return }
        let raw = unsafe bytes.bytes
        let authority: Authority
        switch target.form {
        case .absolute, .authority:
            // The target applies, so Host only has to be valid. It is if it equals the host of the target.
            let start = target.hostRange.lowerBound
            let count = target.pathRange.lowerBound - start
            if value.count == count, equal(raw, value.lowerBound, start, count: count) { return }
        case .origin, .asterisk: break
        }
        if let (plain, end) = parsePlainAuthority(raw, from: value.lowerBound, to: value.upperBound),
            end == value.upperBound
        {
            authority = plain
        } else {
            do throws(Authority.Failure) {
                authority = try parseAuthority(raw, in: value)
            } catch { throw .badHost }
        }
        switch target.form {
        case .origin, .asterisk:
            target.hostRange = authority.host
            target.port = authority.port ?? target.scheme.defaultPort
        case .absolute, .authority: break
        }
    }
}
