import Limiting
import Message
import Testing

@Suite("limits.rules: budget, bytes in a window of time") struct BudgetTests {
    /// 2026-11-24T16:30:00Z, a Tuesday.
    private static let now: Int64 = 1_795_537_800

    private static let rows: [(ByteBudget.Window, Int64)] = [(.hour, 1800), (.day, 27_000), (.week, 459_000)]

    @Test(arguments: rows)
    func `a window ends at a whole hour, at midnight, on Monday`(_ window: ByteBudget.Window, _ left: Int64) {
        #expect(window.end(of: Self.now) - Self.now == left)
        // The end belongs to the next window.
        let end = window.end(of: Self.now)
        #expect(window.end(of: end - 1) == end && window.end(of: end) == end + (Self.lengths[window] ?? 0))
    }

    private static let lengths: [ByteBudget.Window: Int64] = [.hour: 3600, .day: 86_400, .week: 604_800]

    @Test(arguments: [ByteBudget.Window.hour, .day, .week]) func `times before 1970 have windows`(
        _ window: ByteBudget.Window
    ) {
        let length = Self.lengths[window] ?? 0
        for time: Int64 in [-1, -length, -700_000] {
            let end = window.end(of: time)
            #expect(end > time && end - time <= length)
        }
    }

    @Test(arguments: rows)
    func `a window from the future recedes to the present one`(_ window: ByteBudget.Window, _ left: Int64) throws {
        let length = try #require(Self.lengths[window])
        let end = window.end(of: Self.now)
        #expect(window.turn(from: end, at: Self.now) == .stays && window.turn(from: end, at: end - 1) == .stays)
        #expect(window.turn(from: end, at: end) == .begins(end: end + length))
        #expect(window.turn(from: 0, at: Self.now) == .begins(end: end))
        // Another thread may have read the clock a moment before the window began.
        #expect(window.turn(from: end, at: end - length - 5) == .stays)
        #expect(window.turn(from: end, at: end - length - 6) == .recedes(end: end - length))
        // Set back by a day and by a year, and a window that ends when none does, because the rule had another one.
        for time in [Self.now - 604_800, Self.now - 31_536_000, -1] {
            #expect(window.turn(from: end, at: time) == .recedes(end: window.end(of: time)))
        }
        #expect(window.turn(from: .max - 1, at: Self.now) == .recedes(end: end))
        #expect(window.turn(from: .min, at: Self.now) == .begins(end: end))
    }

    @Test func `a budget in all stays, whatever the clock shows`() {
        for time: Int64 in [.min, 0, Self.now, .max - 1] {
            #expect(ByteBudget.Window.total.turn(from: ByteBudget.never, at: time) == .stays)
            // It had windows before, or was made with another configuration.
            #expect(ByteBudget.Window.total.turn(from: 86_400, at: time) == .begins(end: ByteBudget.never))
        }
        let end = ByteBudget.Window.day.end(of: Self.now)
        #expect(ByteBudget.Window.day.turn(from: ByteBudget.never, at: Self.now) == .begins(end: end))
    }

    @Test func `a budget in all has one window that does not end`() throws {
        for time: Int64 in [.min, 0, Self.now] { #expect(ByteBudget.Window.total.end(of: time) == ByteBudget.never) }
        let uses = [BudgetUse(LimitBucket(rule: "job", .user("ann")), windowEnd: ByteBudget.never, spent: 9)]
        #expect(try BudgetFile.read(BudgetFile.text(uses)) == uses)
        #expect(
            ByteBudget(5, every: .total).windowText == "in all" && ByteBudget(5, every: .day).windowText == "in one day"
        )
    }

    @Test func `what counts is one direction or both`() {
        let counted = ByteBudget.Direction.allCases.map { ByteBudget(1, every: .day, counts: $0) }
        #expect(counted.map(\.countsDownloads) == [true, false, true])
        #expect(counted.map(\.countsUploads) == [false, true, true])
    }
}

@Suite("limits.budgets_file: what it says") struct BudgetFileTests {
    private static let uses = [
        BudgetUse(LimitBucket(rule: "each", .client(IPAddress(v4: 0xC000_0201))), windowEnd: 86_400, spent: 5),
        BudgetUse(
            LimitBucket(rule: "each", .client(IPAddress(v6: 0x2001_0DB8_0000_0000, low: 0))), windowEnd: 1, spent: .max),
        BudgetUse(LimitBucket(rule: "with\ttab", .user("an%n\nü")), windowEnd: 86_400, spent: 0),
        BudgetUse(LimitBucket(rule: "%\u{301}\r", .user("\u{301}\r\n%\u{301}25\r")), windowEnd: 86_400, spent: 0),
        BudgetUse(LimitBucket(rule: "g", .group("x y")), windowEnd: -1, spent: 1),
        BudgetUse(LimitBucket(rule: "a", .all), windowEnd: 7, spent: 7),
        BudgetUse(LimitBucket(rule: "t", .all), windowEnd: ByteBudget.never, spent: 7),
        BudgetUse(LimitBucket(rule: "l", .local), windowEnd: 7, spent: 7),
        BudgetUse(LimitBucket(rule: "o", .others), windowEnd: 7, spent: 7),
    ]

    @Test func `what is written is read again`() throws {
        #expect(try BudgetFile.read(BudgetFile.text(Self.uses)) == Self.uses)
        #expect(try BudgetFile.read(BudgetFile.text([])) == [])
        #expect(
            String(decoding: BudgetFile.text([Self.uses[0]]), as: UTF8.self)
                == "larder budgets 1\neach\tclient\t192.0.2.1\t86400\t5\nend 1\n")
    }

    @Test func `a file that was cut off anywhere is damaged`() {
        let text = BudgetFile.text(Self.uses)
        for length in text.indices {
            #expect(throws: BudgetFile.Damage.self, "\(length) bytes") { try BudgetFile.read(Array(text[..<length])) }
        }
    }

    @Test(arguments: [
        ("", 1), ("larder budgets 2\nend 0\n", 1), ("larder budgets 1\nend 1\n", 2),
        ("larder budgets 1\na\tall\t\t1\t-1\nend 1\n", 2), ("larder budgets 1\na\tclient\tx\t1\t1\nend 1\n", 2),
        ("larder budgets 1\na\tall\t\t1\t1\nmore\nend 2\n", 3), ("larder budgets 1\nend 0\nmore\n", 2),
        ("larder budgets 1\n%\tall\t\t1\t1\nend 1\n", 2),
        ("larder budgets 1\na\tall\t\t9223372036854775806\t1\nend 1\n", 2),
        ("larder budgets 1\na\tall\t\t9007199254740992\t1\nend 1\n", 2),
        ("larder budgets 1\na\tall\t\t-9223372036854775808\t1\nend 1\n", 2),
        ("larder budgets 1\na\tall\t\t9223372036854775808\t1\nend 1\n", 2),
        ("larder budgets 1\na\tall\t\t1\t18446744073709551616\nend 1\n", 2),
        ("larder budgets 1\na\tall\t\t1e3\t1\nend 1\n", 2), ("larder budgets 1\na\tall\t\t1\t1.0\nend 1\n", 2),
    ])
    func `damage is named with its line`(_ text: String, _ line: Int) {
        do {
            _ = try BudgetFile.read(Array(text.utf8))
            Issue.record("\(text) is read")
        } catch { #expect(error.line == line) }
    }
}
