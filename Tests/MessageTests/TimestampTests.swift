import Message
import Testing

@Suite("Instants of ISO 8601 (RFC 3339 §5.6)")
struct TimestampTests {
    static let instants: [(text: String, seconds: Int64)] = [
        ("1970-01-01T00:00:00Z", 0), ("2026-11-23T02:45:00Z", 1_795_401_900), ("2026-11-23t02:45:00z", 1_795_401_900),
        ("2026-11-23 02:45:00Z", 1_795_401_900), ("2026-11-23T02:45:00.123456Z", 1_795_401_900),
        ("2026-11-23T02:45Z", 1_795_401_900), ("2026-11-23T04:45:00+02:00", 1_795_401_900),
        ("2026-11-22T21:15:00-0530", 1_795_401_900), ("2026-11-23", 1_795_392_000),
        ("20261123T024500Z", 1_795_401_900), ("2024-02-29T00:00:00Z", 1_709_164_800),
        ("2016-12-31T23:59:60Z", 1_483_228_800),
    ]
    @Test(arguments: instants) func `an instant is read`(_ row: (text: String, seconds: Int64)) {
        #expect(parseTimestamp(row.text.utf8)?.secondsSinceEpoch == row.seconds)
    }

    static let others = [
        "", "2026", "2026-11", "20261123", "2026-13-01", "2026-02-30", "2023-02-29", "2026-11-23T",
        "2026-11-23T02:45:00",
        "2026-11-23T24:00:00Z", "2026-11-23T02:60:00Z", "2026-11-23T02:45:61Z", "2026-11-23T02:45:00.Z",
        "2026-11-23T02:45:00Zx", "2026-11-23T02:45:00+2", "2026-00-01", "+026-11-23", "2026-11-23T02:45:00+24:00",
        "20261123T0245Z", "Mon, 23 Nov 2026 02:45:00 GMT",
    ]
    @Test(arguments: others) func `anything else is none`(_ text: String) {
        #expect(parseTimestamp(text.utf8) == nil)
    }
}
