package import Message

/// Parses a response head: `status-line *( field-line CRLF ) CRLF` (RFC 9112 §2.1, §4).
///
/// - Parameters:
///   - bytes: the bytes from the end of the previous message on. When more has arrived, call again with the same bytes and the new ones.
///   - head: overwritten. Valid only if the function returns true.
///   - progress: a fresh value for each head, interim ones included.
/// - Returns: false if the head is incomplete.
/// - Throws: the violation of the first invalid line.
package func parseResponseHead(
    _ bytes: borrowing Span<UInt8>, into head: inout ResponseHead, progress: inout HeadProgress, limits: Limits
) throws(FramingError) -> Bool {
    let raw = unsafe bytes.bytes
    if !progress.isFresh {
        let isWhole = try HeadParser.resume(raw, .response, progress: &progress, limits: limits) {
            bytes, start throws(FramingError) in
            var scratch = ResponseHead()
            return try parseStatusLine(bytes, at: start, into: &scratch)
        }
        guard isWhole else { return false }
    }
    guard let fieldsStart = try parseStartLine(raw, into: &head, progress: &progress, limits: limits) else {
        return false
    }
    guard
        let end = try HeadParser.parseFields(
            raw, .response, from: fieldsStart, into: &head.fields, progress: &progress, limits: limits)
    else { return false }
    head.byteCount = end
    return true
}

/// Parses the status line. Returns the offset of the fields, or nil if more bytes are needed.
private func parseStartLine(
    _ bytes: RawSpan, into head: inout ResponseHead, progress: inout HeadProgress, limits: Limits
) throws(FramingError) -> Int? {
    let next: Int
    do throws(FramingError) {
        next = try parseStatusLine(bytes, at: 0, into: &head)
    } catch {
        return try HeadParser.startLineFailed(error, bytes, .response, at: 0, progress: &progress, limits: limits)
    }
    guard next >= 0 else {
        return try HeadParser.incompleteStart(bytes, .response, at: 0, progress: &progress, limits: limits)
    }
    try HeadParser.checkStartLine(.response, from: 0, to: next &- 1, limits: limits)
    return next
}

/// Parses `HTTP-version SP status-code SP [ reason-phrase ] CRLF` (RFC 9112 §4).
///
/// The second space may be missing if there is no reason: some servers omit it.
///
/// - Returns: the offset of the next line; -1 if the bytes end before it.
func parseStatusLine(_ bytes: RawSpan, at start: Int, into head: inout ResponseHead) throws(FramingError) -> Int {
    // The status has a fixed place, so a complete line that is too short for it is invalid.
    guard start &+ 14 <= bytes.byteCount else {
        guard let lineFeed = indexOfLineFeed(bytes, from: start) else { return -1 }
        throw shortLineError(bytes, start, lineFeed)
    }
    do throws(FramingError) {
        head.minorVersion = try parseVersion(bytes, at: start)
    } catch { throw error == .badVersion ? .badStatusLine : error }
    guard loadByte(bytes, start &+ 8) == 0x20 else { throw .badStatusLine }
    head.status = try parseStatus(bytes, at: start &+ 9)
    let delimiter = loadByte(bytes, start &+ 12)
    guard delimiter == 0x20 || delimiter == 0x0D || delimiter == 0x0A else { throw .badStatus }
    let reasonStart = delimiter == 0x20 ? start &+ 13 : start &+ 12
    let end = endOfFieldContent(bytes, from: reasonStart)
    guard end < bytes.byteCount else { return -1 }
    if loadByte(bytes, end) == 0x0D {
        guard end &+ 1 < bytes.byteCount else { return -1 }
        guard loadByte(bytes, end &+ 1) == 0x0A else { throw .bareCarriageReturn }
        head.reasonRange = reasonStart..<end
        return end &+ 2
    }
    throw loadByte(bytes, end) == 0x0A ? .bareLineFeed : .badStatusLine
}

/// Parses three digits, 100 to 999. Those above 599 are invalid, but are to be handled as 5xx (RFC 9110 §15; `StatusClass`).
private func parseStatus(_ bytes: RawSpan, at start: Int) throws(FramingError) -> UInt16 {
    var status: UInt16 = 0
    for index in start..<(start + 3) {
        let byte = loadByte(bytes, index)
        guard isDigit(byte) else { throw .badStatus }
        status = status * 10 + UInt16(byte - 0x30)
    }
    guard status >= 100 else { throw .badStatus }
    return status
}

/// The error of a complete line of fewer than fourteen bytes. It is the same as if bytes of the next line had arrived.
private func shortLineError(_ bytes: RawSpan, _ start: Int, _ lineFeed: Int) -> FramingError {
    do throws(FramingError) {
        guard lineFeed - start >= 8 else { return .badStatusLine }
        _ = try parseVersion(bytes, at: start)
        guard loadByte(bytes, start + 8) == 0x20 else { return .badStatusLine }
        guard lineFeed - start >= 12 else { return .badStatus }
        _ = try parseStatus(bytes, at: start + 9)
        return .bareLineFeed
    } catch { return error == .badVersion ? .badStatusLine : error }
}
