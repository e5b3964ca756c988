import Foundation
import Rules
import Testing

/// Files of the time zone database, made byte by byte (RFC 8536 §3).
private struct ZoneFile {
    var version: UInt8 = 2
    /// When another of `types` begins.
    var changes: [(at: Int64, type: UInt8)] = []
    /// Offsets in seconds.
    var types: [Int32] = [0]
    var footer: String? = ""
    var leapSeconds = 0

    private func big(_ value: Int64, _ size: Int) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * Int64($0))) }
    }

    private func block(_ timeSize: Int, _ changes: [(at: Int64, type: UInt8)]) -> [UInt8] {
        var bytes = Array("TZif".utf8) + [version == 1 ? 0 : version + 0x30] + [UInt8](repeating: 0, count: 15)
        for count in [0, 0, leapSeconds, changes.count, types.count, 4] { bytes += big(Int64(count), 4) }
        bytes += changes.flatMap { big($0.at, timeSize) } + changes.map(\.type)
        bytes += types.flatMap { big(Int64($0), 4) + [0, 0] } + Array("LMT\0".utf8)
        return bytes + [UInt8](repeating: 0, count: leapSeconds * (timeSize + 4))
    }

    var bytes: [UInt8] {
        if version == 1 { return block(4, changes) }
        return block(4, []) + block(8, changes) + Array("\n\(footer ?? "")\n".utf8)
    }
}

private func time(_ text: String) -> Int64 {
    let formatter = ISO8601DateFormatter()
    guard let date = formatter.date(from: text) else { preconditionFailure("\(text) is no time") }
    return Int64(date.timeIntervalSince1970)
}

@Suite("RFC 8536: time zones")
struct TimeZoneTests {
    private static func zone(_ footer: String) throws -> TimeZoneData {
        try TimeZoneData(ZoneFile(footer: footer).bytes)
    }

    static let rules: [(zone: String, at: String, hours: Double)] = [
        // Berlin: 02:00 becomes 03:00 on the last Sunday of March, and 03:00 becomes 02:00 on that of October.
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T00:59:59Z", 1),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-03-29T01:00:00Z", 2),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T00:59:59Z", 2),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2026-10-25T01:00:00Z", 1),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2500-07-01T00:00:00Z", 2),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2500-12-31T23:59:59Z", 1),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "1969-07-01T00:00:00Z", 2),
        // New York.
        ("EST5EDT,M3.2.0,M11.1.0", "2026-03-08T06:59:59Z", -5), ("EST5EDT,M3.2.0,M11.1.0", "2026-03-08T07:00:00Z", -4),
        ("EST5EDT,M3.2.0,M11.1.0", "2026-11-01T05:59:59Z", -4), ("EST5EDT,M3.2.0,M11.1.0", "2026-11-01T06:00:00Z", -5),
        // Sydney: summer is around the new year.
        ("AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-01-01T00:00:00Z", 11),
        ("AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-04-04T15:59:59Z", 11),
        ("AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-04-04T16:00:00Z", 10),
        ("AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-10-03T15:59:59Z", 10),
        ("AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-10-03T16:00:00Z", 11),
        ("AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-12-31T20:00:00Z", 11),
        // Dublin: winter is the exception, and earlier than standard time.
        ("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-01T00:00:00Z", 1),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-12-01T00:00:00Z", 0),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-03-29T01:00:00Z", 1),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-03-29T00:59:59Z", 0),
        // Nuuk: negative times are of the day before. Summer time for the whole year.
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59Z", -2),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T01:00:00Z", -1),
        ("XXX3EDT4,0/0,J365/23", "2026-01-01T03:00:00Z", -4), ("XXX3EDT4,0/0,J365/23", "2026-01-01T02:59:59Z", -4),
        ("XXX3EDT4,0/0,J365/23", "2024-12-31T23:00:00Z", -4),
        ("<+0530>-5:30", "2026-01-01T00:00:00Z", 5.5), ("UTC0", "2026-01-01T00:00:00Z", 0),
        // A leap year: J60 is 1 March, 60 is 29 February and then 1 March.
        ("AAA0BBB,J60/0,J61/0", "2024-03-01T00:00:00Z", 1), ("AAA0BBB,J60/0,J61/0", "2024-02-29T12:00:00Z", 0),
        ("AAA0BBB,59/0,60/0", "2024-02-29T12:00:00Z", 1), ("AAA0BBB,59/0,60/0", "2023-03-01T12:00:00Z", 1),
    ]
    @Test(arguments: rules) func `§3.3: behind the last transition the TZ string holds`(
        _ row: (zone: String, at: String, hours: Double)
    ) throws {
        #expect(try Self.zone(row.zone).offset(at: time(row.at)) == Int64(row.hours * 3600), "\(row)")
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt8]) func `§3.2: transitions, before and behind them`(_ version: UInt8) throws
    {
        let file = ZoneFile(version: version, changes: [(100, 1), (200, 0), (300, 2)], types: [10, 20, -3600])
        let zone = try TimeZoneData(file.bytes)
        let expected: [(Int64, Int64)] = [
            (.min, 10), (99, 10), (100, 20), (199, 20), (200, 10), (299, 10), (300, -3600), (.max, -3600),
        ]
        for (at, offset) in expected { #expect(zone.offset(at: at) == offset, "\(at)") }
    }

    @Test func `the TZ string begins with the last transition`() throws {
        let zone = try TimeZoneData(ZoneFile(changes: [(1_800_000_000, 1)], types: [0, 7200], footer: "EST5").bytes)
        #expect(zone.offset(at: 1_799_999_999) == 0 && zone.offset(at: 1_800_000_000) == -5 * 3600)
    }

    static let broken: [(what: String, file: [UInt8], fault: TimeZoneData.Fault)] = [
        ("nothing", [], .cutOff),
        ("text", Array("no zone file at all, but long enough for a whole header".utf8), .noZoneFile),
        ("version 5", ZoneFile(version: 5).bytes, .version), ("no types", ZoneFile(types: []).bytes, .counts),
        ("a type that is not there", ZoneFile(changes: [(1, 7)]).bytes, .counts),
        ("a day and more", ZoneFile(types: [100_000]).bytes, .offset),
        ("no offset", ZoneFile(types: [.min]).bytes, .offset),
        ("disorder", ZoneFile(changes: [(2, 0), (1, 0)]).bytes, .order),
        ("leap seconds", ZoneFile(leapSeconds: 1).bytes, .leapSeconds),
    ]
    @Test(arguments: broken) func `what is no zone file is refused`(
        _ row: (what: String, file: [UInt8], fault: TimeZoneData.Fault)
    ) {
        #expect(throws: row.fault, "\(row.what)") { try TimeZoneData(row.file) }
    }

    @Test(arguments: [
        "CET", "CET-1CEST", "CE-1", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,M3.5.0,M10.5.0/168", "CET-1CEST,J0,J1", "CET-1CEST,366,1", "<CET-1",
        "CET-25",
        "CET-1:60", "CET-1 ", "CET-1CEST,M3.5.0,M10.5.0,",
    ]) func `what is no TZ string is refused`(_ text: String) {
        #expect(throws: TimeZoneData.Fault.footer) { try Self.zone(text) }
    }

    @Test func `a file that is cut off anywhere is refused, and damage never ends the process`() throws {
        let bytes = ZoneFile(changes: [(100, 1), (200, 0)], types: [0, 3600], footer: "CET-1CEST,M3.5.0,M10.5.0/3")
            .bytes
        for length in 0..<bytes.count {
            #expect(throws: TimeZoneData.Fault.self) { try TimeZoneData(Array(bytes[..<length])) }
        }
        var numbers = SystemRandomNumberGenerator()
        for place in bytes.indices {
            var damaged = bytes
            damaged[place] = UInt8.random(in: 0...255, using: &numbers)
            guard let zone = try? TimeZoneData(damaged) else { continue }
            for at: Int64 in [.min, -1, 0, 150, 2_000_000_000, .max] { #expect(abs(zone.offset(at: at)) <= 26 * 3600) }
        }
    }

    @Test(arguments: ["Europe/Berlin", "America/New_York", "Australia/Sydney", "Asia/Kolkata", "Europe/Dublin"])
    func `the zones of this machine are read as others read them`(_ name: String) throws {
        let path = "/usr/share/zoneinfo/\(name)"
        guard let file = FileManager.default.contents(atPath: path), let known = TimeZone(identifier: name) else {
            return
        }
        let zone = try TimeZoneData(Array(file))
        for at in stride(from: time("1990-01-01T00:00:00Z"), to: time("2037-01-01T00:00:00Z"), by: 86_400 * 3 + 3571) {
            let expected = known.secondsFromGMT(for: Date(timeIntervalSince1970: Double(at)))
            #expect(zone.offset(at: at) == Int64(expected), "\(at)")
        }
    }

    // MARK: the condition

    @Test func `a window is in local time of its zone, on both sides of a change`() throws {
        var conditions = RuleConditions()
        conditions.details.times = [try #require(TimeWindow("mon-fri 08:00-18:00"))]
        conditions.details.zone = NamedZone("Europe/Berlin", try Self.zone("CET-1CEST,M3.5.0,M10.5.0/3"))
        let rows: [(at: String, holds: Bool)] = [
            ("2026-03-27T06:59:59Z", false), ("2026-03-27T07:00:00Z", true), ("2026-03-27T16:59:59Z", true),
            ("2026-03-27T17:00:00Z", false), ("2026-03-30T05:59:59Z", false), ("2026-03-30T06:00:00Z", true),
            ("2026-10-23T06:00:00Z", true), ("2026-10-26T06:00:00Z", false), ("2026-10-26T07:00:00Z", true),
            ("2026-03-28T09:00:00Z", false),
        ]
        for row in rows {
            var asked = request("a.example")
            asked.details = RequestDetails()
            // The zone of this machine does not matter.
            asked.details?.time = RuleTime(seconds: time(row.at), localOffset: 12_345)
            #expect(conditions.holdForRequest(asked, paths: .everySpelling) == row.holds, "\(row.at)")
        }
    }

    @Test func `a zone whose file has not been read keeps an allow rule from holding, and no deny rule`() throws {
        var conditions = RuleConditions()
        conditions.details.times = [try #require(TimeWindow("00:00-24:00"))]
        conditions.details.zone = NamedZone("Europe/Berlin")
        var asked = request("a.example")
        asked.details = RequestDetails()
        asked.details?.time = RuleTime(seconds: 0, localOffset: 0)
        #expect(
            !conditions.holdForRequest(asked, paths: .everySpelling)
                && conditions.holdForRequest(asked, paths: .anySpelling))
    }

    @Test func `windows in UTC stay in UTC`() throws {
        var conditions = RuleConditions()
        conditions.details.times = [try #require(TimeWindow("08:00-18:00 utc"))]
        conditions.details.zone = NamedZone("Asia/Tokyo", try Self.zone("JST-9"))
        var asked = request("a.example")
        asked.details = RequestDetails()
        asked.details?.time = RuleTime(seconds: time("2026-01-01T08:00:00Z"), localOffset: 0)
        #expect(conditions.holdForRequest(asked, paths: .everySpelling))
    }
}
