import Framing
import FuzzSupport
import Message
import Requesting

/// Any input is an answer, a fault or incomplete; the same whole and in pieces. The first byte says to which method it is an answer.

private struct Outcome: Equatable {
    var head: AnswerHead?
    var content: [UInt8] = []
    var fault: ResponseFault?
    var isComplete = false
    var allowsReuse = false
    /// Bytes of the answer, where it is complete.
    var used = 0
}

/// Reads the answer as a client does: what a step did not use is there again at the next one. At the end the server closes.
private func outcome(_ bytes: [UInt8], to method: Method, askedAt pieces: [Int]) -> Outcome {
    var limits = Limits()
    (limits.headBytesMax, limits.fieldCountMax, limits.interimResponsesMax) = (700, 8, 3)
    var reader = ResponseReader(to: method, limits: limits)
    var outcome = Outcome()
    var offset = 0
    for end in pieces where !outcome.isComplete {
        let arrived = Array(bytes[..<end])
        var isWaiting = false
        while !isWaiting, !outcome.isComplete {
            let before = offset
            do throws(ResponseFault) {
                switch try reader.next(in: arrived.span, from: &offset) {
                case .more: isWaiting = true
                case .head(let head):
                    precondition(
                        outcome.head == nil && outcome.content.isEmpty, "there is one head, before the content")
                    precondition(head.status >= 200 && head.status <= 999, "interim responses are skipped")
                    outcome.head = head
                case .data(let range):
                    precondition(outcome.head != nil, "content follows a head")
                    precondition(!range.isEmpty && range.lowerBound >= before && range.upperBound <= offset)
                    outcome.content += arrived[range]
                case .end: outcome.isComplete = true
                }
            } catch {
                outcome.fault = error
                return outcome
            }
            precondition(offset >= before && offset <= end, "nothing is used twice, or before it arrives")
        }
    }
    if outcome.isComplete { outcome.used = offset } else { outcome.isComplete = reader.closed() }
    precondition(outcome.isComplete == reader.isComplete)
    outcome.allowsReuse = reader.allowsReuse
    precondition(!outcome.allowsReuse || outcome.isComplete, "a connection is used again behind a whole answer")
    check(outcome, method)
    return outcome
}

private func check(_ outcome: Outcome, _ method: Method) {
    guard let head = outcome.head else { return precondition(!outcome.isComplete, "an answer has a head") }
    let count = UInt64(outcome.content.count)
    switch head.length {
    case .none: precondition(count == 0)
    case .length(let length): precondition(outcome.isComplete ? count == length : count < length)
    case .chunked: break
    case .untilClose: precondition(outcome.isComplete && !outcome.allowsReuse, "the close ends such an answer")
    case .tunnel: preconditionFailure("nobody asked for a tunnel")
    }
    if method == .head { precondition(count == 0, "an answer to HEAD has no content (RFC 9110 §9.3.2)") }
}

@_cdecl("FuzzAnswer_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let input = unsafe input(start, count)
        guard let first = input.first else { return 0 }
        let methods: [Method] = [.get, .head, .post, .other]
        let method = methods[Int(first) % methods.count]
        let bytes = Array(input.dropFirst())
        let whole = outcome(bytes, to: method, askedAt: [bytes.count])
        precondition(whole == outcome(bytes, to: method, askedAt: splits(bytes)), "the split shows")
        precondition(whole == outcome(bytes, to: method, askedAt: Array(0...bytes.count)), "byte by byte differs")
        return 0
    }
}
