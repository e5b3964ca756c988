package import Message

/// Decodes the chunked transfer coding (RFC 9112 §7.1), in whatever pieces it arrives.
///
///     size line ──CRLF──▶ data ──▶ CRLF ──▶ size line …  ──size 0──▶ trailers ──empty line──▶ finished
///
/// It uses every given byte up to the end of the body. It does not copy content, but returns its range. Trailers are collected.
package struct ChunkedDecoder: Sendable {
    package enum Step: Equatable, Sendable {
        /// All bytes were used. Call again with new bytes only.
        case needMore(consumed: Int)
        /// Content at `range` of the input. Go on behind `consumed`.
        case data(consumed: Int, range: Range<Int>)
        /// The body is complete, with its trailers. Bytes behind `consumed` are not part of it.
        case end(consumed: Int)
    }

    private enum State {
        case sizeLine
        case data(remaining: UInt64)
        case dataCR, dataLF
        case trailerLine(start: Int)
        case finalLF
        case finished
    }

    private var state = State.sizeLine
    private var line: ChunkLine
    private var trailerBytes: [UInt8] = []
    private var trailerSection = FieldSection()
    private let limits: Limits
    private let isLenient: Bool

    /// - Parameter isLenient: the body comes from an origin, which may write white space behind a chunk size.
    package init(limits: Limits, isLenient: Bool = false) {
        self.limits = limits
        self.isLenient = isLenient
        line = ChunkLine(allowsTrailingSpace: isLenient)
    }

    /// The trailer section (RFC 9112 §7.1.2). Nil if there is none, or if the body is incomplete.
    package var trailers: Fields? {
        guard case .finished = state, !trailerSection.lines.isEmpty else { return nil }
        return Fields(bytes: trailerBytes, section: trailerSection)
    }

    /// Goes on to the next content, to the end of the input, or to the end of the body. After it has thrown, the decoder must not be used.
    package mutating func step(_ bytes: borrowing Span<UInt8>) throws(FramingError) -> Step {
        var index = 0
        while index < bytes.count {
            if case .data(let remaining) = state {
                let count = Int(min(remaining, UInt64(bytes.count - index)))
                state = UInt64(count) == remaining ? .dataCR : .data(remaining: remaining - UInt64(count))
                return .data(consumed: index + count, range: index..<(index + count))
            }
            if case .finished = state { return .end(consumed: index) }
            try take(bytes[index])
            index += 1
        }
        if case .finished = state { return .end(consumed: index) }
        return .needMore(consumed: index)
    }

    /// Takes one byte of the framing around the data.
    private mutating func take(_ byte: UInt8) throws(FramingError) {
        switch state {
        case .sizeLine:
            guard let size = try line.take(byte, limits: limits) else { return }
            state = size == 0 ? .trailerLine(start: 0) : .data(remaining: size)
            line = ChunkLine(allowsTrailingSpace: isLenient)
        case .dataCR:
            guard byte == 0x0D else { throw .badChunkEnd }
            state = .dataLF
        case .dataLF:
            guard byte == 0x0A else { throw .badChunkEnd }
            state = .sizeLine
        case .trailerLine(let start):
            if byte == 0x0D, start == trailerBytes.count { state = .finalLF } else { try takeTrailer(byte, start) }
        case .finalLF:
            guard byte == 0x0A else { throw .bareCarriageReturn }
            state = .finished
        case .data, .finished:
            preconditionFailure("step() handles these")
        }
    }

    private mutating func takeTrailer(_ byte: UInt8, _ start: Int) throws(FramingError) {
        guard trailerBytes.count < limits.trailerBytesMax else { throw .trailersTooLarge }
        trailerBytes.append(byte)
        guard byte == 0x0A else { return }
        let line = try parsedTrailer(at: start)
        guard trailerSection.lines.count < limits.fieldCountMax else { throw .tooManyFields }
        trailerSection.append(line)
        state = .trailerLine(start: trailerBytes.count)
    }

    private func parsedTrailer(at start: Int) throws(FramingError) -> FieldLine {
        var line = FieldLine(name: .other, nameStart: 0, nameEnd: 0, valueStart: 0, valueEnd: 0)
        let raw = unsafe trailerBytes.span.bytes
        _ = try parseFieldLine(raw, at: start, into: &line)
        line.name = FieldName.classify(raw, line.nameRange)
        return line
    }
}
