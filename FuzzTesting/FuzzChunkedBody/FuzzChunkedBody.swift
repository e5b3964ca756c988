import Framing
import FuzzSupport
import Message

/// Any input is a body, an error or incomplete; the same whole and in pieces.

private struct Outcome: Equatable {
    var error: FramingError?
    var body: [UInt8] = []
    var trailers: Fields?
    var end: Int?
}

private func outcome(_ bytes: [UInt8], pieces: [Int]) -> Outcome {
    var limits = Limits()
    (limits.chunkLineBytesMax, limits.trailerBytesMax, limits.fieldCountMax) = (40, 100, 4)
    var decoder = ChunkedDecoder(limits: limits)
    var result = Outcome()
    var position = 0
    do throws(FramingError) {
        for end in pieces {
            var wantsMore = false
            while !wantsMore {
                let piece = Array(bytes[position..<end])
                switch try decoder.step(piece.span) {
                case .needMore(let consumed):
                    precondition(consumed == piece.count)
                    position = end
                    wantsMore = true
                case .data(let consumed, let range):
                    precondition(!range.isEmpty && range.upperBound == consumed)
                    result.body += piece[range]
                    position += consumed
                case .end(let consumed):
                    result.end = position + consumed
                    result.trailers = decoder.trailers
                    return result
                }
            }
        }
    } catch { result.error = error }
    return result
}

@_cdecl("FuzzChunkedBody_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let whole = outcome(bytes, pieces: [bytes.count])
        precondition(whole.body.count <= bytes.count && whole.end ?? 0 <= bytes.count, "more than there is")
        precondition(whole == outcome(bytes, pieces: splits(bytes)), "the split shows")
        precondition(whole == outcome(bytes, pieces: Array(0...bytes.count)), "byte by byte differs")
        return 0
    }
}
