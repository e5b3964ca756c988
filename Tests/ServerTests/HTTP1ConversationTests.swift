import EventLoop
import Framing
import Glibc
import Message
import Testing
import Transport

@testable import Server

/// Writes down what it is told, and does with a final head what the test says.
@safe private final class Owner: ConversationOwner {
    var events: [String] = []
    var use = ContentUse.take
    var allowance = Int.max
    /// Room for content. Nil: there is none.
    var page: UnsafeMutableRawBufferPointer?
    var whenFinal: (HTTP1Conversation) -> Void = { $0.keep(for: .seconds(1)) }
    unowned(unsafe) var conversation: HTTP1Conversation!
    /// What has come whole together with the last final head.
    private(set) var content: String?

    func allowance(for count: Int) -> Int { min(count, allowance) }
    func headBegan() { events.append("began") }
    func received(interim head: ArrivedHead) { events.append("interim \(head.status)") }

    func received(final head: ArrivedHead, of conversation: HTTP1Conversation) -> ContentUse {
        events.append("final \(head.status)")
        content = unsafe head.content.map { unsafe String(decoding: $0, as: UTF8.self) }
        whenFinal(conversation)
        return use
    }

    func room(forContent limit: UInt64) -> UnsafeMutableRawBufferPointer {
        unsafe page.map { unsafe UnsafeMutableRawBufferPointer(rebasing: $0.prefix(Int(limit))) }
            ?? UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    func filled(_ count: Int) { events.append("filled \(count)") }

    func received(content piece: UnsafeRawBufferPointer, isAll: Bool) {
        events.append("content \(unsafe String(decoding: piece, as: UTF8.self))\(isAll ? "" : " and more")")
    }

    func ended(byClosing: Bool) { events.append(byClosing ? "ended by closing" : "ended") }
    func endOfRead() { events.append("end of read") }
    func skipped() { unsafe events.append("skipped, \(conversation.persists ? "persists" : "does not persist")") }
    func receivedUnasked() { events.append("unasked") }
    func violated(_ error: FramingError) { events.append("violated \(error.reason)") }
    func closedBeforeHead(headBegan: Bool) {
        events.append(headBegan ? "closed within a head" : "closed before a head")
    }
    func brokeOff() { events.append("broke off") }
    func drained() { events.append("drained") }
}

private final class Keeper: ConversationKeeper {
    var events: [String] = []
    func turn(_ work: () -> Void) { work() }
    func readableWhileIdle() { events.append("readable while idle") }
    func hasRead(_ count: Int) {}
    func hasWritten(_ count: Int) {}
}

/// A conversation whose peer is the test.
@safe private final class Stage {
    let loop: EventLoop
    let owner = Owner()
    let keeper = Keeper()
    let conversation: HTTP1Conversation
    private let peer: CInt
    private let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    private let head = UnsafeMutablePointer<ResponseHead>.allocate(capacity: 1)
    private let limits = UnsafeMutablePointer<Limits>.allocate(capacity: 1)

    init() throws {
        loop = try EventLoop()
        var ends: [CInt] = [0, 0]
        try #require(unsafe socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        for end in ends { _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) }
        peer = ends[1]
        unsafe head.initialize(to: ResponseHead())
        unsafe limits.initialize(to: Limits())
        conversation = HTTP1Conversation(
            Transport(plain: Descriptor(adopting: ends[0])),
            unsafe ConversationMemory(input: input, head: head, limits: limits))
        unsafe owner.conversation = conversation
        conversation.start(on: loop, keeper: keeper)
        conversation.begin(owner)
    }

    deinit {
        if conversation.owner != nil { _ = conversation.end() }
        conversation.close()
        Glibc.close(peer)
        unsafe input.deallocate()
        unsafe head.deallocate()
        unsafe limits.deallocate()
    }

    /// Sends a request.
    func ask(_ method: Method = .get, content: BodyLength = .none) {
        let head = Array("\(method.text) / HTTP/1.1\r\n\r\n".utf8)
        let hasContent = content != .none
        unsafe head.withUnsafeBytes {
            _ = unsafe conversation.ask(
                $0, framing: content, hasContent: hasContent, method: method)
        }
    }

    /// The peer sends something, and the loop sees it.
    func answer(_ text: String) {
        let bytes = Array(text.utf8)
        precondition(
            unsafe send(peer, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count, "a socket takes short texts")
        turn()
    }

    func hangUp() {
        shutdown(peer, CInt(SHUT_WR))
        turn()
    }

    func turn() {
        loop.afterTurn { [loop] in loop.stop() }
        loop.run()
    }

    /// What the peer has got.
    var sent: String {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = unsafe read(peer, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    /// What the owner was told since the last time.
    func events() -> [String] {
        defer { owner.events = [] }
        return owner.events
    }
}

@Suite("Conversations with an origin over HTTP/1") struct HTTP1ConversationTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"

    @Test func `a request and its response leave a connection that can be used again`() throws {
        let stage = try Stage()
        stage.ask()
        #expect(stage.sent == "GET / HTTP/1.1\r\n\r\n")
        stage.answer(Self.ok + "ab")
        #expect(stage.events() == ["final 200", "content ab", "ended"])
        #expect(stage.conversation.end() == .seconds(1))
        stage.answer("x")
        #expect(stage.keeper.events == ["readable while idle"] && stage.events() == [])
    }

    @Test func `heads and content come in whatever pieces`() throws {
        let stage = try Stage()
        stage.ask()
        stage.answer("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 ")
        #expect(stage.events() == ["interim 103", "began"])
        stage.answer("200 OK\r\nContent-Length: 3\r\n")
        #expect(stage.events() == [])
        stage.answer("\r\na")
        #expect(stage.events() == ["final 200", "content a", "end of read"])
        stage.answer("bc")
        #expect(stage.events() == ["content bc", "ended"])
    }

    @Test func `the trailers of chunked content can be asked for at its end`() throws {
        let stage = try Stage()
        stage.ask()
        stage.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nA: b\r\n\r\n")
        #expect(stage.events() == ["final 200", "content ab and more", "ended"])
        #expect(stage.conversation.trailers?.value(ofSpelling: Array("a".utf8)).map(Array.init) == Array("b".utf8))
    }

    @Test func `content is read to where the owner has room`() throws {
        let stage = try Stage()
        let page = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 8)
        defer { unsafe page.deallocate() }
        stage.ask()
        stage.answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        unsafe stage.owner.page = unsafe page
        stage.answer("ab")
        stage.answer("cd")
        #expect(stage.events() == ["final 200", "end of read", "filled 2", "end of read", "filled 2", "ended"])
        #expect(unsafe page.prefix(2).elementsEqual("cd".utf8))
        #expect(stage.conversation.end() == .seconds(1))
    }

    @Test func `short content can be taken together with its head`() throws {
        let stage = try Stage()
        stage.owner.whenFinal = { conversation in
            conversation.keep(for: .seconds(1))
            conversation.takeContent()
        }
        stage.ask()
        stage.answer(Self.ok + "ab")
        #expect(stage.owner.content == "ab")
        #expect(stage.events() == ["final 200", "ended"])
        #expect(stage.conversation.end() == .seconds(1))
    }

    @Test func `content that is not all there cannot be taken with its head`() throws {
        let stage = try Stage()
        stage.ask()
        stage.answer(Self.ok + "a")
        #expect(stage.events() == ["final 200", "content a", "end of read"])
        #expect(stage.owner.content == nil)
    }

    // MARK: what keeps a connection from being used again

    private static let spoilt: [(why: String, answer: String, idleTime: Duration?)] = [
        ("bytes behind the response", ok + "abX", .seconds(1)),
        ("the owner does not want it", ok + "ab", nil),
        ("the content is not complete", ok + "a", .seconds(1)),
        ("the framing is invalid", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", .seconds(1)),
    ]
    @Test(arguments: spoilt)
    fileprivate func `a connection carries no other request`(
        _ row: (why: String, answer: String, idleTime: Duration?)
    ) throws {
        let stage = try Stage()
        stage.owner.whenFinal = { $0.keep(for: row.idleTime) }
        stage.ask()
        stage.answer(row.answer)
        #expect(stage.conversation.end() == nil)
    }

    @Test func `a connection in the middle of a request carries no other one`() throws {
        let stage = try Stage()
        stage.ask(.post, content: .length(3))
        stage.answer(Self.ok + "ab")
        #expect(stage.conversation.end() == nil)
    }

    @Test func `a request with content is complete when its end has been sent`() throws {
        let stage = try Stage()
        stage.ask(.post, content: .chunked)
        _ = stage.sent
        unsafe Array("ab".utf8).withUnsafeBytes { unsafe stage.conversation.send(content: $0) }
        stage.conversation.endRequest(trailers: nil, without: [])
        #expect(stage.sent == "2\r\nab\r\n0\r\n\r\n")
        stage.answer(Self.ok + "ab")
        #expect(stage.conversation.end() == .seconds(1))
    }

    // MARK: heads that wait, and content that is skipped

    @Test func `a head that is held comes once more, with what has arrived behind it`() throws {
        let stage = try Stage()
        stage.owner.use = .hold
        stage.ask()
        stage.answer(Self.ok + "a")
        stage.answer("b")
        #expect(stage.events() == ["final 200"])
        stage.owner.use = .take
        stage.conversation.release()
        stage.turn()
        #expect(stage.events() == ["final 200", "content a", "end of read", "content b", "ended"])
        #expect(stage.conversation.end() == .seconds(1))
    }

    private static let skipped: [(answer: [String], idleTime: Duration?, events: [String])] = [
        ([ok + "ab"], .seconds(1), ["final 200", "skipped, persists"]),
        ([ok, "a", "b"], .seconds(1), ["final 200", "skipped, persists"]),
        ([ok + "ab"], nil, ["final 200", "skipped, does not persist"]),
        ([ok + "abX"], .seconds(1), ["final 200", "skipped, does not persist"]),
        (["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcd"], .seconds(1), ["final 200"]),
        (
            ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcde"], .seconds(1),
            ["final 200", "skipped, does not persist"]
        ),
    ]
    @Test(arguments: skipped)
    fileprivate func `content is skipped up to a bound`(
        _ row: (answer: [String], idleTime: Duration?, events: [String])
    ) throws {
        let stage = try Stage()
        stage.owner.use = .skip(atMost: 4)
        stage.owner.whenFinal = { $0.keep(for: row.idleTime) }
        stage.ask()
        for piece in row.answer { stage.answer(piece) }
        #expect(stage.events() == row.events)
    }

    @Test func `another request follows on the same connection while its owner has it`() throws {
        let stage = try Stage()
        stage.owner.use = .skip(atMost: 4)
        stage.ask()
        stage.answer(Self.ok + "ab")
        stage.owner.use = .take
        stage.ask()
        stage.answer(Self.ok + "cd")
        #expect(stage.events() == ["final 200", "skipped, persists", "final 200", "content cd", "ended"])
    }

    @Test func `what was not asked for is told`() throws {
        let stage = try Stage()
        stage.answer("HTTP/1.1 200 OK\r\n\r\n")
        #expect(stage.events() == ["unasked"])
    }

    // MARK: ends

    private static let ends: [(answer: String, events: [String])] = [
        ("", ["closed before a head"]),
        ("HTTP/1.1 2", ["began", "closed within a head"]),
        (ok + "a", ["final 200", "content a", "end of read", "broke off"]),
        ("HTTP/1.1 200 OK\r\n\r\nab", ["final 200", "content ab", "end of read", "ended by closing"]),
        ("HTTP/1.1 999999\r\n\r\n", ["violated \(FramingError.badStatus.reason)", "closed before a head"]),
    ]
    @Test(arguments: ends)
    fileprivate func `the end of a connection is told by where it comes`(
        _ row: (answer: String, events: [String])
    ) throws {
        let stage = try Stage()
        stage.ask()
        if !row.answer.isEmpty { stage.answer(row.answer) }
        stage.hangUp()
        #expect(stage.events() == row.events)
        #expect(stage.conversation.end() == nil)
    }

    @Test func `an owner that allows nothing is read for after it goes on`() throws {
        let stage = try Stage()
        stage.ask()
        stage.owner.allowance = 0
        stage.answer(Self.ok + "ab")
        #expect(stage.events() == [])
        stage.owner.allowance = .max
        stage.conversation.resume()
        stage.turn()
        #expect(stage.events() == ["final 200", "content ab", "ended"])
    }

    @Test func `another owner hears what comes from here on`() throws {
        let stage = try Stage()
        let next = Owner()
        unsafe next.conversation = stage.conversation
        stage.ask()
        stage.answer("HTTP/1.1 102 Processing\r\n\r\n")
        stage.conversation.pass(to: next)
        stage.answer(Self.ok + "ab")
        #expect(stage.events() == ["interim 102"])
        #expect(next.events == ["final 200", "content ab", "ended"])
    }
}
