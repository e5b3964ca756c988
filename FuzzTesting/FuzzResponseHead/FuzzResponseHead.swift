import Framing
import FuzzSupport
import Message

/// Any input is a head, an error or incomplete; the same whole and in pieces; every range lies within.

private struct Outcome: Equatable {
    var error: FramingError?
    var fields = FieldSection()
    var byteCount = 0
}

/// nil where the head is incomplete.
private func outcome(_ bytes: [UInt8], askedAt pieces: [Int]) -> Outcome? {
    var limits = Limits()
    (limits.headBytesMax, limits.targetBytesMax, limits.fieldCountMax) = (700, 100, 8)
    var head = ResponseHead()
    var progress = HeadProgress()
    for end in pieces {
        let piece = Array(bytes[..<end])
        do throws(FramingError) {
            if try parseResponseHead(piece.span, into: &head, progress: &progress, limits: limits) {
                check(head, bytes)
                return Outcome(fields: head.fields, byteCount: head.byteCount)
            }
        } catch { return Outcome(error: error) }
    }
    return nil
}

private func check(_ head: ResponseHead, _ bytes: [UInt8]) {
    precondition(head.byteCount <= bytes.count)
    precondition(head.status >= 100 && head.status <= 999)
    _ = (StatusClass(head.status), reasonPhrase(head.status))
    precondition(bytes[head.reasonRange].allSatisfy(isFieldContent))
    checkFields(head.fields, bytes, head.byteCount)
    do throws(FramingError) {
        if case .length(let count) = try responseBodyLength(head, to: .get, bytes: bytes.span) {
            precondition(count <= octetCountMax, "a length to which lengths can be added")
        }
    } catch {}
}

private func checkFields(_ fields: FieldSection, _ bytes: [UInt8], _ byteCount: Int) {
    var end = 0
    for line in fields.lines {
        precondition(line.nameRange.lowerBound >= end && line.valueRange.upperBound < byteCount)
        precondition(!line.nameRange.isEmpty && bytes[line.nameRange].allSatisfy(isTchar))
        precondition(bytes[line.valueRange].allSatisfy(isFieldContent))
        end = line.valueRange.upperBound
        checkNumbers(bytes[line.valueRange])
    }
}

/// Whatever a field says of lengths and times can be added to others.
private func checkNumbers(_ value: ArraySlice<UInt8>) {
    let now = WallTime(secondsSinceEpoch: 1_800_000_000)
    if let part = ContentRange(parsing: value) {
        precondition(part.range.map { $0.upperBound <= octetCountMax && !$0.isEmpty } ?? true)
        precondition(part.completeLength.map { $0 <= octetCountMax } ?? true)
        precondition(ContentRange(parsing: part.wire) == part, "it is written as it is read")
    }
    if let pause = parseRetryAfter(value, now: now) { precondition(pause >= .zero && pause < .seconds(1 << 40)) }
    if let date = parseHTTPDate(value, now: now) {
        precondition(WallTime.secondsBounds.contains(date.secondsSinceEpoch + now.secondsSinceEpoch))
    }
}

@_cdecl("FuzzResponseHead_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let whole = outcome(bytes, askedAt: [bytes.count])
        precondition(whole == outcome(bytes, askedAt: splits(bytes)), "the split shows")
        precondition(whole == outcome(bytes, askedAt: Array(0...bytes.count)), "byte by byte differs")
        return 0
    }
}
