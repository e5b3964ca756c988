import Message
import Rules
import Testing

/// What is certain counts for an allow rule, what is possible for a deny rule.
@Suite("Conditions on the details of a request")
struct DetailConditionsTests {
    typealias Row = (conditions: DetailConditions, request: RuleRequest, allows: Bool, denies: Bool)

    static func having(_ set: (inout DetailConditions) -> Void) -> DetailConditions {
        var conditions = DetailConditions()
        set(&conditions)
        return conditions
    }

    static func with(
        _ path: String = "/", method: Method = .get, _ set: (inout RequestDetails) -> Void = { _ in }
    ) -> RuleRequest {
        var made = request(port: method == .connect ? 443 : 80, method: method, path: path)
        var details = RequestDetails()
        details.bodyLength = 0
        set(&details)
        made.details = details
        return made
    }

    /// A request whose details nobody has read.
    static func unread(_ path: String = "/") -> RuleRequest { request(path: path) }

    static func bytes(_ texts: String...) -> [ArraySlice<UInt8>] { texts.map { ArraySlice($0.utf8) } }

    static let token = having { $0.queries = ["token", "a b"] }
    static let curl = having { $0.userAgents = ["curl/", "*bot*1.?"].compactMap { TextPattern($0) } }
    static let socket = having { $0.upgrades = ["websocket"] }
    static let anyUpgrade = having { $0.upgrades = ["*"] }
    static let json = having { $0.contentTypes = ["application/json"].compactMap { MediaTypePattern($0) } }
    static let small = having { $0.bodyLength = 0...100 }
    static let large = having { $0.bodyLength = 101...UInt64.max }
    static let own = having { $0.credentials = [.client] }
    static let without = having { $0.credentials = [.none] }

    static let rows: [Row] = [
        (having { _ in }, unread(), true, true),
        // Query names: decoded once for certain, in every way an origin might for a denial.
        (token, with("/?token=1"), true, true), (token, with("/x?a=1&token"), true, true),
        (token, with("/"), false, false), (token, with("/?"), false, false), (token, with("/?x=token"), false, false),
        (token, with("/token?x=1"), false, false), (token, with("/?TOKEN=1"), false, true),
        (token, with("/?%74oken=1"), false, true), (token, with("/?%2574oken=1"), false, true),
        (token, with("/?a;token=1"), false, true), (token, with("/?token;x=1"), false, true),
        (token, with("/?token[]=1"), false, true), (token, with("/?token%5B0%5D=1"), false, true),
        (token, with("/?token%00x=1"), false, true), (token, with("/?a+b=1"), false, true),
        (token, with("/?a%20b=1"), false, true), (token, with("/?tokens=1"), false, false),
        (token, unread("/?token=1"), true, true), (token, with("/?token=1", method: .connect), false, false),
        // Fields.
        (curl, with { $0.userAgents = bytes("curl/8.1") }, true, true),
        (curl, with { $0.userAgents = bytes("my CURL/8") }, true, true),
        (curl, with { $0.userAgents = bytes("robot 1.?") }, true, true),
        (curl, with { $0.userAgents = bytes("robot 1.0") }, false, false),
        (curl, with { $0.userAgents = bytes("wget") }, false, false), (curl, with(), false, false),
        (curl, with { $0.userAgents = bytes("curl/8", "wget") }, false, true), (curl, unread(), false, true),
        (curl, with(method: .connect) { $0.userAgents = bytes("curl/8.1") }, true, true),
        (json, with { $0.contentTypes = bytes("Application/JSON; charset=utf-8") }, true, true),
        (json, with { $0.contentTypes = bytes("text/plain") }, false, false), (json, with(), false, false),
        (json, with { $0.contentTypes = bytes("application/json", "text/plain") }, false, true),
        (json, with(method: .connect) { $0.contentTypes = bytes("application/json") }, false, false),
        (
            socket,
            with {
                $0.upgrades = bytes("WebSocket")
                $0.connectionUpgrades = true
            }, true, true
        ),
        (socket, with { $0.upgrades = bytes("websocket") }, false, true), (socket, with(), false, false),
        (
            socket,
            with {
                $0.upgrades = bytes("h2c", "websocket")
                $0.connectionUpgrades = true
            }, false, true
        ),
        (anyUpgrade, with { $0.upgrades = bytes("h2c") }, false, true), (anyUpgrade, with(), false, false),
        // The declared length.
        (small, with { $0.bodyLength = 100 }, true, true), (small, with { $0.bodyLength = 101 }, false, false),
        (small, with { $0.bodyLength = nil }, false, true), (small, with(), true, true),
        (large, with { $0.bodyLength = 101 }, true, true), (large, with { $0.bodyLength = 100 }, false, false),
        (large, with { $0.bodyLength = nil }, false, true), (large, with(method: .connect), false, false),
        (own, with { $0.hasAuthorization = true }, true, true), (own, with(), false, false),
        (without, with(), true, true), (without, with { $0.hasAuthorization = true }, false, false),
        (own, unread(), false, true),
    ]
    @Test(arguments: rows.indices) func `for certain, or perhaps`(_ index: Int) {
        let row = Self.rows[index]
        var conditions = RuleConditions()
        conditions.details = row.conditions
        #expect(conditions.holdForRequest(row.request, paths: .everySpelling) == row.allows, "row \(index)")
        #expect(conditions.holdForRequest(row.request, paths: .anySpelling) == row.denies, "row \(index)")
        let unmet = conditions.unmet(by: row.request, address: nil, paths: .everySpelling)
        #expect(unmet == (row.allows ? [] : .details), "row \(index)")
    }

    static let ownRows:
        [(own: String?, presence: [DetailConditions.CredentialPresence], names: [String], holds: Bool)] = [
            ("forge", [.own], [], true), ("forge", [], ["forge"], true), ("forge", [], ["other"], false),
            ("forge", [.client], [], false), ("forge", [.none], [], true), (nil, [.own], [], false),
            (nil, [], ["forge"], false), (nil, [.none], ["forge"], true), (nil, [.client, .own], ["forge"], false),
        ]
    @Test(arguments: ownRows.indices) func `a credential of Larder's own`(_ index: Int) {
        let row = Self.ownRows[index]
        var conditions = RuleConditions()
        conditions.details.credentials = row.presence
        conditions.details.ownCredentials = row.names
        var asked = request()
        asked.details = RequestDetails()
        asked.details?.ownCredentials = row.own.map { [$0] } ?? []
        for reading in [PathReading.everySpelling, .anySpelling] {
            #expect(conditions.holdForRequest(asked, paths: reading) == row.holds, "row \(index)")
        }
        #expect(conditions.details.lookInside)
    }

    static let valueRows: [(query: String, allows: Bool, denies: Bool)] = [
        ("service=git-upload-pack", true, true), ("a=1&service=git-upload-pack", true, true),
        ("service=git-receive-pack", false, false), ("service", false, false), ("", false, false),
        ("service=git-upload-pack&service=git-receive-pack", false, true), ("Service=git-upload-pack", false, true),
        ("service=git%2Dupload-pack", false, true), ("service=GIT-upload-pack", false, true),
        ("%73ervice=git-upload-pack", false, true), ("service=git-upload-pack;x", false, true),
        ("service=git%252Dupload%252Dpack", false, true), ("service=git-upload-pack%00x", false, true),
        ("xservice=git-upload-pack", false, false), ("service=git-upload-packs", false, false),
    ]
    @Test(arguments: valueRows) func `the value of a query parameter`(
        _ row: (query: String, allows: Bool, denies: Bool)
    ) {
        var conditions = RuleConditions()
        conditions.details.queries = ["service=git-upload-pack"]
        let asked = request(path: "/a?\(row.query)")
        #expect(conditions.holdForRequest(asked, paths: .everySpelling) == row.allows, "\(row.query)")
        #expect(conditions.holdForRequest(asked, paths: .anySpelling) == row.denies, "\(row.query)")
    }

    @Test func `all details must hold`() {
        var conditions = RuleConditions()
        conditions.details = Self.token
        conditions.details.userAgents = Self.curl.userAgents
        let both = Self.with("/?token=1") { $0.userAgents = Self.bytes("curl/8") }
        let one = Self.with("/?token=1") { $0.userAgents = Self.bytes("wget") }
        #expect(
            conditions.holdForRequest(both, paths: .anySpelling) && !conditions.holdForRequest(one, paths: .anySpelling)
        )
        #expect(conditions.dependOnRequest)
    }
}

@Suite("Times of rules")
struct TimeWindowTests {
    /// 2026-11-24 00:00 UTC, a Tuesday.
    static let tuesday: Int64 = 1_795_478_400

    static let rows: [(window: String, hours: Double, offset: Double, isIn: Bool)] = [
        ("08:00-18:00", 8, 0, true), ("08:00-18:00", 7.99, 0, false), ("08:00-18:00", 17.99, 0, true),
        ("08:00-18:00", 18, 0, false), ("mon-fri", 0, 0, true), ("mon-fri 08:00-18:00", 9, 0, true),
        ("mon-fri 08:00-18:00", 9 + 4 * 24, 0, false), ("sat,sun", 4 * 24, 0, true), ("sat,sun", 3 * 24, 0, false),
        ("fri-mon", 6 * 24, 0, true), ("fri-mon", 0, 0, false), ("wed", 0, 0, false), ("TUE", 12, 0, true),
        // Over midnight: the days are those of the beginning.
        ("22:00-06:00", 23, 0, true), ("22:00-06:00", 5, 0, true), ("22:00-06:00", 6, 0, false),
        ("mon 22:00-06:00", 5, 0, true), ("tue 22:00-06:00", 5, 0, false), ("tue 22:00-06:00", 29, 0, true),
        ("sun 22:00-06:00", 6 * 24 + 3, 0, true), ("00:00-24:00", 23.99, 0, true),
        // Local time, and UTC.
        ("08:00-09:00", 7, 1, true), ("08:00-09:00 local", 7, 1, true), ("08:00-09:00 utc", 7, 1, false),
        ("08:00-09:00 utc", 8, 1, true), ("mon", 2, -5, true), ("mon utc", 2, -5, false), ("wed", 23.5, 1, true),
    ]
    @Test(arguments: rows.indices) func `a moment in a window`(_ index: Int) throws {
        let row = Self.rows[index]
        let window = try #require(TimeWindow(row.window))
        let time = RuleTime(
            seconds: Self.tuesday + Int64((row.hours * 3600).rounded()), localOffset: Int64(row.offset * 3600))
        #expect(window.contains(time) == row.isIn, "\(row)")
    }

    @Test func `before 1970, too`() throws {
        let window = try #require(TimeWindow("wed 23:00-24:00"))
        #expect(window.contains(RuleTime(seconds: -60, localOffset: 0)))
    }

    @Test(arguments: [
        "", "utc", "8:00-18:00", "08:00", "08:00-08:00", "24:00-25:00", "08:60-09:00", "mon-", "monday", "mon fri",
        "08:00-09:00 mon", "mon 08:00-09:00 cet", "mon,,tue", "24:00-01:00",
    ])
    func `is no window`(_ text: String) { #expect(TimeWindow(text) == nil) }
}
