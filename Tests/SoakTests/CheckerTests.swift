import Testing

/// What a test lets a reader receive, in pieces of any size.
private final class ScriptedBytes: ByteSource {
    private var rest: ArraySlice<UInt8>
    private let pieceMax: Int
    private let end: Socket.Received

    init(_ text: String, pieceMax: Int, end: Socket.Received) {
        rest = Array(text.utf8)[...]
        self.pieceMax = pieceMax
        self.end = end
    }

    func receive(into bytes: inout [UInt8], _ countMax: Int) -> Socket.Received {
        guard !rest.isEmpty else { return end }
        let piece = rest.prefix(min(countMax, pieceMax))
        bytes += piece
        rest = rest.dropFirst(piece.count)
        return .bytes(piece.count)
    }
}

@Suite("The soak's reader of answers")
struct CheckerTests {
    private enum Outcome: Equatable {
        case whole(String, behind: String = "")
        case brokenOff, silent, violation
    }

    private static let resource = Resource(seed: 1, number: 1)

    private func read(
        _ text: String, method: String = "GET", minorVersion: Int = 1, pieceMax: Int = 1000, end: Socket.Received = .end
    ) -> Outcome {
        var question = Question(resource: Self.resource)
        question.method = method
        question.minorVersion = minorVersion
        var reader = MessageReader(ScriptedBytes(text, pieceMax: pieceMax, end: end))
        do throws(Interruption) {
            let answer = try reader.answer(to: question)
            return .whole(
                String(decoding: answer.body, as: UTF8.self), behind: String(decoding: reader.pending, as: UTF8.self))
        } catch {
            switch error {
            case .brokenOff: return .brokenOff
            case .silent: return .silent
            case .violation: return .violation
            }
        }
    }

    private static let ok = "HTTP/1.1 200 OK\r\n"

    @Test(arguments: [1, 2, 7, 1000]) func `a whole answer, however it is split`(pieceMax: Int) {
        let length = "\(Self.ok)Content-Length: 5\r\n\r\nhello"
        #expect(read(length, pieceMax: pieceMax) == .whole("hello"))
        let chunked = "\(Self.ok)Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nX-End: yes\r\n\r\n"
        #expect(read(chunked, pieceMax: pieceMax) == .whole("hello"))
        #expect(read("\(Self.ok)Server: x\r\n\r\nhello", pieceMax: pieceMax) == .whole("hello"))
        #expect(read("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\(length)", pieceMax: pieceMax) == .whole("hello"))
    }

    @Test func `what stands behind an answer is not part of it`() {
        #expect(
            read("\(Self.ok)Content-Length: 2\r\n\r\nokHTTP/1.1 100 Continue\r\n\r\n")
                == .whole("ok", behind: "HTTP/1.1 100 Continue\r\n\r\n"))
        #expect(read("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\nmore") == .whole("", behind: "more"))
        #expect(read("\(Self.ok)Content-Length: 5\r\n\r\nhello", method: "HEAD") == .whole("", behind: "hello"))
    }

    static let short = [
        "", "HTTP/1.1 200", "\(ok)Content-Length: 5\r\n\r\nhell",
        "\(ok)Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "\(ok)Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n",
    ]

    @Test(arguments: short) func `an end before the end is seen`(text: String) {
        #expect(read(text) == .brokenOff)
        #expect(read(text, end: .reset) == .brokenOff)
        #expect(read(text, end: .timedOut) == .silent)
    }

    static let malformed = [
        "HTTP/1.1 200\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 999 OK\r\n\r\n",
        "TTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
        "\(ok)Name : x\r\n\r\n", "\(ok)Name\r\n\r\n", "\(ok) folded\r\n\r\n", "\(ok)A: b\nC: d\r\n\r\n",
        "\(ok)A: \u{1}\r\n\r\n",
        "\(ok)Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "\(ok)Content-Length: +5\r\n\r\nhello",
        "\(ok)Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "\(ok)Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 204 None\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n",
        "\(ok)Transfer-Encoding: chunked\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
        "\(ok)Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n",
        "\(ok)Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n",
        "\(ok)Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 3\r\n\r\n",
    ]

    @Test(arguments: malformed) func `what is no HTTP/1.1 response is refused`(text: String) {
        #expect(read(text) == .violation)
    }

    @Test func `clients of HTTP/1.0 get neither chunks nor interim responses`() {
        let chunked = "\(Self.ok)Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        #expect(read(chunked, minorVersion: 0) == .violation)
        #expect(read("HTTP/1.1 100 Continue\r\n\r\n\(Self.ok)\r\n", minorVersion: 0) == .violation)
        #expect(read("\(Self.ok)Content-Length: 2\r\n\r\nok", minorVersion: 0) == .whole("ok"))
    }

    // MARK: content

    @Test func `bytes tell which form they are of`() {
        let resource = Self.resource
        let (first, second) = (Form(resource: resource), Form(resource: resource, version: 2))
        let bytes = first.bytes
        #expect(first.firstDifference(bytes, at: 0) == nil)
        #expect(first.firstDifference(bytes.dropFirst(10), at: 10) == nil)
        #expect(first.firstDifference(bytes.dropFirst(10).prefix(50), at: 11) != nil)
        #expect(first.firstDifference(bytes + [0], at: 0) == bytes.count)
        #expect(second.firstDifference(bytes.prefix(50), at: 0) != nil)
        let compressed = gzipped(bytes)
        #expect(gunzipped(compressed, lengthMax: Noise.lengthMax)?.bytes == Array(bytes))
        #expect(gunzipped(Array(compressed.dropLast(9)), lengthMax: Noise.lengthMax)?.isWhole == false)
        #expect(gunzipped(Array(bytes), lengthMax: Noise.lengthMax) == nil)
    }

    private func fault(
        _ text: String, of resource: Resource = Self.resource, ranges: [RangeWish] = [], body: ArraySlice<UInt8>,
        claimed length: Int? = nil, cacheStatus: String = "hit", isWhole: Bool = true, isForged: Bool = false
    ) -> String? {
        let world = World(seed: 1, resourceCount: max(4, resource.number + 1), patience: 1, hasLongSilence: false)
        if let length { world.claim(resource) { $0.lengths.insert(length) } }
        if isForged { world.blame(resource, for: [.wrongByte]) }
        var question = Question(resource: resource)
        question.ranges = ranges
        let date =
            "Date: \(httpDate(1_700_000_000))\r\nVia: 1.1 larder\r\nCache-Status: larder; \(cacheStatus)\r\nAge: 1\r\n"
        let head = "HTTP/1.1 \(text)\r\n\(date)Content-Length: \(body.count)\r\n\r\n"
        var reader = MessageReader(ScriptedBytes(head, pieceMax: 4096, end: .end))
        var headOnly = question
        headOnly.method = "HEAD"
        do throws(Interruption) {
            var answer = try reader.answer(to: headOnly)
            answer.body = Array(body)
            answer.isComplete = isWhole
            return faultFound(in: answer, to: question, in: world, since: world.now)
        } catch { return "\(error)" }
    }

    @Test func `the judge takes what is right, and nothing else`() {
        let form = Form(resource: Self.resource, kind: Self.resource.isPersonal ? .personal(0) : .plain)
        let bytes = form.bytes
        let length = bytes.count
        #expect(length > 100, "choose another resource for these tests")
        #expect(fault("200 OK", body: bytes) == nil)
        #expect(fault("200 OK", body: bytes.dropLast()) != nil)
        #expect(fault("200 OK", body: bytes.dropLast(8) + Array("HTTP/1.1".utf8)) != nil)
        #expect(fault("200 OK\r\nETag: \"\(form.opaqueTag)\"", body: bytes) == nil)
        #expect(fault("200 OK\r\nETag: \"1-2-en-p\"", body: bytes) != nil)
        #expect(fault("200 OK\r\nContent-Encoding: gzip", body: bytes) != nil)
        #expect(fault("200 OK\r\nKeep-Alive: 5", body: bytes) != nil)
        #expect(fault("304 Not Modified", body: []) != nil)
        #expect(fault("503 Busy", body: []) != nil)
        let wish = [RangeWish.span(10, 19)]
        let part = bytes.dropFirst(10).prefix(10)
        #expect(fault("206 Part\r\nContent-Range: bytes 10-19/\(length)", ranges: wish, body: part) == nil)
        #expect(fault("206 Part\r\nContent-Range: bytes 10-19/\(length)", ranges: wish, body: part.dropLast()) != nil)
        #expect(fault("206 Part\r\nContent-Range: bytes 10-19/\(length + 1)", ranges: wish, body: part) != nil)
        #expect(fault("206 Part\r\nContent-Range: bytes 11-20/\(length)", ranges: wish, body: part) != nil)
        #expect(fault("206 Part\r\nContent-Range: bytes 10-19/\(length)", body: part) != nil)
        #expect(fault("206 Part", ranges: wish, body: part) != nil)
        #expect(fault("416 No\r\nContent-Range: bytes */\(length)", ranges: wish, body: []) != nil)
    }

    @Test func `an empty body is of another form only if the origin said that this form is empty`() throws {
        let empty = try #require(
            (0..<5000).lazy.map { Resource(seed: 1, number: $0) }.first {
                !$0.isPersonal && !$0.isVaried && !$0.isPromised && Form(resource: $0).length == 0
            })
        let tag = Form(resource: empty, kind: .falseGzip).opaqueTag
        #expect(fault("200 OK\r\nETag: W/\"\(tag)\"", of: empty, body: []) != nil)
        #expect(fault("200 OK\r\nETag: W/\"\(tag)\"", of: empty, body: [], claimed: 0) == nil)
    }

    @Test(arguments: ["hit", "fwd=uri-miss; fwd-status=200; stored", "fwd=uri-miss; collapsed"])
    func `what is promised comes as promised, or breaks off where the origin has something else`(_ way: String) throws {
        let promised = try #require(
            (0..<500).lazy.map { Resource(seed: 1, number: $0) }.first {
                $0.promise == .path && Form(resource: $0).length > 100
            })
        let right = Form(resource: promised).bytes
        let length = right.count
        #expect(fault("200 OK", of: promised, body: right, cacheStatus: way) == nil)
        // Of others an origin may say that this is all.
        let short = right.dropLast()
        #expect(
            fault("200 OK", of: promised, body: short, claimed: length - 1, cacheStatus: way, isForged: true) != nil)
        for place in [0, length / 2, length - 1] {
            var wrong = Array(right)[...]
            wrong[place] ^= 1
            let all = "206 Part\r\nContent-Range: bytes 0-\(length - 1)/\(length)"
            #expect(fault("200 OK", of: promised, body: wrong, cacheStatus: way, isForged: true) != nil)
            #expect(
                fault(all, of: promised, ranges: [.from(0)], body: wrong, cacheStatus: way, isForged: true) != nil)
            func brokenOff(isForged: Bool) -> String? {
                fault("200 OK", of: promised, body: wrong, cacheStatus: way, isWhole: false, isForged: isForged)
            }
            #expect(brokenOff(isForged: true) == nil && brokenOff(isForged: false) != nil)
            // A part by itself proves nothing, but what is stored has been proven.
            let part = "206 Part\r\nContent-Range: bytes \(place)-\(place)/\(length)"
            let ofPart = fault(
                part, of: promised, ranges: [.span(place, place)], body: wrong[place...place], cacheStatus: way,
                isForged: true)
            #expect((ofPart == nil) == (way != "hit"))
        }
    }

    @Test(arguments: [0, 1, 4096, 4097, 100_000]) func `an origin has the wrong bytes for several requests`(length: Int)
    {
        let promised = (0..<100).map { Resource(seed: 1, number: $0) }.filter(\.isPromised)
        let forgeries = promised.flatMap { resource in (0..<12).map { Forgery(resource, ask: $0) } }
        let right = Noise.bytes[..<length]
        let bodies = forgeries.map { $0?.forged(right) ?? right }
        for first in stride(from: 0, to: bodies.count, by: 6) {
            #expect(bodies[first..<first + 6].allSatisfy { $0 == bodies[first] })
        }
        #expect(bodies.allSatisfy { $0.count == length })
        for (forgery, body) in zip(forgeries, bodies) where length > 0 { #expect((forgery == nil) == (body == right)) }
        #expect(Set(forgeries.map { $0?.fault }) == [nil, .wrongByte, .wrongBody])
    }

    @Test func `a multipart body is taken apart`() throws {
        let body =
            "--b\r\nContent-Range: bytes 0-1/9\r\n\r\nab\r\n--b\r\nContent-Range: bytes 5-7/9\r\n\r\nfgh\r\n--b--\r\n"
        let parts = try multipart(Array(body.utf8), type: "multipart/byteranges; boundary=b")
        #expect(parts.map(\.range) == [0..<2, 5..<8])
        #expect(parts.map { String(decoding: $0.bytes, as: UTF8.self) } == ["ab", "fgh"])
        for wrong in [String(body.dropLast(8)), body.replacing("0-1/9", with: "0-2/9"), body + "more"] {
            #expect(throws: Violation.self) {
                try multipart(Array(wrong.utf8), type: "multipart/byteranges; boundary=b")
            }
        }
    }

    @Test func `a script follows from seed, resource and request alone`() {
        let resource = Resource(seed: 7, number: 33)
        for ask in 0..<50 {
            let (one, other) = (
                Script(resource, ask: ask, hasLongSilence: true), Script(resource, ask: ask, hasLongSilence: true)
            )
            #expect(one.faults == other.faults)
        }
        let kinds = Set((0..<50).map { Script(resource, ask: $0, hasLongSilence: true).faults })
        #expect(kinds.count > 10)
    }

    /// What is wrong with an answer from the cache for which the origin has said this to that request.
    private func reuse(
        _ said: String, to asked: String = "", status: Int = 200, cacheStatus: String = "larder; hit",
        userAgent: String? = nil
    ) throws -> String? {
        var reply = Reply()
        reply.status = status
        for line in said.split(separator: "|") {
            let parts = line.split(separator: ":", maxSplits: 1)
            reply.set(String(parts[0]), trimmed(parts[1]))
        }
        let world = World(seed: 1, resourceCount: 4, patience: 1, hasLongSilence: false)
        let number = world.state(Statement(reply, to: try Head(Array("GET / HTTP/1.1\r\n\(asked)\r\n".utf8)[...])))
        var answer = Answer()
        answer.head = try Head(
            Array("HTTP/1.1 200 OK\r\nCache-Status: \(cacheStatus)\r\nX-Answer: \(number)\r\n\r\n".utf8)[...])
        var question = Question(resource: Self.resource)
        question.userAgent = userAgent
        return faultOfReuse(answer, question, in: world)
    }

    @Test func `what the cache gives away must be meant for the client`() throws {
        #expect(try reuse("Cache-Control: max-age=60") == nil)
        for said in ["private", "private, max-age=60", "no-store", "no-cache"] {
            #expect(try reuse("Cache-Control: \(said)") != nil, "\(said)")
            #expect(
                try reuse("Cache-Control: \(said)", cacheStatus: "larder; fwd=uri-miss; collapsed") != nil, "\(said)")
            #expect(
                try reuse("Cache-Control: \(said)", cacheStatus: "larder; fwd=stale; fwd-status=304") == nil, "\(said)")
        }
        #expect(try reuse("Cache-Control: private", to: "X-Serial: 0\r\n", cacheStatus: "larder; collapsed") == nil)
        #expect(try reuse("Cache-Control: private", status: 304) != nil)
        #expect(try reuse("Vary: *") != nil)
        #expect(try reuse("Vary: User-Agent", to: "User-Agent: soak/1\r\n", userAgent: "soak/1") == nil)
        #expect(try reuse("Vary: User-Agent", to: "User-Agent: soak/1\r\n", userAgent: "soak/2") != nil)
        #expect(try reuse("Vary: User-Agent", to: "User-Agent: soak/1\r\n") != nil)
        #expect(try reuse("Vary: User-Agent", userAgent: "soak/1") != nil)
    }

    @Test(arguments: [
        "/closed/1", "//closed//1", "/./closed/1", "/a/../closed/1", "/%63losed/1", "/a%2f..%2Fclosed/1",
        "/%2563losed/1", "/closed;x/1", "/a/..;/closed/1",
        "/closed\\1",
    ]) func `a server may take the target for what is closed`(_ target: String) throws {
        #expect(Gate.readings(target).contains { $0.first == "closed" })
        let head = try Head(Array("GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX-Gate: ann\r\n\r\n".utf8)[...])
        #expect(throws: Violation.self) { try Origin.gateAnswer(to: head, port: 1) }
    }

    @Test func `a page of another user is found out, and a refusal of one's own`() throws {
        var dice = Dice(9)
        for _ in 0..<300 {
            let attempt = Attempt(&dice)
            var answer = Answer()
            answer.status = 200
            answer.body = Array(Gate.page(attempt.owner ?? "ann", attempt.room).utf8)
            #expect((attempt.fault(in: answer) == nil) == (attempt.owner != nil && attempt.owner == attempt.user))
            answer.status = 403
            #expect(attempt.fault(in: answer) == nil || attempt.isPlain && attempt.owner == attempt.user)
            answer.status = 407
            #expect((attempt.fault(in: answer) == nil) == (attempt.user == nil))
        }
    }
}
