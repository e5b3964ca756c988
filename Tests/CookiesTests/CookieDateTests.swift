import Cookies
import Message
import Testing

@Suite("RFC 6265 §5.1.1: dates of cookies")
struct CookieDateTests {
    private static let moment = WallTime(secondsSinceEpoch: 784_111_777)

    static let sameMoment = [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 06-Nov-1994 08:49:37 GMT", "6 nov 1994 8:49:37", "08:49:37 06 Nov 94", "1994 8:49:37 06 november",
        // Anything that separates does, and what follows a number or a month is of no account.
        "Sun,06/Nov/1994\t08:49:37", "06th Novembre 1994AD 08:49:37.250+0100", "06 94 Nov 08:49:37",
        // The first token of each kind counts.
        "06 Nov 1994 08:49:37 07 Dec 1995 09:50:38",
        // After the time, another one can be the day.
        "08:49:37 06:00:00 Nov 1994",
    ]
    @Test(arguments: sameMoment) func `whatever the order and the separators, it is one moment`(_ text: String) {
        #expect(parseCookieDate(Array(text.utf8)[...]) == Self.moment)
    }

    static let years: [(text: String, year: Int)] = [
        ("1 Jan 00 00:00:00", 2000), ("1 Jan 69 00:00:00", 2069), ("1 Jan 70 00:00:00", 1970),
        ("1 Jan 99 00:00:00", 1999), ("1 Jan 100 00:00:00", 0), ("1 Jan 1601 00:00:00", 1601),
        ("1 Jan 9999 00:00:00", 9999),
    ]
    @Test(arguments: years) func `years of two digits are those from 1970 to 2069`(_ row: (text: String, year: Int)) {
        let expected = row.year == 0 ? nil : wallTime(year: row.year, month: 1, day: 1, second: 0)
        #expect(parseCookieDate(Array(row.text.utf8)[...]) == expected)
    }

    static let wrong = [
        "", "never", "06 Nov 1994", "Nov 1994 08:49:37", "06 1994 08:49:37", "06 Nov 08:49:37", "00 Nov 1994 08:49:37",
        "32 Nov 1994 08:49:37", "31 Nov 1994 08:49:37", "29 Feb 1995 08:49:37", "06 Nov 1600 08:49:37",
        "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:00", "06 Nov 1994 08:49:60", "06 Nov 1994 08:49",
        "06 Nov 1994 084:49:37",
        "006 Nov 1994 08:49:37", "06 Nov 19940 08:49:37", "06 No 1994 08:49:37", "06 Nov 1994 08::37",
    ]
    @Test(arguments: wrong) func `what lacks a part, or is no moment, is no date`(_ text: String) {
        #expect(parseCookieDate(Array(text.utf8)[...]) == nil)
    }
}
