import Framing
import Message

extension AdminResponse {
    /// The response as bytes (RFC 9112 §4): with date and length, without body where `isHead`.
    ///
    /// - Parameter persists: the connection goes on after it.
    func appendWire(to bytes: inout [UInt8], now: WallTime, isHead: Bool, persists: Bool) {
        var date: [UInt8] = []
        appendHTTPDate(now, to: &date)
        appendStatusLine(status, reason: nil, to: &bytes)
        appendFieldLine(.date, date, to: &bytes)
        appendFieldLine(.contentType, contentType.utf8, to: &bytes)
        appendFieldLine(.contentLength, String(body.count).utf8, to: &bytes)
        if !persists { appendFieldLine(.connection, "close".utf8, to: &bytes) }
        for field in fields { appendFieldLine(field.name.utf8, field.value.utf8, to: &bytes) }
        bytes.append(contentsOf: [0x0D, 0x0A])
        if !isHead { bytes.append(contentsOf: body) }
    }
}
