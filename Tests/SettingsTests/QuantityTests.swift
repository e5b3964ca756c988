import Settings
import Testing

@Suite("Sizes and durations")
struct QuantityTests {
    static let sizes: [(String, UInt64?)] = [
        ("0", 0), ("1", 1), ("64KiB", 65_536), ("64 KiB", 65_536), ("256MiB", 268_435_456), ("10GiB", 10_737_418_240),
        ("1TiB", 1 << 40), ("1kB", 1000), ("2MB", 2_000_000), ("3gb", 3_000_000_000), ("1tb", 1_000_000_000_000),
        ("7B", 7),
        ("256mib", 268_435_456), ("8388608TiB", 1 << 63), ("8388609TiB", nil), ("99999999999999999999", nil), ("", nil),
        ("MiB", nil), ("-1", nil), ("+1", nil), ("1.5GiB", nil), ("1G", nil), ("1  MiB", nil), (" 1", nil),
        ("0x10", nil),
        ("1_000", nil), ("１", nil),
    ]
    @Test(arguments: sizes) func `a size has a number and a unit`(_ text: String, _ expected: UInt64?) {
        #expect(parseSize(text) == expected)
    }

    static let durations: [(String, Duration?)] = [
        ("0", .zero), ("0s", .zero), ("500ms", .milliseconds(500)), ("30s", .seconds(30)), ("5m", .seconds(300)),
        ("1h", .seconds(3600)), ("2d", .seconds(172_800)), ("1 h", .seconds(3600)), ("30", nil), ("", nil), ("s", nil),
        ("-1s", nil), ("1.5s", nil), ("1w", nil), ("1M", nil), ("1h30m", nil), ("9223372036854775807d", nil),
        ("99999999999999d", nil),
    ]
    @Test(arguments: durations) func `a duration has a number and a unit`(_ text: String, _ expected: Duration?) {
        #expect(parseDuration(text) == expected)
    }

    @Test(arguments: ["0", "1", "1023", "1KiB", "1025", "256MiB", "1536MiB", "10GiB", "16TiB"])
    func `a size is shown as it is written`(_ text: String) throws {
        #expect(renderSize(try #require(parseSize(text))) == text)
    }

    @Test(arguments: ["0s", "1ms", "1500ms", "30s", "90s", "5m", "1h", "36h", "2d"])
    func `a duration is shown as it is written`(_ text: String) throws {
        #expect(renderDuration(try #require(parseDuration(text))) == text)
    }
}

@Suite("Nearest names")
struct NearestNameTests {
    static let rows: [(String, String?)] = [
        ("memroy", "memory"), ("memory", "memory"), ("Memory", "memory"), ("memor", "memory"), ("colapse", "collapse"),
        ("dsik", "disk"), ("zzz", nil), ("x", nil), ("", nil), ("memorandum", nil),
    ]
    @Test(arguments: rows) func `the most similar name is suggested, if one is similar`(
        _ name: String, _ expected: String?
    ) {
        #expect(nearestName(to: name, among: ["memory", "disk", "collapse", "a"]) == expected)
    }

    static let distances: [(String, String, Int)] = [
        ("", "", 0), ("abc", "", 3), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 1), ("abcd", "acbd", 1),
        ("a", "A", 0),
    ]
    @Test(arguments: distances) func `the distance counts edits`(_ a: String, _ b: String, _ distance: Int) {
        #expect(editDistance(a, b) == distance)
    }
}
