import Message
import Routing
import Testing

@Suite("Names: name servers that are silent") struct NameHealthTests {
    private static let terms = Circuit.Terms(failuresMax: 3, pause: .seconds(5), pauseMax: .seconds(30))

    /// A health with servers that a row names where it matters.
    private struct Bench {
        var health = NameHealth()

        mutating func permit(_ name: String, at second: Int, of servers: String = "s") -> NameHealth.Permit {
            health.permit(name, of: servers, now: .seconds(second), NameHealthTests.terms)
        }

        @discardableResult
        mutating func note(
            _ outcome: NameHealth.Outcome, _ name: String, at second: Int, by servers: String = "s"
        ) -> NameHealth.News? {
            health.note(
                outcome, of: name, by: servers, now: .seconds(second),
                wallTime: WallTime(secondsSinceEpoch: Int64(second)), NameHealthTests.terms)
        }

        func names(at second: Int) -> [String] {
            health.entries(now: .seconds(second), NameHealthTests.terms).map(\.name)
        }
    }

    @Test func `after one silence look-ups of the name fail, and one tries when the pause is over`() {
        var bench = Bench()
        #expect(bench.permit("a", at: 0) == .ask)
        #expect(bench.note(.silence, "a", at: 10) == .nameSilent)
        #expect(bench.permit("a", at: 14) == .refusal && bench.permit("b", at: 14) == .ask)
        #expect(bench.permit("a", at: 15) == .attempt && bench.permit("a", at: 15) == .refusal)
        #expect(bench.note(.silence, "a", at: 16) == nil)
        #expect(bench.permit("a", at: 25) == .refusal && bench.permit("a", at: 26) == .attempt, "twice as long")
    }

    @Test func `the pause grows to its bound`() {
        var bench = Bench()
        bench.note(.silence, "a", at: 0)
        var now = 0
        var pauses: [Int] = []
        for _ in 1...5 {
            let begin = now
            while bench.permit("a", at: now) == .refusal { now += 1 }
            pauses.append(now - begin)
            bench.note(.silence, "a", at: now)
        }
        #expect(pauses == [5, 10, 20, 30, 30])
    }

    @Test(
        arguments: [(.answer, .nameAnswered), (.quickFailure, .nameAnswered)] as [(NameHealth.Outcome, NameHealth.News)]
    )
    func `an answer ends it, and so does a failure that costs no time`(
        _ row: (outcome: NameHealth.Outcome, news: NameHealth.News)
    ) {
        var bench = Bench()
        bench.note(.silence, "a", at: 0)
        #expect(bench.note(row.outcome, "a", at: 1) == row.news)
        #expect(bench.permit("a", at: 1) == .ask && bench.names(at: 1).isEmpty)
        #expect(bench.note(row.outcome, "a", at: 2) == nil, "no news")
    }

    @Test func `an answer about another name, or to half of the question, does not concern the name`() {
        var bench = Bench()
        bench.note(.silence, "a", at: 0)
        #expect(bench.note(.answer, "b", at: 1) == nil && bench.note(.partialAnswer, "a", at: 1) == nil)
        #expect(bench.permit("a", at: 1) == .refusal)
    }

    @Test func `servers that are silent about three names in a row are taken for silent: others only try`() {
        var bench = Bench()
        #expect(bench.note(.silence, "a", at: 0) == .nameSilent && bench.note(.silence, "b", at: 1) == .nameSilent)
        #expect(bench.permit("c", at: 1) == .ask)
        #expect(bench.note(.silence, "c", at: 2) == .serversSilent)
        #expect(
            bench.permit("d", at: 2) == .attempt && bench.permit("d", at: 2) == .attempt, "nobody is refused for others"
        )
        #expect(bench.note(.silence, "d", at: 3) == nil && bench.permit("d", at: 3) == .refusal)
        #expect(bench.names(at: 3) == ["a", "b", "c", "d"])
    }

    @Test(arguments: [NameHealth.Outcome.answer, .partialAnswer])
    func `the first answer of such servers ends it for all names`(_ answer: NameHealth.Outcome) {
        var bench = Bench()
        for name in ["a", "b", "c"] { bench.note(.silence, name, at: 0) }
        #expect(bench.note(answer, "e", at: 1) == .serversAnswered)
        for name in ["a", "b", "c", "d"] { #expect(bench.permit(name, at: 1) == .ask) }
    }

    @Test(arguments: [NameHealth.Outcome.answer, .partialAnswer])
    func `an answer in between begins the row anew`(_ answer: NameHealth.Outcome) {
        var bench = Bench()
        for name in ["a", "b"] { bench.note(.silence, name, at: 0) }
        bench.note(answer, "e", at: 1)
        #expect(bench.note(.silence, "c", at: 2) == .nameSilent && bench.note(.silence, "d", at: 2) == .nameSilent)
        #expect(bench.permit("f", at: 2) == .ask)
    }

    @Test func `the same name again is no further one of the row`() {
        var bench = Bench()
        for second in [0, 5, 15] {
            _ = bench.permit("a", at: second)
            bench.note(.silence, "a", at: second)
        }
        #expect(bench.permit("b", at: 15) == .ask)
    }

    @Test func `a failure that costs no time says nothing of the servers`() {
        var bench = Bench()
        for name in ["a", "b"] { bench.note(.silence, name, at: 0) }
        bench.note(.quickFailure, "c", at: 1)
        #expect(bench.note(.silence, "d", at: 2) == .serversSilent)
    }

    @Test func `servers do not concern each other`() {
        var bench = Bench()
        for name in ["a", "b", "c"] { bench.note(.silence, name, at: 0, by: "s") }
        #expect(bench.permit("d", at: 0, of: "t") == .ask && bench.permit("a", at: 0, of: "t") == .ask)
        bench.note(.answer, "d", at: 0, by: "t")
        #expect(bench.permit("d", at: 0, of: "s") == .attempt)
    }

    @Test func `an entry says since when, and how long the pause lasts`() {
        var bench = Bench()
        bench.note(.silence, "a", at: 10)
        let entry = bench.health.entry(of: "a", now: .seconds(12), Self.terms)
        #expect(entry?.since == WallTime(secondsSinceEpoch: 10) && entry?.pauseLeft == .seconds(3))
        #expect(entry?.servers == "s" && bench.health.entry(of: "b", now: .seconds(12), Self.terms) == nil)
    }

    @Test func `names and servers are bounded`() {
        var bench = Bench()
        for number in 0..<NameHealth.namesMax + 100 { bench.note(.silence, "\(number)", at: 0) }
        #expect(bench.names(at: 0).count == NameHealth.namesMax)
        for number in 0..<NameHealth.serversMax * 2 { bench.note(.silence, "a", at: 0, by: "\(number)") }
        #expect(bench.names(at: 0).count <= NameHealth.namesMax + NameHealth.serversMax)
    }
}
