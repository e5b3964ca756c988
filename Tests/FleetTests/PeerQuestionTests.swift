import Fleet
import Message
import Testing

@Suite("Fleet: what nodes say to each other") struct PeerQuestionTests {
    private func whole() -> PeerQuestion {
        var question = PeerQuestion(node: "cache-1")
        question.position = StreamPosition(Array("1700000000000-3 run id and a random value".utf8))
        question.client = IPAddress(v4: 0x0A01_0203)
        question.user = .init(name: "Ali Çelebi=x", scheme: "Basic", groups: ["staff", "a b", ""])
        question.listener = "127.0.0.1:3128"
        question.isForStoreOnly = true
        return question
    }

    @Test func `a question says the same when it is read`() throws {
        for question in [whole(), PeerQuestion(node: "b")] {
            let value = try #require(question.encoded(hash: hash))
            #expect(value.allSatisfy { (0x20...0x7E).contains($0) }, "it fits into a field: \(value)")
            #expect(try PeerQuestion.decode(value, hash: hash) == question)
        }
    }

    @Test func `an address of IPv6`() throws {
        var question = PeerQuestion(node: "b")
        question.client = IPAddress(v6: 0x2001_0db8_0000_0000, low: 1)
        let value = try #require(question.encoded(hash: hash))
        #expect(try PeerQuestion.decode(value, hash: hash).client == question.client)
    }

    @Test func `every changed byte is noticed`() throws {
        let value = try #require(whole().encoded(hash: hash))
        for index in value.indices {
            var changed = value
            changed[index] ^= 1
            let objection = errorOf { () throws(PeerObjection) in
                _ = try PeerQuestion.decode(changed, hash: hash)
            }
            #expect(objection == (index < 2 ? .version : .secret), "byte \(index)")
        }
    }

    @Test func `another secret, another version, and nonsense`() throws {
        let value = try #require(whole().encoded(hash: hash))
        func objection(_ value: [UInt8]) -> PeerObjection? {
            errorOf { () throws(PeerObjection) in _ = try PeerQuestion.decode(value, hash: hash) }
        }
        let other = try #require(whole().encoded(hash: otherHash))
        #expect(objection(other) == .secret)
        #expect(objection([0x31] + value.dropFirst()) == .version)
        #expect(objection([]) == .version)
        #expect(objection(Array("2 ".utf8)) == .malformed)
        #expect(objection(Array("2 abc".utf8)) == .malformed)
        #expect(objection(value + [UInt8](repeating: 0x20, count: 9000)) == .malformed)
    }

    @Test func `who has too many groups does not ask`() {
        var question = whole()
        question.user = .init(name: "a", scheme: "Basic", groups: (0..<1000).map { "group-\($0)" })
        #expect(question.encoded(hash: hash) == nil)
    }

    static let verdicts: [(text: String, means: PeerVerdict?)] =
        [
            ("2 hit", .hit), ("2 stale", .stale), ("2 fetched", .fetched), ("2 passed", .passed),
            ("2 working", .working), ("2 refused later", .refused(.unanswered)),
            // Of a release that called a stale response a hit.
            ("1 hit", .refused(.version)), ("1 refused absent", .refused(.version)),
            ("3 hit", .refused(.version)), ("3", .refused(.version)), ("10 refused secret", .refused(.version)),
            ("2x hit", nil), ("2", nil), ("2 hit x", nil), ("", nil), ("hit", nil), ("2 refused", nil), ("2 HIT", nil),
        ] + PeerObjection.allCases.map { ("2 refused \($0.rawValue)", PeerVerdict.refused($0)) }
    @Test(arguments: verdicts) func `a verdict`(_ row: (text: String, means: PeerVerdict?)) {
        #expect(PeerVerdict(Array(row.text.utf8)[...]) == row.means)
        if let means = row.means, row.text.hasPrefix("2 "), row.text != "2 refused later" {
            #expect(means.text == row.text)
        }
    }

    @Test func `the verdict goes behind the status line`() {
        var bytes = Array("before HTTP/1.1 200 OK\r\nAge: 1\r\n\r\n".utf8)
        PeerVerdict.hit.insert(intoHeadAt: 7, of: &bytes)
        #expect(
            String(decoding: bytes, as: UTF8.self) == "before HTTP/1.1 200 OK\r\nLarder-Peer: 2 hit\r\nAge: 1\r\n\r\n")
    }
}
