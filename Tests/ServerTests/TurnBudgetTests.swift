import EventLoop
import Testing

@testable import Server

@Suite("What the clients of a worker are sent in one turn")
struct TurnBudgetTests {
    private static let max = TurnBudget.bytesMaxInCrowd
    private static let look = TurnBudget.bytesBetweenLooks
    private static let crowd = TurnBudget.crowd + 1
    private static let second: UInt64 = 1_000_000_000

    struct Row: Sendable {
        /// What was sent in which turn, and after how many nanoseconds.
        let sent: [(bytes: Int, turn: UInt64, after: UInt64)]
        let turn: UInt64
        var waiting = 0
        let isSpent: Bool
    }

    @Test(arguments: [
        Row(sent: [], turn: 1, waiting: crowd, isSpent: false),
        Row(sent: [(max - 1, 1, 0)], turn: 1, waiting: crowd, isSpent: false),
        Row(sent: [(max - 1, 1, 0), (1, 1, 0)], turn: 1, waiting: crowd, isSpent: true),
        Row(sent: [(max, 1, 0)], turn: 2, waiting: crowd, isSpent: false),
        Row(sent: [(max, 1, 0), (1, 2, 0)], turn: 2, waiting: crowd, isSpent: false),
        Row(
            sent: [(max - 1, 1, 0), (max - 1, 2, 0), (1, 3, 0)], turn: 3, waiting: crowd, isSpent: false),
        // Where a few wait, bytes do not count.
        Row(sent: [(10 * max, 1, 0)], turn: 1, waiting: crowd - 1, isSpent: false),
    ]) func `where many wait, each turn has a budget of bytes`(_ row: Row) { TurnBudgetTests.check(row) }

    @Test(arguments: [
        Row(sent: [(look, 1, 0), (look, 1, 999_999)], turn: 1, isSpent: false),
        Row(sent: [(look, 1, 0), (look, 1, 1_000_000)], turn: 1, isSpent: true),
        Row(sent: [(look, 1, 0), (look, 1, second), (1, 1, 0)], turn: 1, isSpent: true),
        // The clock is read for half a MiB, not for less.
        Row(sent: [(look, 1, 0), (look - 1, 1, second)], turn: 1, isSpent: false),
        Row(sent: [(look - 1, 1, 0), (1, 1, second)], turn: 1, isSpent: false),
        Row(sent: [(look, 1, 0), (look, 2, second)], turn: 2, isSpent: false),
        Row(sent: [(look, 1, 0), (look, 1, second)], turn: 2, isSpent: false),
    ]) func `where a few wait, each turn has a budget of time`(_ row: Row) { TurnBudgetTests.check(row) }

    private static func check(_ row: Row) {
        var budget = TurnBudget()
        var now = MonotonicTime(nanoseconds: second)
        for (bytes, turn, after) in row.sent {
            now.nanoseconds += after
            if budget.note(bytes, inTurn: turn) { budget.note(now) }
        }
        #expect(budget.isSpent(inTurn: row.turn, waiting: row.waiting) == row.isSpent)
    }

    @Test func `hits with long bodies have a larger one`() {
        var budget = TurnBudget()
        _ = budget.note(TurnBudget.hitBytesMax - 1, inTurn: 7)
        #expect(budget.isSpent(inTurn: 7, waiting: Self.crowd) && budget.hasRoomForHit(inTurn: 7))
        _ = budget.note(1, inTurn: 7)
        #expect(!budget.hasRoomForHit(inTurn: 7) && budget.hasRoomForHit(inTurn: 8))
    }

    @Test func `those that were postponed have a budget of their own`() {
        var budget = TurnBudget()
        for time: UInt64 in [1, 2] {
            let isDue = budget.note(Self.max, inTurn: 7)
            #expect(isDue)
            budget.note(MonotonicTime(nanoseconds: time * Self.second))
        }
        #expect(budget.isSpent(inTurn: 7, waiting: 0) && budget.isSpent(inTurn: 7, waiting: Self.crowd))
        budget.renew(inTurn: 7)
        #expect(!budget.isSpent(inTurn: 7, waiting: 0) && !budget.isSpent(inTurn: 7, waiting: Self.crowd))
    }
}
