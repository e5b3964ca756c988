import Message
import Routing
import Testing

@Suite("What a PAC file has said") struct PACBookTests {
    private let origin = Origin(.http, Endpoint(host: "a.example", port: 80))
    private let other = Origin(.https, Endpoint(host: "a.example", port: 443))

    private func ask(_ book: inout PACBook<String>, _ origin: Origin, _ waiter: String, at now: Duration) -> String {
        switch book.ask(origin, for: waiter, now: now).0 {
        case .known(.success(let routes)): "\(routes)"
        case .known(.failure(let failure)): failure.text
        case .ask: "ask"
        case .joined: "joined"
        }
    }

    private func answered(
        _ book: inout PACBook<String>, _ origin: Origin, _ verdict: PACVerdict, version: UInt64, now: Duration
    ) -> [String] { book.answered(origin, verdict, version: version, now: now) }

    @Test func `a question is asked once for all who wait, and then known for its lifetime`() {
        var book = PACBook<String>(lifetime: .seconds(300))
        #expect(ask(&book, origin, "one", at: .zero) == "ask")
        #expect(ask(&book, origin, "two", at: .zero) == "joined")
        #expect(ask(&book, other, "three", at: .zero) == "ask", "another scheme may have another route")
        let begins = book.begin(origin)
        #expect(begins)
        #expect(answered(&book, origin, .success([.direct]), version: 1, now: .seconds(1)) == ["one", "two"])
        #expect(ask(&book, origin, "four", at: .seconds(300)) == "[direct]")
        #expect(ask(&book, origin, "five", at: .seconds(301)) == "ask")
    }

    @Test func `a failure is known for a shorter time, and that there was no room not at all`() {
        var book = PACBook<String>(lifetime: .seconds(300))
        #expect(ask(&book, origin, "one", at: .zero) == "ask")
        #expect(answered(&book, origin, .failure(.timedOut), version: 1, now: .zero) == ["one"])
        #expect(ask(&book, origin, "two", at: .seconds(9)) == PACFailure.timedOut.text)
        #expect(ask(&book, origin, "three", at: .seconds(10)) == "ask")
        #expect(answered(&book, origin, .failure(.busy), version: 1, now: .seconds(10)) == ["three"])
        #expect(ask(&book, origin, "four", at: .seconds(10)) == "ask")
    }

    @Test func `a question for which nobody waits any more is not put to the script`() {
        var book = PACBook<String>(lifetime: .seconds(300))
        let first = book.ask(origin, for: "one", now: .zero).number
        let second = book.ask(origin, for: "two", now: .zero).number
        #expect(book.waitingCount == 2)
        book.leave(first, origin)
        let begins = book.begin(origin)
        book.leave(second, origin)
        let beginsAgain = book.begin(origin)
        #expect(begins && !beginsAgain && book.waitingCount == 0)
        #expect(ask(&book, origin, "three", at: .zero) == "ask", "the question is over")
        #expect(answered(&book, origin, .success([.direct]), version: 1, now: .zero) == ["three"])
        #expect(answered(&book, origin, .success([.direct]), version: 1, now: .zero) == [])
    }

    @Test func `with another version of the script nothing holds, and a late answer of the old one is not kept`() {
        var book = PACBook<String>(lifetime: .seconds(300))
        #expect(ask(&book, origin, "one", at: .zero) == "ask")
        #expect(answered(&book, origin, .success([.direct]), version: 1, now: .zero) == ["one"])
        #expect(ask(&book, other, "two", at: .zero) == "ask")
        book.renew(lifetime: .seconds(300))
        #expect(book.version == 2)
        #expect(
            answered(&book, other, .success([.direct]), version: 1, now: .zero) == ["two"], "who waited is answered")
        #expect(ask(&book, origin, "three", at: .zero) == "ask")
        #expect(ask(&book, other, "four", at: .zero) == "ask")
    }

    @Test func `without a lifetime nothing is kept, and the number of answers is bounded`() {
        var book = PACBook<String>(lifetime: .zero)
        _ = ask(&book, origin, "one", at: .zero)
        _ = book.answered(origin, .success([.direct]), version: 1, now: .zero)
        #expect(book.verdict(on: origin, now: .zero) == nil)
        var long = PACBook<String>(lifetime: .seconds(300))
        for number in 0...PACLimits.answersMax {
            let origin = Origin(.http, Endpoint(host: "a\(number)", port: 80))
            _ = long.answered(origin, .success([.direct]), version: 1, now: .zero)
        }
        #expect(long.verdict(on: Origin(.http, Endpoint(host: "a0", port: 80)), now: .zero) == nil)
        #expect(long.verdict(on: Origin(.http, Endpoint(host: "a1", port: 80)), now: .zero) != nil)
    }
}
