import Message

/// What the parsers of request heads and response heads have in common.
///
/// An error in a line is reported when its LF has arrived, and bounds are checked before it, line by line. So a message gives the same
/// result however it is split.
enum HeadParser {
    enum Kind { case request, response }

    /// Parses the field lines from `position` on, all in one go.
    ///
    /// - Returns: the offset behind the head. Nil if the bytes end before it; `progress` then has the place to go on.
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
            // Lines are written directly into the array's memory. Its uniqueness and capacity are checked once for many lines.
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

    /// Appends lines while there is room. `position` is set to the beginning of the next line.
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

    /// Handles the line behind the last one that is allowed: it is invalid, incomplete, or one too many.
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

    /// Goes on with a head of which a part was checked before, line by line.
    ///
    /// - Returns: true if the empty line has arrived. The caller then parses the whole head.
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

    /// Records that the line at `start` is the first incomplete one. Returns nil, or throws if a bound is exceeded.
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

    /// Handles an invalid field line. The error is thrown only when the line is complete and within bounds.
    private static func lineFailed(
        _ error: FramingError, _ bytes: RawSpan, _ kind: Kind, at start: Int, progress: inout HeadProgress,
        limits: Limits
    ) throws(FramingError) -> Int? {
        guard let lineFeed = indexOfLineFeed(bytes, from: start) else {
            return try incomplete(bytes, kind, at: start, stage: .fields, progress: &progress, limits: limits)
        }
        throw lineFeed < limits.headBytesMax ? error : .headTooLarge
    }

    /// Whether there is an empty line at `start`, before any request line (RFC 9112 §2.2).
    static func isLeadingEmptyLine(_ bytes: RawSpan, _ start: Int) -> Bool {
        isCRLF(bytes, start)
    }

    /// Throws if there are more than a few empty lines before a request line.
    static func checkLeading(_ byteCount: Int) throws(FramingError) {
        if byteCount > leadingBytesMax { throw .badRequestLine }
    }

    private static let leadingBytesMax = 8

    /// Records that the start line at `start` is incomplete.
    static func incompleteStart(
        _ bytes: RawSpan, _ kind: Kind, at start: Int, progress: inout HeadProgress, limits: Limits
    ) throws(FramingError) -> Int? {
        try incomplete(bytes, kind, at: start, stage: .startLine, progress: &progress, limits: limits)
    }

    /// Handles an invalid start line. The error is thrown when the line is complete and within bounds, or when its first byte shows that
    /// it can never be a start line.
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

    /// Checks the bounds of a start line whose LF is at `lineFeed`, or cannot be before it.
    @inline(__always)
    static func checkStartLine(
        _ kind: Kind, from start: Int, to lineFeed: Int, limits: Limits
    ) throws(FramingError) {
        if lineFeed &- start > limits.targetBytesMax &+ startLineSlack {
            throw kind == .request ? .targetTooLong : .headTooLarge
        }
        if lineFeed >= limits.headBytesMax { throw .headTooLarge }
    }

    /// Room in bytes for method, version and spaces beside the longest target.
    private static let startLineSlack = 256

    /// Refuses other protocols, such as TLS or HTTP/0.9, by their first byte. Their bytes might never contain an LF.
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
