package import Message

/// Parses a request head: `request-line *( field-line CRLF ) CRLF` (RFC 9112 §2.1, §3).
///
/// - Parameters:
///   - bytes: the bytes from the end of the previous message on. When more has arrived, call again with the same bytes and the new ones.
///   - head: overwritten. Valid only if the function returns true.
///   - progress: a fresh value for each head.
/// - Returns: false if the head is incomplete.
/// - Throws: the violation of the first invalid line.
package func parseRequestHead(
    _ bytes: borrowing Span<UInt8>, into head: inout RequestHead, progress: inout HeadProgress, limits: Limits
) throws(FramingError) -> Bool {
    let raw = unsafe bytes.bytes
    guard let fieldsStart = try parseStart(raw, into: &head, progress: &progress, limits: limits) else { return false }
    guard
        let end = try HeadParser.parseFields(
            raw, .request, from: fieldsStart, into: &head.fields, progress: &progress, limits: limits)
    else { return false }
    head.byteCount = end
    try head.completeTarget(bytes)
    return true
}

/// The same, for a connection that may repeat what it has sent.
///
/// - Parameter owner: the number of the connection; not zero.
package func parseRequestHead(
    _ bytes: borrowing Span<UInt8>, into head: inout RequestHead, progress: inout HeadProgress, limits: Limits,
    memory: borrowing HeadMemory, owner: UInt64
) throws(FramingError) -> Bool {
    let raw = unsafe bytes.bytes
    let fieldsStart: Int
    if progress.isFresh, let next = memory.targets.recall(raw, of: owner, into: &head, limits: limits) {
        fieldsStart = next
    } else {
        guard let next = try parseStart(raw, into: &head, progress: &progress, limits: limits) else { return false }
        fieldsStart = next
        memory.targets.keep(raw, of: owner, head)
    }
    if memory.fields.recall(raw, from: fieldsStart, of: owner, into: &head.fields, limits: limits) {
        head.byteCount = raw.byteCount
        // The same Host was valid in the request before, and the target applies.
        if head.target.form == .absolute, head.fields.present.contains(.host) { return true }
        try head.completeTarget(bytes)
        return true
    }
    guard
        let end = try HeadParser.parseFields(
            raw, .request, from: fieldsStart, into: &head.fields, progress: &progress, limits: limits)
    else { return false }
    head.byteCount = end
    try head.completeTarget(bytes)
    memory.fields.keep(raw, from: fieldsStart, to: end, of: owner, head.fields)
    return true
}

/// Parses what precedes the fields. Returns their offset, or nil if more bytes are needed.
@inline(__always)
private func parseStart(
    _ raw: RawSpan, into head: inout RequestHead, progress: inout HeadProgress, limits: Limits
) throws(FramingError) -> Int? {
    if !progress.isFresh {
        let isWhole = try HeadParser.resume(raw, .request, progress: &progress, limits: limits) {
            bytes, start throws(FramingError) in
            var scratch = RequestHead()
            return try parseRequestLine(bytes, at: start, into: &scratch, limits: limits)
        }
        guard isWhole else { return nil }
    }
    guard let start = try skipEmptyLines(raw, progress: &progress, limits: limits) else { return nil }
    return try parseStartLine(raw, at: start, into: &head, progress: &progress, limits: limits)
}

/// Skips empty lines before the request line, which some clients send behind a body (RFC 9112 §2.2). Returns nil if more bytes are
/// needed.
@inline(__always)
private func skipEmptyLines(
    _ bytes: RawSpan, progress: inout HeadProgress, limits: Limits
) throws(FramingError) -> Int? {
    var start = 0
    while HeadParser.isLeadingEmptyLine(bytes, start) {
        start &+= 2
        try HeadParser.checkLeading(start)
    }
    if start < bytes.byteCount { return start }
    return try HeadParser.incompleteStart(bytes, .request, at: start, progress: &progress, limits: limits)
}

/// Parses the request line. Returns the offset of the fields, or nil if more bytes are needed.
@inline(__always)
private func parseStartLine(
    _ bytes: RawSpan, at start: Int, into head: inout RequestHead, progress: inout HeadProgress, limits: Limits
) throws(FramingError) -> Int? {
    let next: Int
    do throws(FramingError) {
        next = try parseRequestLine(bytes, at: start, into: &head, limits: limits)
    } catch {
        return try HeadParser.startLineFailed(error, bytes, .request, at: start, progress: &progress, limits: limits)
    }
    guard next >= 0 else {
        return try HeadParser.incompleteStart(bytes, .request, at: start, progress: &progress, limits: limits)
    }
    try HeadParser.checkStartLine(.request, from: start, to: next &- 1, limits: limits)
    return next
}

/// Parses `method SP request-target SP HTTP-version CRLF` (RFC 9112 §3), with single spaces as in the grammar.
///
/// - Returns: the offset of the next line; -1 if the bytes end before it.
func parseRequestLine(
    _ bytes: RawSpan, at start: Int, into head: inout RequestHead, limits: Limits
) throws(FramingError) -> Int {
    let targetStart: Int
    if let (method, length) = commonMethod(loadWord(bytes, start)) {
        targetStart = start &+ length &+ 1
        head.methodRange = start..<(targetStart &- 1)
        head.method = method
    } else {
        let methodEnd = endOfToken(bytes, from: start)
        guard methodEnd < bytes.byteCount else { return -1 }
        let delimiter = loadByte(bytes, methodEnd)
        guard methodEnd > start, delimiter == 0x20 else { throw methodError(delimiter, isEmpty: methodEnd == start) }
        targetStart = methodEnd &+ 1
        head.methodRange = start..<methodEnd
        head.method = Method.classify(bytes, head.methodRange)
    }
    let targetEnd = endOfTarget(bytes, from: targetStart)
    guard targetEnd < bytes.byteCount else { return -1 }
    guard targetEnd > targetStart, loadByte(bytes, targetEnd) == 0x20 else {
        throw targetError(loadByte(bytes, targetEnd), isEmpty: targetEnd == targetStart)
    }
    let versionStart = targetEnd &+ 1
    guard versionStart &+ 10 <= bytes.byteCount else {
        return try parseShortVersion(bytes, at: versionStart)
    }
    head.minorVersion = try parseVersion(bytes, at: versionStart)
    guard isCRLF(bytes, versionStart &+ 8) else { throw endError(bytes, at: versionStart &+ 8) }
    guard targetEnd &- targetStart <= limits.targetBytesMax else { throw .targetTooLong }
    head.targetRange = targetStart..<targetEnd
    head.target = try parseTarget(bytes, head.targetRange, head.method)
    return versionStart &+ 10
}

/// The methods of nearly all requests, each with its space compared at once.
@inline(__always)
func commonMethod(_ word: UInt64) -> (Method, length: Int)? {
    if word & 0xFFFF_FFFF == 0x2054_4547 { return (.get, 3) }
    if word & 0xFF_FFFF_FFFF == 0x20_4441_4548 { return (.head, 4) }
    return nil
}

private func methodError(_ byte: UInt8, isEmpty: Bool) -> FramingError {
    switch byte {
    case 0x0A: .bareLineFeed
    case 0x0D: isEmpty ? .bareCarriageReturn : .badRequestLine
    default: isEmpty ? .badRequestLine : .badMethod
    }
}

private func targetError(_ byte: UInt8, isEmpty: Bool) -> FramingError {
    switch byte {
    case 0x23: .fragmentInTarget
    case 0x20, 0x0D: .badRequestLine  // two spaces, or HTTP/0.9 without a version
    case 0x0A: .bareLineFeed
    default: .badTarget
    }
}

/// Handles fewer bytes than a version and CRLF need. More may follow, unless there is an LF already.
private func parseShortVersion(_ bytes: RawSpan, at start: Int) throws(FramingError) -> Int {
    guard let lineFeed = indexOfLineFeed(bytes, from: start) else { return -1 }
    guard lineFeed - start >= 8 else { throw .badVersion }
    _ = try parseVersion(bytes, at: start)
    throw .bareLineFeed
}

/// The error where a version is not followed by CRLF.
private func endError(_ bytes: RawSpan, at index: Int) -> FramingError {
    switch loadByte(bytes, index) {
    case 0x0A: .bareLineFeed
    case 0x0D: .bareCarriageReturn
    case 0x20: .badTarget  // a space in the target that looks like its end
    default: .badVersion
    }
}

/// Parses `HTTP/1.0` or `HTTP/1.1`: eight bytes, case-sensitive (RFC 9112 §2.3). A higher minor version would be compatible
/// (RFC 9110 §2.5), but none exists, so it is refused.
///
/// - Returns: the minor version.
@inline(__always)
func parseVersion(_ bytes: RawSpan, at start: Int) throws(FramingError) -> UInt8 {
    let word = loadWord(bytes, start)
    if isVersion11(bytes, at: start) { return 1 }
    if word == 0x302E_312F_5054_5448 { return 0 }
    throw versionError(word)
}

@inline(__always)
func isVersion11(_ bytes: RawSpan, at start: Int) -> Bool { loadWord(bytes, start) == 0x312E_312F_5054_5448 }

private func versionError(_ word: UInt64) -> FramingError {
    guard word & 0xFF_FFFF_FFFF == 0x2F_5054_5448 else { return .badVersion }  // "HTTP/"
    let major = UInt8(truncatingIfNeeded: word >> 40)
    let minor = UInt8(truncatingIfNeeded: word >> 56)
    return isDigit(major) && UInt8(truncatingIfNeeded: word >> 48) == 0x2E && isDigit(minor)
        ? .versionNotSupported : .badVersion
}
