import Caching
import Message
import Testing

@Suite("RFC 9111 §4.2.1 Calculating Freshness Lifetime")
struct FreshnessLifetimeTests {
    static let rows: [(rule: String, lines: [String], lifetime: FreshnessLifetime)] = [
        (
            "s-maxage wins over all",
            ["Cache-Control: max-age=1, s-maxage=9", "Expires: \(date(5))", "Date: \(date(0))"],
            .explicit(seconds(9), by: .sMaxAge)
        ),
        (
            "max-age wins over Expires", ["Cache-Control: max-age=1", "Expires: \(date(5))", "Date: \(date(0))"],
            .explicit(seconds(1), by: .maxAge)
        ),
        (
            "§5.3 max-age wins over an Expires in the past", ["Cache-Control: max-age=1", "Expires: 0"],
            .explicit(seconds(1), by: .maxAge)
        ),
        (
            "Expires counts from Date", ["Expires: \(date(5))", "Date: \(date(-5))"],
            .explicit(seconds(10), by: .expires)
        ),
        (
            "Expires counts from arrival where there is no Date", ["Expires: \(date(5))"],
            .explicit(seconds(5), by: .expires)
        ),
        ("or none that is valid", ["Expires: \(date(5))", "Date: yesterday"], .explicit(seconds(5), by: .expires)),
        ("§5.3 Expires: 0 is in the past", ["Expires: 0", "Date: \(date(0))"], .explicit(.zero, by: .expires)),
        (
            "§5.3 an invalid Expires is in the past, not absent",
            ["Expires: soon", "Date: \(date(0))", "Last-Modified: \(date(-1000))"], .explicit(.zero, by: .expires)
        ),
        ("§5.3 an empty one as well", ["Expires:", "Last-Modified: \(date(-1000))"], .explicit(.zero, by: .expires)),
        (
            "Expires before Date is stale, not absent", ["Expires: \(date(-5))", "Date: \(date(0))"],
            .explicit(.zero, by: .expires)
        ),
        (
            "of several Expires the earliest", ["Expires: \(date(50))", "Expires: \(date(5))", "Date: \(date(0))"],
            .explicit(seconds(5), by: .expires)
        ),
        (
            "an invalid one among several", ["Expires: \(date(50))", "Expires: x", "Date: \(date(0))"],
            .explicit(.zero, by: .expires)
        ),
        (
            "a malformed max-age is stale, whatever Expires says",
            ["Cache-Control: max-age=x", "Expires: \(date(50))"],
            .explicit(.zero, by: .maxAge)
        ),
        (
            "Expires in another zone is in the past", ["Expires: Sun, 06 Nov 1994 09:49:37 +0000"],
            .explicit(.zero, by: .expires)
        ),
        ("Expires without its comma", ["Expires: Sun 06 Nov 1994 09:49:37 GMT"], .explicit(.zero, by: .expires)),
        ("Expires with spaces too many", ["Expires: Sun, 06  Nov 1994 09:49:37 GMT"], .explicit(.zero, by: .expires)),
        ("Expires with two digits of a year", ["Expires: Sun, 06 Nov 94 09:49:37 GMT"], .explicit(.zero, by: .expires)),
        ("§4.2 Expires in any case", ["Expires: sun, 06 nov 1994 08:49:47 gmt"], .explicit(seconds(10), by: .expires)),
        (
            "RFC 850: the century that is less than 50 years ahead", ["Expires: Sunday, 06-Nov-94 08:49:47 GMT"],
            .explicit(seconds(10), by: .expires)
        ),
        ("asctime", ["Expires: Sun Nov  6 08:49:47 1994"], .explicit(seconds(10), by: .expires)),
        (
            "max-age on two lines: the strictest", ["Cache-Control: max-age=9", "Cache-Control: max-age=7"],
            .explicit(seconds(7), by: .maxAge)
        ),
        ("quoted", ["Cache-Control: max-age=\"9\""], .explicit(seconds(9), by: .maxAge)),
        ("with a space", ["Cache-Control: max-age= 9"], .explicit(.zero, by: .maxAge)),
        (
            "§4.2.2 heuristic where there is nothing else", ["Last-Modified: \(date(-1000))", "Date: \(date(0))"],
            .heuristic(seconds(100))
        ),
        (
            "§4.2.2 no heuristic where it is explicit", ["Cache-Control: max-age=0", "Last-Modified: \(date(-1000))"],
            .explicit(.zero, by: .maxAge)
        ),
        ("nothing at all", ["Date: \(date(0))"], .unknown),
    ]

    @Test(arguments: rows) func `the first rule that applies wins`(
        _ row: (rule: String, lines: [String], lifetime: FreshnessLifetime)
    ) {
        #expect(stored(row.lines).lifetime == row.lifetime, "\(row.rule)")
    }

    @Test func `at the second its lifetime ends a response is stale`() {
        let response = stored("Cache-Control: max-age=10", "Date: \(date(0))")
        #expect(response.isFresh(noon + seconds(9)) && response.remainingLifetime(noon + seconds(9)) == seconds(1))
        #expect(!response.isFresh(noon + seconds(10)) && response.remainingLifetime(noon + seconds(10)) == .zero)
        #expect(response.remainingLifetime(noon + seconds(15)) == seconds(-5))
        #expect(!stored("Cache-Control: max-age=0").isFresh(noon))
    }
}

@Suite("RFC 9111 §4.2.2 Calculating Heuristic Freshness")
struct HeuristicFreshnessTests {
    func lifetime(
        _ status: UInt16 = 200, isPublic: Bool = false, sinceModified: Int64? = 1000, _ policy: CachePolicy = .init()
    ) -> Seconds? {
        heuristicLifetime(
            status: status, isPublic: isPublic, lastModified: sinceModified.map { noon + Seconds(-$0) }, date: noon,
            policy: policy)
    }

    @Test func `a tenth of the time since it changed, at most a day`() {
        #expect(lifetime() == seconds(100))
        #expect(lifetime(sinceModified: 9) == seconds(0))
        #expect(lifetime(sinceModified: 863_999) == seconds(86_399))
        #expect(lifetime(sinceModified: 900_000) == seconds(86_400))
        #expect(lifetime(sinceModified: .max / 2) == seconds(86_400), "no overflow")
    }

    @Test func `without Last-Modified there is no heuristic`() { #expect(lifetime(sinceModified: nil) == nil) }

    @Test func `a Last-Modified after Date gives a lifetime of zero`() {
        #expect(lifetime(sinceModified: -50) == .zero)
    }

    @Test func `the policy sets share and bound`() {
        var policy = CachePolicy()
        policy.heuristicPercent = 50
        policy.heuristicLifetimeMax = seconds(300)
        #expect(lifetime(sinceModified: 400, policy) == seconds(200))
        #expect(lifetime(sinceModified: 4000, policy) == seconds(300))
        policy.heuristicPercent = -3
        #expect(lifetime(sinceModified: 4000, policy) == .zero)
    }

    static let cacheable: [UInt16] = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]
    @Test(arguments: Array<UInt16>(100...599))
    func `RFC 9110 §15.1: some statuses are cacheable by heuristics`(_ status: UInt16) {
        #expect((lifetime(status) != nil) == Self.cacheable.contains(status))
        #expect(lifetime(status, isPublic: true) != nil, "§4.2.2: so is any that is marked public")
    }
}

@Suite("RFC 9111 §4.2.3 Calculating Age, §5.1 Age")
struct CurrentAgeTests {
    static let rows: [(rule: String, age: Int64, date: Int64, asked: Int64, came: Int64, result: Int64)] = [
        ("all at once", 0, 0, 0, 0, 0),
        ("apparent age", 0, -30, 0, 0, 30),
        ("a Date ahead of our clock is no age", 0, 30, 0, 0, 0),
        ("Age wins where it is larger", 60, -30, 0, 0, 60),
        ("apparent age wins where it is larger", 20, -30, 0, 0, 30),
        ("the delay of the response adds to Age", 60, 0, 0, 5, 65),
        ("a clock set back between request and response adds nothing", 60, 0, 9, 5, 60),
    ]

    @Test(arguments: rows) func `corrected initial age`(
        _ row: (rule: String, age: Int64, date: Int64, asked: Int64, came: Int64, result: Int64)
    ) {
        let age = correctedInitialAge(
            age: seconds(row.age), date: noon + seconds(row.date), requestTime: noon + seconds(row.asked),
            responseTime: noon + seconds(row.came))
        #expect(age == TimeSpan(seconds(row.result)), "\(row.rule)")
    }

    /// Fractions of our clock, in thousandths of a second after noon.
    static let fractions:
        [(rule: String, age: Int64, date: Int64?, asked: Int64, came: Int64, now: Int64, result: Int64)] = [
            ("a second that turns between request and response adds nothing", 7200, nil, 900, 1100, 1100, 7200),
            ("nor one that turns after the response", 7200, nil, 900, 950, 1100, 7200),
            ("all of it counts once it is a second", 7200, nil, 900, 1100, 1900, 7201),
            ("a Date of the second before is no age", 0, 0, 900, 1100, 1100, 0),
            ("a Date that is later by less than Age says, and a second", 7200, -7200, 700, 800, 800, 7200),
            ("a Date that says a second more than Age", 7200, -7201, 0, 100, 100, 7201),
            ("a Date that says a second more than the delay", 0, -1, 0, 100, 100, 1),
        ]

    @Test(arguments: fractions) func `an age is rounded down when it is sent, and not earlier`(
        _ row: (rule: String, age: Int64, date: Int64?, asked: Int64, came: Int64, now: Int64, result: Int64)
    ) {
        let dates = row.date.map { ["Date: \(date($0))"] } ?? []
        let response = CachedResponse(
            status: 200, fields: fields(["Age: \(row.age)", "Cache-Control: max-age=9999"] + dates),
            requestTime: noon + milliseconds(row.asked), responseTime: noon + milliseconds(row.came),
            policy: CachePolicy())
        #expect(response.currentAge(noon + milliseconds(row.now)) == seconds(row.result), "\(row.rule)")
    }

    @Test func `a response is fresh exactly as long as its lifetime exceeds its age`() {
        let response = CachedResponse(
            status: 200, fields: fields("Cache-Control: max-age=2"), requestTime: noon + milliseconds(250),
            responseTime: noon + milliseconds(750), policy: CachePolicy())
        // Half a second old on arrival.
        #expect(response.isFresh(noon + milliseconds(2_249)))
        #expect(!response.isFresh(noon + milliseconds(2_250)))
        #expect(response.terms.expiry == noon + milliseconds(2_250))
        var handling = CacheHandling()
        handling.ttl = seconds(2)
        let handled = CachedResponse(
            status: 200, fields: fields("Cache-Control: max-age=9"), requestTime: noon + milliseconds(250),
            responseTime: noon + milliseconds(750), policy: CachePolicy(), handling: handling)
        // A rule's lifetime counts from the arrival.
        #expect(handled.isFresh(noon + milliseconds(2_749)))
        #expect(!handled.isFresh(noon + milliseconds(2_750)))
    }

    /// What is on the disk is whole seconds.
    @Test(arguments: stride(from: 0, to: 2000, by: 125).map { Int64($0) })
    func `over a restart an age never decreases, and is ahead by less than a second`(_ came: Int64) throws {
        for delay in stride(from: 0, to: 2000, by: 125) as StrideTo<Int64> {
            let received = fields("Cache-Control: max-age=60")
            let response = CachedResponse(
                status: 200, fields: received, requestTime: noon + milliseconds(came - delay),
                responseTime: noon + milliseconds(came), policy: CachePolicy())
            var writer = StoredFormWriter()
            response.write(to: &writer)
            var reader = StoredFormReader(writer.finish())
            let read = try CachedResponse(from: &reader, fields: received)
            for after in stride(from: 0, to: 3000, by: 125) as StrideTo<Int64> {
                let now = noon + milliseconds(came + after)
                let (old, new) = (response.currentAge(now), read.currentAge(now))
                #expect(new >= old && new - old <= seconds(1))
                // What it says later, it would have said within a second.
                #expect(new <= response.currentAge(now + seconds(1)))
            }
        }
    }

    @Test func `what arrived in the future is stale: the clock was set back, by nobody knows how much`() {
        let response = stored("Cache-Control: max-age=3600")
        #expect(!response.isFresh(noon + seconds(-6)) && response.isFresh(noon + seconds(-5)))
        #expect(reuse(of: response, for: get(), now: noon + seconds(-6)) == .validate(.stale))
        #expect(!mayServeStaleOnError(response, for: get(), now: noon + seconds(-7200)))
    }

    @Test func `the current age grows with the time in the cache, and never shrinks`() {
        let response = stored("Date: \(date(-3))", "Age: 10", "Cache-Control: max-age=20")
        #expect(response.correctedInitialAge == TimeSpan(seconds(10)))
        #expect(response.currentAge(noon + seconds(7)) == seconds(17))
        // Two threads read the clock a moment apart.
        #expect(response.currentAge(noon + seconds(-5)) == seconds(10))
        #expect(response.isFresh(noon + seconds(9)) && !response.isFresh(noon + seconds(10)))
    }

    @Test(arguments: [
        ("10", 10), ("0", 0), ("007", 7), ("10, 20", 10), ("10,x", 10), ("2147483648", 2_147_483_648),
        ("99999999999999999999999", 2_147_483_648), ("-1", 0), ("+1", 0), ("1.5", 0), ("x", 0), ("", 0), (", 5", 0),
        ("\"10\"", 0), ("10 20", 0), ("0x10", 0),
    ])
    func `§5.1: the first member counts, if it is a number`(_ value: String, _ expected: Int64) {
        #expect(ageField(fields("Age: " + value)) == seconds(expected))
    }

    @Test func `§4.2: an age at or beyond 2^31 outlives every lifetime`() {
        for age in ["2147483647", "2147483648", "99999999999999999999"] {
            #expect(!stored("Age: \(age)", "Cache-Control: max-age=2147483647").isFresh(noon))
        }
        #expect(stored("Age: 2147483646", "Cache-Control: max-age=2147483647").isFresh(noon))
    }

    @Test func `§5.1: the first of several lines counts`() {
        #expect(ageField(fields("Age: 5", "Age: 100")) == seconds(5))
        #expect(ageField(fields("X: 5")) == .zero)
    }

    @Test func `ages saturate`() {
        let far = WallTime(secondsSinceEpoch: .max)
        let old = WallTime(secondsSinceEpoch: -.max)
        let longest = TimeSpan(seconds(.max))
        #expect(currentAge(correctedInitialAge: longest, responseTime: old, now: far) == longest.seconds)
        #expect(correctedInitialAge(age: seconds(.max), date: old, requestTime: old, responseTime: far) == longest)
    }
}
