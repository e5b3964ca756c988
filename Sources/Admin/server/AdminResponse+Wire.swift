import Framing
import Message

/// How the client learns where a body in pieces ends.
enum PieceFraming {
    case chunked
    /// By the end of the connection, for a client of HTTP/1.0.
    case untilClose

    /// The bytes of one piece. Nil stands for the end.
    func append(_ piece: [UInt8]?, to bytes: inout [UInt8]) {
        switch (self, piece) {
        case (.chunked, let piece?) where !piece.isEmpty:
            appendChunkHeader(piece.count, to: &bytes)
            bytes += piece + [0x0D, 0x0A]
        case (.chunked, nil): appendLastChunk(trailers: nil, to: &bytes)
        case (.untilClose, let piece?): bytes += piece
        case (.chunked, _), (.untilClose, nil): break
        }
    }
}

extension AdminResponse {
    /// The response as bytes (RFC 9112 §4), with date and length, and without body if `isHead`. Pieces follow later.
    ///
    /// - Parameters:
    ///   - persists: whether the connection stays open.
    ///   - framing: how the pieces are framed, if there are any.
    func appendWire(
        to bytes: inout [UInt8], now: WallTime, isHead: Bool, persists: Bool, framing: PieceFraming = .chunked
    ) {
        var date: [UInt8] = []
        appendHTTPDate(now, to: &date)
        appendStatusLine(status, reason: nil, to: &bytes)
        appendFieldLine(.date, date, to: &bytes)
        appendFieldLine(.contentType, contentType.utf8, to: &bytes)
        switch (pieces, framing) {
        case (nil, _): appendFieldLine(.contentLength, String(body.count).utf8, to: &bytes)
        case (.some, .chunked): appendFieldLine(.transferEncoding, "chunked".utf8, to: &bytes)
        case (.some, .untilClose): break
        }
        if !persists { appendFieldLine(.connection, "close".utf8, to: &bytes) }
        for field in fields { appendFieldLine(field.name.utf8, field.value.utf8, to: &bytes) }
        bytes.append(contentsOf: [0x0D, 0x0A])
        if !isHead { bytes.append(contentsOf: body) }
    }
}
