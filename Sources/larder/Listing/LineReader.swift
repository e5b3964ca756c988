import Framing
import Message

/// Parses an answer that consists of lines while it arrives: the head, the chunks (RFC 9112 §7.1), and the lines in them.
struct LineReader {
    enum State {
        case head, lines
        /// The last chunk has arrived.
        case whole
        /// The answer does not consist of lines. `held` has all of it.
        case other
        case broken
    }

    private(set) var state = State.head
    /// Bytes that are not parsed yet.
    private(set) var held: [UInt8] = []
    private var line: [UInt8] = []
    private var decoder = ChunkedDecoder(limits: Limits())

    /// Calls `each` for every line that is complete now, without its line feed.
    mutating func receive(_ bytes: ArraySlice<UInt8>, _ each: (ArraySlice<UInt8>) -> Void) {
        held += bytes
        do throws(FramingError) {
            if case .head = state { try readHead() }
            if case .lines = state { try readChunks(each) }
        } catch {
            state = .broken
        }
    }

    private mutating func readHead() throws(FramingError) {
        var head = ResponseHead()
        var progress = HeadProgress()
        let bytes = held  // shares the memory
        guard try parseResponseHead(bytes.span, into: &head, progress: &progress, limits: Limits()) else { return }
        guard head.status == 200, try responseBodyLength(head, to: .get, bytes: bytes.span) == .chunked else {
            state = .other
            return
        }
        state = .lines
        held.removeFirst(head.byteCount)
    }

    private mutating func readChunks(_ each: (ArraySlice<UInt8>) -> Void) throws(FramingError) {
        let bytes = held
        held = []
        var position = 0
        while position < bytes.count {
            let rest = bytes.span.extracting(position..<bytes.count)
            switch try decoder.step(rest) {
            case .needMore: return
            case .data(let consumed, let range):
                deliver(bytes[(position + range.lowerBound)..<(position + range.upperBound)], each)
                position += consumed
            case .end:
                state = .whole
                return
            }
        }
    }

    private mutating func deliver(_ data: ArraySlice<UInt8>, _ each: (ArraySlice<UInt8>) -> Void) {
        var rest = data
        while let end = rest.firstIndex(of: 0x0A) {
            if line.isEmpty {
                each(rest[..<end])
            } else {
                line += rest[..<end]
                each(line[...])
                line.removeAll(keepingCapacity: true)
            }
            rest = rest[(end + 1)...]
        }
        line += rest
    }
}
