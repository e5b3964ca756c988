import Caching
import Message
import Testing

@Suite("If-Match where a rule lets a stored response answer it (RFC 9110 §13.1.1)")
struct IfMatchTests {
    private static let fresh = Reuse.serve(age: seconds(1), ttl: seconds(9))

    static let rows: [(ifMatch: String, stored: String?, isServed: Bool)] = [
        ("\"a\"", "\"a\"", true), ("\"b\", \"a\"", "\"a\"", true), ("\"b\"", "\"a\"", false),
        ("W/\"a\"", "\"a\"", false),
        ("\"a\"", "W/\"a\"", false), ("*", "\"a\"", false), ("a", "\"a\"", false), ("\"a\"", nil, false),
        ("", "\"a\"", false),
    ]
    @Test(arguments: rows) func `the very strong tag, and nothing else`(
        _ row: (ifMatch: String, stored: String?, isServed: Bool)
    ) {
        let tag = row.stored.flatMap { EntityTag(parsing: Array($0.utf8)) }
        let decision = reuse(Self.fresh, ofMatch: fields(["If-Match: \(row.ifMatch)"]), stored: tag, mayForward: true)
        #expect(decision == (row.isServed ? Self.fresh : .fetch(.ifMatch)))
    }

    static let others: [(decision: Reuse, then: Reuse)] = [
        (.serveStale(age: seconds(9), ttl: seconds(-1)), .fetch(.ifMatch)),
        (.serveStaleAndRevalidate(age: seconds(9), ttl: seconds(-1)), .fetch(.ifMatch)),
        (.validate(.stale), .fetch(.ifMatch)), (.fetch(.authorization), .fetch(.authorization)), (.refuse, .refuse),
    ]
    @Test(arguments: others) func `what is not fresh is for the origin`(_ row: (decision: Reuse, then: Reuse)) {
        let tag = EntityTag(parsing: Array("\"a\"".utf8))
        #expect(reuse(row.decision, ofMatch: fields(["If-Match: \"a\""]), stored: tag, mayForward: true) == row.then)
    }

    @Test func `where the origin must not be asked, anything else is refused`() {
        for decision in [Self.fresh, .serveStale(age: seconds(9), ttl: seconds(-1)), .refuse] {
            let match = fields(["If-Match: \"b\""])
            #expect(reuse(decision, ofMatch: match, stored: nil, mayForward: false) == .refuse)
        }
    }

    @Test func `without the field nothing changes`() {
        #expect(reuse(.validate(.stale), ofMatch: fields([]), stored: nil, mayForward: true) == .validate(.stale))
    }
}
