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
    var head = RequestHead()
    var progress = HeadProgress()
    for end in pieces {
        let piece = Array(bytes[..<end])
        do throws(FramingError) {
            if try parseRequestHead(piece.span, into: &head, progress: &progress, limits: limits) {
                check(head, bytes)
                return Outcome(fields: head.fields, byteCount: head.byteCount)
            }
        } catch { return Outcome(error: error) }
    }
    return nil
}

private func check(_ head: RequestHead, _ bytes: [UInt8]) {
    precondition(head.byteCount <= bytes.count)
    precondition(bytes[head.methodRange].allSatisfy(isTchar))
    precondition(bytes[head.targetRange].allSatisfy(isVchar))
    checkFields(head.fields, bytes, head.byteCount)
    var uri: [UInt8] = []
    appendNormalisedURI(head.target, of: bytes.span, to: &uri)
    switch head.target.form {
    case .absolute,
        .origin where !head.target.hostRange.isEmpty:
        precondition(TargetURI(uri)?.normalised == uri, "normalising twice differs")
    case .origin, .authority, .asterisk: break
    }
    do { _ = try requestBodyLength(head, bytes: bytes.span) } catch {}
    _ = ConnectionOptions(head.fields, bytes: bytes.span)
}

private func checkFields(_ fields: FieldSection, _ bytes: [UInt8], _ byteCount: Int) {
    var end = 0
    for line in fields.lines {
        precondition(line.nameRange.lowerBound >= end && line.valueRange.upperBound < byteCount)
        precondition(!line.nameRange.isEmpty && bytes[line.nameRange].allSatisfy(isTchar))
        precondition(bytes[line.valueRange].allSatisfy(isFieldContent))
        end = line.valueRange.upperBound
    }
}

@_cdecl("FuzzRequestHead_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let whole = outcome(bytes, askedAt: [bytes.count])
        precondition(whole == outcome(bytes, askedAt: splits(bytes)), "the split shows")
        precondition(whole == outcome(bytes, askedAt: Array(0...bytes.count)), "byte by byte differs")
        return 0
    }
}
