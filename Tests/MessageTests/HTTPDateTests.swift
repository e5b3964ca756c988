import Message
import Testing

@Suite("RFC 9110 §5.6.7 Date/Time Formats")
struct HTTPDateTests {
    static let now = WallTime(secondsSinceEpoch: 1_700_000_000)  // November 2023

    static let valid: [(String, Int64)] = [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777),
        ("Wed Nov 16 08:49:37 1994", 784_975_777),
        ("sun, 06 nov 1994 08:49:37 gmt", 784_111_777),  // RFC 9111 §4.2: in any case
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
        ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
        ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),  // a leap second
        ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ("Monday, 01-Jan-73 00:00:00 GMT", 3_250_454_400),  // 2073: less than 50 years ahead
        ("Monday, 01-Jan-74 00:00:00 GMT", 126_230_400),  // 2074 would be more
    ]
    @Test(arguments: valid) func `is read`(_ text: String, _ seconds: Int64) {
        #expect(parseHTTPDate(text.utf8, now: Self.now) == WallTime(secondsSinceEpoch: seconds))
    }

    @Test func `a two-digit year exactly fifty years ahead is in the future`() {
        let text = "Monday, 14-Nov-73 22:13:"
        #expect(parseHTTPDate((text + "20 GMT").utf8, now: Self.now)?.secondsSinceEpoch == 3_277_923_200)
        #expect(parseHTTPDate((text + "21 GMT").utf8, now: Self.now)?.secondsSinceEpoch == 122_163_201)
    }

    static let invalid = [
        "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
        "Thu, 29 Feb 2023 12:00:00 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Foo, 06 Nov 1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994  08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
        " Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994", "Sun Nov 06 08:49:37 1994 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
    ]
    @Test(arguments: invalid) func `is refused`(_ text: String) {
        #expect(parseHTTPDate(text.utf8, now: Self.now) == nil)
    }

    @Test(arguments: 0..<20) func `a written date is read back`(_ seed: Int) {
        for step in 0..<200 {
            let time = WallTime(secondsSinceEpoch: Int64(seed * 200 + step) * 61_234_567 - 62_167_219_200)
            var text: [UInt8] = []
            appendHTTPDate(time, to: &text)
            #expect(text.count == 29)
            #expect(parseHTTPDate(text, now: Self.now) == time)
        }
    }

    @Test func `a day name goes with its date, and times out of bounds are bounded`() {
        var text: [UInt8] = []
        appendHTTPDate(WallTime(secondsSinceEpoch: 784_111_777), to: &text)
        appendHTTPDate(WallTime(secondsSinceEpoch: .max), to: &text)
        appendHTTPDate(WallTime(secondsSinceEpoch: .min), to: &text)
        let expected =
            "Sun, 06 Nov 1994 08:49:37 GMT" + "Fri, 31 Dec 9999 23:59:59 GMT" + "Sat, 01 Jan 0000 00:00:00 GMT"
        #expect(String(decoding: text, as: UTF8.self) == expected)
    }
}
