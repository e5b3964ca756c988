import Message

/// The order in which a head is read: what the parsers for requests and responses have in common.
///
/// An error of a line counts when its LF has arrived, and bounds are checked line by line before it; so a message
/// gives the same result however it is split.
enum HeadParser {
    enum Kind { case request, response }

    /// The field lines from `position` on, in the hot path: all in one go.
    ///
    /// - Returns: where the head ends, or nil where its bytes end first; `progress` then says where to go on.
    @inline(__always)
    static func parseFields(
        _ bytes: RawSpan, _ kind: Kind, from position: Int, into fields: inout FieldSection,
        progress: inout HeadProgress,
        limits: Limits
    ) throws(FramingError) -> Int? {
        fields.removeAll()
        let names = FieldNameTable.shared
        var start = position
        while true {
            // The lines go where the array will have them: it is asked once for many whether it is ours and large enough.
            let room = min(
                max(fields.lines.capacity &- fields.lines.count, 16), limits.fieldCountMax &- fields.lines.count)
            var present = fields.present
            var stop = Stop.full
            fields.lines.append(addingCapacity: room) { lines in
                stop = appendLines(bytes, names, to: &lines, &present, position: &start, limits: limits)
            }
            fields.present = present
            switch stop {
            case .end(let end):
                guard end <= limits.headBytesMax else { throw .headTooLarge }
                return end
            case .full:
                if fields.lines.count >= limits.fieldCountMax {
                    return try parseFieldBeyondMax(bytes, kind, at: start, progress: &progress, limits: limits)
                }
            case .incomplete:
                progress.fieldCount = fields.lines.count
                return try incomplete(bytes, kind, at: start, stage: .fields, progress: &progress, limits: limits)
            case .tooLarge: throw .headTooLarge
            case .wrong(let error):
                progress.fieldCount = fields.lines.count
                return try lineFailed(error, bytes, kind, at: start, progress: &progress, limits: limits)
            }
        }
    }

    /// Why no further line was appended.
    private enum Stop {
        case end(Int), full, incomplete, tooLarge
        case wrong(FramingError)
    }

    /// Appends lines while there is room. `start` is then where the next would begin.
    @inline(__always)
    private static func appendLines(
        _ bytes: RawSpan, _ names: FieldNameTable, to lines: inout OutputSpan<FieldLine>, _ present: inout FieldNameSet,
        position: inout Int, limits: Limits
    ) -> Stop {
        var start = position
        defer { position = start }
        var line = FieldLine(name: .other, nameStart: 0, nameEnd: 0, valueStart: 0, valueEnd: 0)
        while true {
            if isCRLF(bytes, start) { return .end(start &+ 2) }
            if lines.isFull { return .full }
            let next: Int
            do throws(FramingError) {
                next = try parseFieldLine(bytes, at: start, into: &line)
            } catch { return .wrong(error) }
            guard next >= 0 else { return .incomplete }
            guard next <= limits.headBytesMax else { return .tooLarge }
            line.name = names.find(bytes, from: Int(line.nameStart), to: Int(line.nameEnd), present: &present)
            lines.append(line)
            start = next
        }
    }

    /// As many lines as may be are there, and no empty line follows: what comes is wrong, incomplete or one too many.
    private static func parseFieldBeyondMax(
        _ bytes: RawSpan, _ kind: Kind, at start: Int, progress: inout HeadProgress, limits: Limits
    ) throws(FramingError) -> Int? {
        progress.fieldCount = limits.fieldCountMax
        var line = FieldLine(name: .other, nameStart: 0, nameEnd: 0, valueStart: 0, valueEnd: 0)
        let next: Int
        do throws(FramingError) {
            next = try parseFieldLine(bytes, at: start, into: &line)
        } catch { return try lineFailed(error, bytes, kind, at: start, progress: &progress, limits: limits) }
        guard next >= 0 else {
            return try incomplete(bytes, kind, at: start, stage: .fields, progress: &progress, limits: limits)
        }
        throw next <= limits.headBytesMax ? .tooManyFields : .headTooLarge
    }

    /// Goes on with a head of which something was seen before, line by line.
    ///
    /// - Returns: true where the empty line has come: now the whole is to be parsed.
    static func resume(
        _ bytes: RawSpan, _ kind: Kind, progress: inout HeadProgress, limits: Limits,
        startLine: (RawSpan, Int) throws(FramingError) -> Int
    ) throws(FramingError) -> Bool {
        while let lineFeed = indexOfLineFeed(bytes, from: progress.scanned) {
            let start = progress.lineStart
            switch progress.stage {
            case .startLine:
                if kind == .request, isLeadingEmptyLine(bytes, start) {
                    try checkLeading(lineFeed + 1)
                } else {
                    try checkFirstByte(bytes, kind, at: start)
                    try checkStartLine(kind, from: start, to: lineFeed, limits: limits)
                    _ = try startLine(bytes, start)
                    progress.stage = .fields
                }
            case .fields:
                guard lineFeed < limits.headBytesMax else { throw .headTooLarge }
                if lineFeed == start + 1, loadByte(bytes, start) == 0x0D { return true }
                var line = FieldLine(name: .other, nameStart: 0, nameEnd: 0, valueStart: 0, valueEnd: 0)
                _ = try parseFieldLine(bytes, at: start, into: &line)
                guard progress.fieldCount < limits.fieldCountMax else { throw .tooManyFields }
                progress.fieldCount += 1
            }
            progress.lineStart = lineFeed + 1
            progress.scanned = lineFeed + 1
        }
        try checkIncomplete(bytes, kind, progress, limits)
        progress.scanned = bytes.byteCount
        return false
    }

    /// Remembers that the line at `start` is the first that is not complete.
    static func incomplete(
        _ bytes: RawSpan, _ kind: Kind, at start: Int, stage: HeadProgress.Stage, progress: inout HeadProgress,
        limits: Limits
    ) throws(FramingError) -> Int? {
        progress.stage = stage
        progress.lineStart = start
        try checkIncomplete(bytes, kind, progress, limits)
        progress.scanned = bytes.byteCount
        return nil
    }

    /// A field line is wrong: that is said when it is complete, and only if it lies within bounds.
    private static func lineFailed(
        _ error: FramingError, _ bytes: RawSpan, _ kind: Kind, at start: Int, progress: inout HeadProgress,
        limits: Limits
    ) throws(FramingError) -> Int? {
        guard let lineFeed = indexOfLineFeed(bytes, from: start) else {
            return try incomplete(bytes, kind, at: start, stage: .fields, progress: &progress, limits: limits)
        }
        throw lineFeed < limits.headBytesMax ? error : .headTooLarge
    }

    /// Whether the bytes at `start` are an empty line or the beginning of one, before any request line (RFC 9112 §2.2).
    static func isLeadingEmptyLine(_ bytes: RawSpan, _ start: Int) -> Bool {
        isCRLF(bytes, start)
    }

    /// A few empty lines are forgiven, not a stream of them.
    static func checkLeading(_ byteCount: Int) throws(FramingError) {
        if byteCount > leadingBytesMax { throw .badRequestLine }
    }

    private static let leadingBytesMax = 8

    /// The start line at `start` has not arrived whole.
    static func incompleteStart(
        _ bytes: RawSpan, _ kind: Kind, at start: Int, progress: inout HeadProgress, limits: Limits
    ) throws(FramingError) -> Int? {
        try incomplete(bytes, kind, at: start, stage: .startLine, progress: &progress, limits: limits)
    }

    /// The start line is wrong: said when it is complete and within bounds, or when it can not become one.
    static func startLineFailed(
        _ error: FramingError, _ bytes: RawSpan, _ kind: Kind, at start: Int, progress: inout HeadProgress,
        limits: Limits
    ) throws(FramingError) -> Int? {
        try checkFirstByte(bytes, kind, at: start)
        guard let lineFeed = indexOfLineFeed(bytes, from: start) else {
            return try incompleteStart(bytes, kind, at: start, progress: &progress, limits: limits)
        }
        try checkStartLine(kind, from: start, to: lineFeed, limits: limits)
        throw error
    }

    /// Bounds of a start line whose LF stands at `lineFeed`, or can not stand before.
    @inline(__always)
    static func checkStartLine(
        _ kind: Kind, from start: Int, to lineFeed: Int, limits: Limits
    ) throws(FramingError) {
        if lineFeed &- start > limits.targetBytesMax &+ startLineSlack {
            throw kind == .request ? .targetTooLong : .headTooLarge
        }
        if lineFeed >= limits.headBytesMax { throw .headTooLarge }
    }

    /// Method, version and spaces around a target of the greatest length.
    private static let startLineSlack = 256

    /// TLS, HTTP/0.9 servers and other protocols: their first byte tells, and their bytes may never hold an LF.
    private static func checkFirstByte(_ bytes: RawSpan, _ kind: Kind, at start: Int) throws(FramingError) {
        guard start < bytes.byteCount else { return }
        let first = loadByte(bytes, start)
        switch kind {
        case .response:
            if first != 0x48 { throw .badStatusLine }
        case .request:
            if isTchar(first) { return }
            if first == 0x0A { throw .bareLineFeed }
            if first != 0x0D { throw .badRequestLine }
            if start + 1 < bytes.byteCount, loadByte(bytes, start + 1) != 0x0A { throw .bareCarriageReturn }
        }
    }

    private static func checkIncomplete(
        _ bytes: RawSpan, _ kind: Kind, _ progress: HeadProgress, _ limits: Limits
    ) throws(FramingError) {
        switch progress.stage {
        case .startLine:
            try checkFirstByte(bytes, kind, at: progress.lineStart)
            try checkStartLine(kind, from: progress.lineStart, to: bytes.byteCount, limits: limits)
        case .fields:
            if bytes.byteCount >= limits.headBytesMax { throw .headTooLarge }
        }
    }
}
