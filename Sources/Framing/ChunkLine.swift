import Message

/// Parses `chunk-size [ chunk-ext ] CRLF` (RFC 9112 §7.1), byte by byte. Extensions are checked and dropped (§7.1.1).
///
/// The size has digits only: no sign, no `0x`. It is at most `octetCountMax`. White space is accepted only around the delimiters of an extension ("bad" white space), and
/// a bare LF is refused. If two recipients differed in one of these, an attacker could make them see different messages. An origin may write white
/// space behind the size, as some do: what comes from it is framed anew.
struct ChunkLine: Sendable {
    private enum State { case size, delimiter, nameOpen, name, afterName, value, token, quoted, escaped, lineFeed }

    private var state = State.size
    private var size: UInt64 = 0
    private var digitCount = 0
    private var byteCount = 0
    /// White space was read, so a delimiter of an extension must follow.
    private var afterSpace = false
    /// There is nothing but white space behind the size so far.
    private var isBehindSize = true
    private let allowsTrailingSpace: Bool

    /// - Parameter allowsTrailingSpace: white space may stand between the size and the end of the line.
    init(allowsTrailingSpace: Bool) { self.allowsTrailingSpace = allowsTrailingSpace }

    /// Takes the next byte. Returns the size if the line is complete, nil otherwise.
    mutating func take(_ byte: UInt8, limits: Limits) throws(FramingError) -> UInt64? {
        byteCount += 1
        guard byteCount <= limits.chunkLineBytesMax else { throw .chunkLineTooLong }
        switch state {
        case .size: try takeSize(byte)
        case .lineFeed:
            guard byte == 0x0A else { throw .bareCarriageReturn }
            return size
        case .delimiter, .nameOpen, .name, .afterName, .value, .token, .quoted, .escaped: try takeExtension(byte)
        }
        return nil
    }

    private mutating func takeSize(_ byte: UInt8) throws(FramingError) {
        if let digit = hexValue(byte) {
            digitCount += 1
            guard digitCount <= 16, size <= octetCountMax >> 4 else { throw .badChunkSize }
            size = size << 4 | UInt64(digit)
            return
        }
        guard digitCount > 0 else { throw .badChunkSize }
        switch byte {
        case 0x0D: state = .lineFeed
        case 0x0A: throw .bareLineFeed
        case 0x3B: (state, isBehindSize) = (.nameOpen, false)
        case 0x20, 0x09: (state, afterSpace) = (.delimiter, !allowsTrailingSpace)
        default: throw .badChunkSize
        }
    }

    /// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )`
    private mutating func takeExtension(_ byte: UInt8) throws(FramingError) {
        switch state {
        case .quoted: return try takeQuoted(byte)
        case .escaped:
            guard isFieldContent(byte) else { throw .badChunkExtension }
            state = .quoted
        case .nameOpen, .value:
            if isOWS(byte) { return }
            if byte == 0x22, state == .value {
                state = .quoted
            } else {
                guard isTchar(byte) else { throw .badChunkExtension }
                state = state == .value ? .token : .name
            }
        case .name, .token:
            if !isTchar(byte) { try takeDelimiter(byte, mayAssign: state == .name) }
        case .afterName: try takeDelimiter(byte, mayAssign: true)
        case .delimiter: try takeDelimiter(byte, mayAssign: false)
        case .size, .lineFeed: preconditionFailure("take() handles these")
        }
    }

    private mutating func takeQuoted(_ byte: UInt8) throws(FramingError) {
        switch byte {
        case 0x22: state = .delimiter
        case 0x5C: state = .escaped
        default: guard isFieldContent(byte) else { throw .badChunkExtension }
        }
    }

    /// Takes a byte that follows a size, a name or a value.
    private mutating func takeDelimiter(_ byte: UInt8, mayAssign: Bool) throws(FramingError) {
        switch byte {
        case 0x3B: (state, afterSpace, isBehindSize) = (.nameOpen, false, false)
        case 0x3D where mayAssign: (state, afterSpace) = (.value, false)
        case 0x20, 0x09:
            state = mayAssign ? .afterName : .delimiter
            afterSpace = !(isBehindSize && allowsTrailingSpace)
        case 0x0D where !afterSpace: state = .lineFeed
        case 0x0A: throw .bareLineFeed
        default: throw .badChunkExtension
        }
    }
}
