/// One requirement of an RFC that concerns a cache or a proxy, in our words, and what answers for it.
struct Requirement: Sendable {
    enum Level: String, Sendable {
        case must = "MUST"
        case mustNot = "MUST NOT"
        case should = "SHOULD"
        case shouldNot = "SHOULD NOT"
        case may = "MAY"
    }

    enum Answer: Sendable {
        /// `"StorabilityTests: §5.2.2.5 no-store"`: a test file and words that stand in it, the name of a test or of a row.
        case tests([String])
        /// Why there is no test: it does not concern us, or we do otherwise, and why.
        case decision(String)
    }

    let section: String
    let level: Level
    let text: String
    let answer: Answer

    init(_ section: String, _ level: Level, _ text: String, _ tests: String...) {
        (self.section, self.level, self.text, answer) = (section, level, text, .tests(tests))
    }

    init(_ section: String, _ level: Level, _ text: String, decision: String) {
        (self.section, self.level, self.text, answer) = (section, level, text, .decision(decision))
    }
}

/// The tables, each of one RFC; the sections in their order.
enum Requirements {
    static let all: [(rfc: Int, rows: [Requirement])] = [
        (9111, storing + constructing + freshness + validation + fieldsOfCaching),
        (9110, forwarding + representations + methods + negotiation + conditions + ranges + interim + statuses),
        (9112, messages),
        (5861, staleness), (8246, immutability), (9213, targeting),
    ]
}
