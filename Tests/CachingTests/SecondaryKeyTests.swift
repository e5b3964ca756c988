import Caching
import Message
import Testing

@Suite("RFC 9111 §4.1 Calculating Cache Keys with the Vary Header Field")
struct SecondaryKeyTests {
    static let rows: [(rule: String, vary: [String], first: [String], second: [String], matches: Bool)] = [
        ("no Vary: any request", [], ["Accept: a"], ["Accept: b"], true),
        ("an empty Vary: any request", ["Vary: , "], ["Accept: a"], ["Accept: b"], true),
        ("the same value", ["Vary: Accept"], ["Accept: a"], ["Accept: a"], true),
        ("another value", ["Vary: Accept"], ["Accept: a"], ["Accept: b"], false),
        ("a field not nominated", ["Vary: Accept"], ["Accept: a", "X: 1"], ["Accept: a", "X: 2"], true),
        ("absent both times", ["Vary: Accept"], [], [], true),
        ("absent then present", ["Vary: Accept"], [], ["Accept: a"], false),
        ("present then absent", ["Vary: Accept"], ["Accept: a"], [], false),
        ("absent is not empty", ["Vary: Accept"], ["Accept:"], [], false),
        ("all nominated must match", ["Vary: Accept, X-a"], ["Accept: a", "X-a: 1"], ["Accept: a", "X-a: 2"], false),
        ("in all lines of Vary", ["Vary: Accept", "Vary: X-a"], ["X-a: 1"], ["X-a: 2"], false),
        ("names in any case", ["vary: aCCept, x-A"], ["Accept: a", "X-a: 1"], ["ACCEPT: a", "x-A: 1"], true),
        ("unknown names told apart", ["Vary: X-a"], ["X-a: 1", "X-b: 2"], ["X-a: 1", "X-b: 3"], true),
        ("order of fields", ["Vary: Accept, X-a"], ["Accept: a", "X-a: 1"], ["X-a: 1", "Accept: a"], true),
        ("values differ in case", ["Vary: X-a"], ["X-a: a"], ["X-a: A"], false),
        ("white space within an unknown value", ["Vary: X-a"], ["X-a: a b"], ["X-a: a  b"], false),
        ("lines joined", ["Vary: X-a"], ["X-a: 1", "X-a: 2"], ["X-a: 1, 2"], true),
        ("lines in another order", ["Vary: X-a"], ["X-a: 1", "X-a: 2"], ["X-a: 2", "X-a: 1"], false),
        ("one line is not two", ["Vary: X-a"], ["X-a: 1"], ["X-a: 1", "X-a: 1"], false),
        ("white space in a list", ["Vary: Accept"], ["Accept: a,b"], ["Accept: a , b,"], true),
        ("order in a list", ["Vary: Accept"], ["Accept: a,b"], ["Accept: b,a"], false),
        ("a variant that does not vary suits all", [], ["X-a: 1"], ["X-a: 2"], true),
        ("* first", ["Vary: *, Accept"], [], [], false),
        ("* alone", ["Vary: *"], [], [], false),
        ("* among others", ["Vary: Accept, *"], [], [], false),
        ("* on a later line", ["Vary: Accept", "Vary: *"], [], [], false),
        ("what is no name", ["Vary: a b"], [], [], false),
        (
            "Accept-Encoding: order", ["Vary: Accept-Encoding"], ["Accept-Encoding: gzip, br"],
            ["Accept-Encoding: br,gzip"], true
        ),
        (
            "Accept-Encoding: case", ["Vary: Accept-Encoding"], ["Accept-Encoding: gzip"], ["Accept-Encoding: GZip"],
            true
        ),
        (
            "Accept-Encoding: q=1", ["Vary: Accept-Encoding"], ["Accept-Encoding: gzip;q=1.0, br ; q=1"],
            ["Accept-Encoding: br, gzip"], true
        ),
        (
            "Accept-Encoding: weights", ["Vary: Accept-Encoding"], ["Accept-Encoding: gzip;q=0.5, br"],
            ["Accept-Encoding: gzip, br"], false
        ),
        (
            "Accept-Encoding: equal weights", ["Vary: Accept-Encoding"], ["Accept-Encoding: gzip;q=0.5, br"],
            ["Accept-Encoding: br, gzip;q=0.500"], true
        ),
        (
            "Accept-Encoding: refused", ["Vary: Accept-Encoding"], ["Accept-Encoding: gzip"],
            ["Accept-Encoding: gzip;q=0"], false
        ),
        (
            "Accept-Encoding: x-gzip", ["Vary: Accept-Encoding"], ["Accept-Encoding: gzip"],
            ["Accept-Encoding: x-gzip"], true
        ),
        (
            "Accept-Encoding: lines", ["Vary: Accept-Encoding"], ["Accept-Encoding: gzip", "Accept-Encoding: br"],
            ["Accept-Encoding: gzip, br"], true
        ),
        (
            "Accept-Encoding: more", ["Vary: Accept-Encoding"], ["Accept-Encoding: gzip"],
            ["Accept-Encoding: gzip, br"], false
        ),
        ("Accept-Encoding: absent is not empty", ["Vary: Accept-Encoding"], [], ["Accept-Encoding:"], false),
        (
            "Accept-Language: case and q=1", ["Vary: Accept-Language"], ["Accept-Language: en-GB, de;q=0.5"],
            ["Accept-Language: EN-gb;q=1,de; q=0.5"], true
        ),
        (
            "Accept-Language: order by weight", ["Vary: Accept-Language"], ["Accept-Language: de;q=0.5, en"],
            ["Accept-Language: en, de;q=0.5"], true
        ),
        (
            "Accept-Language: order of equals is heeded", ["Vary: Accept-Language"], ["Accept-Language: de, en"],
            ["Accept-Language: en, de"], false
        ),
    ]

    @Test(arguments: rows) func `a variant matches requests that mean the same`(
        _ row: (rule: String, vary: [String], first: [String], second: [String], matches: Bool)
    ) {
        let key = SecondaryKey(vary: fields(row.vary), request: fields(row.first))
        #expect(key.matches(fields(row.second)) == row.matches, "\(row.rule)")
        if row.matches {
            #expect(key == SecondaryKey(vary: fields(row.vary), request: fields(row.second)), "\(row.rule)")
        }
    }

    @Test func `too many names count as star`() {
        let names = (0...Vary.namesMax).map { "X-\($0)" }
        #expect(Vary(fields("Vary: " + names.joined(separator: ","))) == .star)
        #expect(Vary(fields("Vary: " + names.dropLast().joined(separator: ","))) != .star)
        #expect(Vary(fields("Vary: Accept, accept", "Vary: ACCEPT")) == .names([VaryName("accept".utf8)]))
    }

    @Test func `a key without names is empty, one of star is not`() {
        #expect(SecondaryKey(.none, request: fields("Accept: a")).isEmpty)
        #expect(!SecondaryKey(.star, request: Fields()).isEmpty)
    }
}
