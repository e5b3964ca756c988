import Framing
import FuzzSupport
import Message

/// Any input is a head, an error or incomplete; the same whole and in pieces; every range lies within. Two heads, with a NUL between them, are the same if one
/// connection sends them, which is remembered.

private struct Outcome: Equatable {
    var error: FramingError?
    var method = Method.other
    var target = RequestTarget()
    var fields = FieldSection()
    var byteCount = 0

    init(_ error: FramingError) { self.error = error }

    init(_ head: RequestHead) {
        method = head.method
        target = head.target
        fields = head.fields
        byteCount = head.byteCount
    }
}

private let limits = {
    var limits = Limits()
    (limits.headBytesMax, limits.targetBytesMax, limits.fieldCountMax) = (700, 100, 8)
    return limits
}()

/// nil where the head is incomplete.
private func outcome(_ bytes: [UInt8], askedAt pieces: [Int]) -> Outcome? {
    var head = RequestHead()
    var progress = HeadProgress()
    for end in pieces {
        let piece = Array(bytes[..<end])
        do throws(FramingError) {
            if try parseRequestHead(piece.span, into: &head, progress: &progress, limits: limits) {
                check(head, bytes)
                return Outcome(head)
            }
        } catch { return Outcome(error) }
    }
    return nil
}

/// nil where the head is incomplete.
private func outcome(_ bytes: [UInt8], _ memory: borrowing HeadMemory) -> Outcome? {
    var head = RequestHead()
    var progress = HeadProgress()
    do throws(FramingError) {
        guard
            try parseRequestHead(
                bytes.span, into: &head, progress: &progress, limits: limits, memory: memory, owner: 1)
        else { return nil }
        check(head, bytes)
        return Outcome(head)
    } catch { return Outcome(error) }
}

private func checkMemory(_ bytes: [UInt8]) {
    let memory = HeadMemory()
    let heads = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false).map { Array($0) }
    for head in heads + heads + heads.reversed() {
        precondition(outcome(head, memory) == outcome(head, askedAt: [head.count]), "what was sent before shows")
    }
}

/// What is encoded differs in bytes above 0x7F alone, is encoded once, and is what the parser made of it before if there is nothing to encode.
private func checkEncoding(_ bytes: [UInt8]) {
    guard let encoded = EncodedTarget(ofHead: bytes.span) else { return }
    precondition(bytes[encoded.range].contains { $0 > 0x7F }, "nothing was to be encoded")
    var rest = encoded.text[...]
    for byte in bytes[encoded.range] {
        if byte > 0x7F, rest.first == 0x25 {
            let digits = String(decoding: rest.dropFirst().prefix(2), as: UTF8.self)
            precondition(UInt8(digits, radix: 16) == byte && digits == digits.uppercased(), "another byte")
            rest = rest.dropFirst(3)
        } else {
            precondition(rest.popFirst() == byte, "a byte that was ASCII, or one of a host, has changed")
        }
    }
    precondition(rest.isEmpty)
    let again = encoded.applied(to: bytes.span)
    precondition(EncodedTarget(ofHead: again.span) == nil, "encoding does not end")
    if let result = outcome(bytes, askedAt: [bytes.count]) {
        precondition(result.error != nil, "the parser accepts what is to be encoded")
    }
    // Whatever this is, its ranges hold.
    _ = outcome(again, askedAt: [again.count])
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
        precondition(uri.allSatisfy(isVchar), "a key is a URI")
        if let host = TargetURI(uri)?.host {
            precondition(!host.isEmpty && host == host.lowercased() && !host.hasSuffix("."), "a host has one form")
        }
    case .origin, .authority, .asterisk: break
    }
    do throws(FramingError) {
        if case .length(let count) = try requestBodyLength(head, bytes: bytes.span) {
            precondition(count <= octetCountMax, "a length to which lengths can be added")
        }
    } catch {}
    for line in head.fields.lines {
        for range in parseByteRanges(bytes[line.valueRange]) ?? [] {
            for length in [0, 1, octetCountMax] {
                precondition(range.resolve(against: length).map { $0.upperBound <= length } ?? true)
            }
        }
    }
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
        checkMemory(bytes)
        checkEncoding(bytes)
        return 0
    }
}
