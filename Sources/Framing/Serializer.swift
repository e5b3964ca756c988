package import Message

// Functions that write messages (RFC 9112): start lines, field lines, chunks. Larder's own parsers accept what they write.

/// Appends `HTTP/1.1 SP status SP reason CRLF`. The version is always that of Larder itself (RFC 9110 §2.5).
///
/// - Parameter reason: the reason phrase that an origin sent. Nil: the registered one.
package func appendStatusLine(_ status: UInt16, reason: ArraySlice<UInt8>?, to bytes: inout [UInt8]) {
    bytes.append(addingCapacity: statusLineLengthMax(reasonLength: reason?.count ?? 0)) {
        appendStatusLine(status, reason: reason, to: &$0)
    }
}

package func appendStatusLine(_ status: UInt16, reason: ArraySlice<UInt8>?, to bytes: inout OutputSpan<UInt8>) {
    if status == 200, reason.map(isOK) ?? true { return bytes.append("HTTP/1.1 200 OK\r\n") }
    bytes.append("HTTP/1.1 ")
    appendStatus(status, to: &bytes)
    bytes.append(0x20)
    if let reason { bytes.append(reason) } else { bytes.append(reasonPhrase(status)) }
    bytes.append("\r\n")
}

/// The room in bytes that a status line needs at most.
package func statusLineLengthMax(reasonLength: Int) -> Int { 16 + max(reasonLength, reasonPhraseLengthMax) }

private func isOK(_ reason: ArraySlice<UInt8>) -> Bool {
    reason.count == 2 && reason[reason.startIndex] == 0x4F && reason[reason.startIndex + 1] == 0x4B
}

/// Appends `method SP request-target SP HTTP/1.x CRLF`.
///
/// - Parameter minorVersion: x, 0 or 1.
package func appendRequestLine(
    _ method: some Collection<UInt8>, _ target: some Collection<UInt8>, minorVersion: UInt8 = 1,
    to bytes: inout [UInt8]
) {
    bytes.append(contentsOf: method)
    bytes.append(0x20)
    bytes.append(contentsOf: target)
    bytes.append(minorVersion == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n")
}

/// Appends `name: value CRLF`. Name and value must be valid: they come from a parser or from Larder itself.
package func appendFieldLine(
    _ name: some Collection<UInt8>, _ value: some Collection<UInt8>, to bytes: inout [UInt8]
) {
    bytes.append(contentsOf: name)
    bytes.append(": ")
    bytes.append(contentsOf: value)
    bytes.append("\r\n")
}

package func appendFieldLine(_ name: FieldName, _ value: some Collection<UInt8>, to bytes: inout [UInt8]) {
    appendFieldLine(name, Array(value), to: &bytes)
}

package func appendFieldLine(_ name: FieldName, _ value: [UInt8], to bytes: inout [UInt8]) {
    precondition(name != .other, "a field without a FieldName is appended by its spelling")
    bytes.append(name.text)
    bytes.append(": ")
    bytes.append(contentsOf: value)
    bytes.append("\r\n")
}

/// Appends all lines in order, in their own spelling.
package func appendFieldLines(_ fields: Fields, to bytes: inout [UInt8]) {
    for line in fields.lines { appendFieldLine(fields.name(of: line), fields.value(of: line), to: &bytes) }
}

/// Appends `chunk-size CRLF` (RFC 9112 §7.1). The data and `\r\n` follow. `count` is not 0, which would be the last chunk.
package func appendChunkHeader(_ count: Int, to bytes: inout [UInt8]) {
    precondition(count > 0, "an empty chunk would end the body")
    var shift = (Int.bitWidth - 1 - count.leadingZeroBitCount) / 4 * 4
    while shift >= 0 {
        bytes.append(lowerHexDigit(UInt8(truncatingIfNeeded: count >> shift & 15)))
        shift -= 4
    }
    bytes.append("\r\n")
}

/// Appends the last chunk with the trailer section, if any, and the empty line that ends the body.
package func appendLastChunk(trailers: Fields?, to bytes: inout [UInt8]) {
    bytes.append("0\r\n")
    if let trailers { appendFieldLines(trailers, to: &bytes) }
    bytes.append("\r\n")
}

/// `0\r\n\r\n`: the last chunk without trailers.
package let lastChunk: StaticString = "0\r\n\r\n"

/// Appends the lines for which `isKept` is true, in order and in their own spelling.
package func appendFieldLines(_ fields: Fields, to bytes: inout [UInt8], where isKept: (FieldLine) -> Bool) {
    bytes.append(addingCapacity: fieldLinesLength(fields)) { fields.appendLines(to: &$0, where: isKept) }
}

/// The room in bytes that all lines need.
package func fieldLinesLength(_ fields: Fields) -> Int {
    var length = 0
    for line in fields.lines { length += Int(line.valueEnd) - Int(line.nameStart) + 2 }
    return length
}
