import Forwarding
import Framing
import FuzzSupport
import Message

/// Any input is a response, a violation or incomplete; the same whole and in pieces. The first byte says to which method it is a response.

private struct Outcome: Equatable {
    /// The status and the framing of the final head.
    var status: UInt16?
    var length: BodyLength?
    var interim: [UInt16] = []
    var content: [UInt8] = []
    var fault: FramingError?
    var isComplete = false
    /// Bytes of the response, where it is complete.
    var used = 0
}

/// Reads the response as a client does: what a step did not use is there again at the next one. At the end the server closes.
private func outcome(_ bytes: [UInt8], to method: Method, askedAt pieces: [Int]) -> Outcome {
    var limits = Limits()
    (limits.headBytesMax, limits.fieldCountMax) = (700, 8)
    var reader = ResponseReader(to: method)
    var outcome = Outcome()
    var head = ResponseHead()
    var offset = 0
    for end in pieces where !outcome.isComplete {
        let arrived = Array(bytes[..<end])
        var isWaiting = false
        while !isWaiting, !outcome.isComplete {
            let before = offset
            do throws(FramingError) {
                switch try reader.next(in: arrived.span, from: &offset, head: &head, limits: limits) {
                case .more: isWaiting = true
                case .interim:
                    precondition(head.status < 200 && outcome.status == nil, "interim heads come before the final one")
                    outcome.interim.append(head.status)
                case .head(let length):
                    precondition(
                        outcome.status == nil && outcome.content.isEmpty, "there is one head, before the content")
                    precondition(head.status >= 200 && head.status <= 999, "a final head is not interim")
                    precondition(
                        reader.missing == nil || reader.missing == missing(length), "the framing is that of the head")
                    (outcome.status, outcome.length) = (head.status, length)
                case .data(let range):
                    precondition(outcome.status != nil, "content follows a head")
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
    precondition(outcome.isComplete == (reader.phase == .complete))
    check(outcome, method)
    return outcome
}

private func missing(_ length: BodyLength) -> UInt64? {
    switch length {
    case .none, .tunnel: 0
    case .length(let count): count
    case .chunked, .untilClose: nil
    }
}

private func check(_ outcome: Outcome, _ method: Method) {
    guard let length = outcome.length else { return precondition(!outcome.isComplete, "a response has a head") }
    let count = UInt64(outcome.content.count)
    switch length {
    case .none: precondition(count == 0)
    case .length(let length): precondition(outcome.isComplete ? count == length : count < length)
    case .chunked: break
    case .untilClose: precondition(outcome.isComplete, "the close ends such a response")
    case .tunnel: preconditionFailure("nobody asked for a tunnel")
    }
    if method == .head { precondition(count == 0, "a response to HEAD has no content (RFC 9110 §9.3.2)") }
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
