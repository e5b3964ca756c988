import Testing
import Framing
import Message

/// What a parser made of some bytes, in a form that can be compared.
struct RequestResult: Equatable {
    var error: FramingError?
    var method: String = ""
    var target: String = ""
    var parsed = RequestTarget()
    var minorVersion: UInt8 = 1
    var fields = FieldSection()
    var byteCount = 0

    static func == (a: RequestResult, b: RequestResult) -> Bool {
        a.error == b.error && a.method == b.method && a.target == b.target && a.parsed == b.parsed
            && a.minorVersion == b.minorVersion && a.fields == b.fields && a.byteCount == b.byteCount
    }
}

/// nil where the head is incomplete. `pieces` are the counts of bytes at which the parser is asked.
func parseRequest(_ bytes: [UInt8], askedAt pieces: [Int]? = nil, limits: Limits = Limits()) -> RequestResult? {
    var head = RequestHead()
    var progress = HeadProgress()
    for count in pieces ?? [bytes.count] {
        let piece = Array(bytes[..<count])
        do throws(FramingError) {
            if try parseRequestHead(piece.span, into: &head, progress: &progress, limits: limits) {
                return RequestResult(
                    error: nil, method: text(bytes[head.methodRange]), target: text(bytes[head.targetRange]),
                    parsed: head.target, minorVersion: head.minorVersion, fields: head.fields,
                    byteCount: head.byteCount)
            }
        } catch { return RequestResult(error: error) }
    }
    return nil
}

/// Parses heads of some connections in turn, with what the connections sent before and without, and compares.
func expectSameWithMemory(
    _ heads: [(owner: UInt64, text: String)], limits: Limits = Limits(),
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let memory = HeadMemory()
    var head = RequestHead()
    for (owner, text) in heads {
        let bytes = Array(text.utf8)
        var progress = HeadProgress()
        var result: RequestResult?
        do throws(FramingError) {
            if try parseRequestHead(
                bytes.span, into: &head, progress: &progress, limits: limits, memory: memory, owner: owner)
            {
                result = RequestResult(
                    error: nil, method: FramingTests.text(bytes[head.methodRange]),
                    target: FramingTests.text(bytes[head.targetRange]), parsed: head.target,
                    minorVersion: head.minorVersion, fields: head.fields, byteCount: head.byteCount)
            }
        } catch { result = RequestResult(error: error) }
        let expected = parseRequest(bytes, limits: limits)
        #expect(result == expected, "\(owner) \(text)", sourceLocation: sourceLocation)
    }
}

struct ResponseResult: Equatable {
    var error: FramingError?
    var status: UInt16 = 0
    var reason = ""
    var minorVersion: UInt8 = 1
    var fields = FieldSection()
    var byteCount = 0
}

func parseResponse(_ bytes: [UInt8], askedAt pieces: [Int]? = nil, limits: Limits = Limits()) -> ResponseResult? {
    var head = ResponseHead()
    var progress = HeadProgress()
    for count in pieces ?? [bytes.count] {
        let piece = Array(bytes[..<count])
        do throws(FramingError) {
            if try parseResponseHead(piece.span, into: &head, progress: &progress, limits: limits) {
                return ResponseResult(
                    error: nil, status: head.status, reason: text(bytes[head.reasonRange]),
                    minorVersion: head.minorVersion, fields: head.fields, byteCount: head.byteCount)
            }
        } catch { return ResponseResult(error: error) }
    }
    return nil
}

struct ChunkedResult: Equatable {
    var error: FramingError?
    var body: [UInt8] = []
    var trailers: [UInt8] = []
    /// nil where the body has not ended.
    var byteCount: Int?
}

/// - Parameter pieces: ends of the pieces in which the bytes arrive.
func decodeChunked(_ bytes: [UInt8], pieces: [Int]? = nil, limits: Limits = Limits()) -> ChunkedResult {
    var decoder = ChunkedDecoder(limits: limits)
    var result = ChunkedResult()
    var position = 0
    for end in pieces ?? [bytes.count] {
        var wantsMore = false
        while !wantsMore {
            let piece = Array(bytes[position..<end])
            do throws(FramingError) {
                switch try decoder.step(piece.span) {
                case .needMore(let consumed):
                    position += consumed
                    wantsMore = true
                case .data(let consumed, let range):
                    result.body += piece[range]
                    position += consumed
                case .end(let consumed):
                    result.byteCount = position + consumed
                    if let trailers = decoder.trailers { appendFieldLines(trailers, to: &result.trailers) }
                    return result
                }
            } catch {
                result.error = error
                return result
            }
        }
    }
    return result
}

func text(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

/// One line of a table: an input and what must come of it.
struct Row<Expectation: Sendable>: Sendable, CustomTestStringConvertible {
    let rule: String
    let input: String
    let expect: Expectation
    init(_ rule: String, _ input: String, _ expect: Expectation) {
        self.rule = rule
        self.input = input
        self.expect = expect
    }
    var testDescription: String { rule }
    /// Latin-1, so that "\u{80}" is one byte.
    var bytes: [UInt8] { input.unicodeScalars.map { UInt8($0.value) } }
}

/// A small generator that gives the same numbers for the same seed (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: Int) { state = UInt64(seed) }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
