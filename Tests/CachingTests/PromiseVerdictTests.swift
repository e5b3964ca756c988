import Testing

@testable import Caching

@Suite("What an index says of a stored body")
struct PromiseVerdictTests {
    private static func digest(_ digits: String, _ algorithm: DigestRule.Algorithm = .sha256) -> ExpectedDigest {
        ExpectedDigest(algorithm, Array(digits.utf8))
    }

    static let rows: [(rule: String, found: ExpectedDigest?, promised: Set<ExpectedDigest>, verdict: PromiseVerdict)] =
        [
            ("no index speaks of it", digest("aa"), [], .kept),
            ("no index speaks of it, and nobody has computed it", nil, [], .kept),
            ("the promised one", digest("aa"), [digest("aa")], .kept),
            ("one of those that may be meant", digest("aa"), [digest("bb"), digest("aa")], .kept),
            ("another one", digest("aa"), [digest("bb")], .broken),
            ("nobody has computed it", nil, [digest("aa")], .unknown),
            ("computed by another algorithm", digest("aa", .sha512), [digest("aa")], .unknown),
        ]
    @Test(arguments: rows) func `it is kept, broken, or not known`(
        _ row: (rule: String, found: ExpectedDigest?, promised: Set<ExpectedDigest>, verdict: PromiseVerdict)
    ) {
        #expect(PromiseVerdict(found: row.found, promised: row.promised) == row.verdict, "\(row.rule)")
    }
}
