@testable import Server
import Testing

@Suite("What the clients of a worker are sent in one turn")
struct TurnBudgetTests {
    private static let max = TurnBudget.bytesMax

    struct Row: Sendable {
        let sent: [(bytes: Int, turn: UInt64)]
        let turn: UInt64
        let isSpent: Bool
    }

    @Test(arguments: [
        Row(sent: [], turn: 1, isSpent: false),
        Row(sent: [(max - 1, 1)], turn: 1, isSpent: false),
        Row(sent: [(max - 1, 1), (1, 1)], turn: 1, isSpent: true),
        Row(sent: [(max, 1)], turn: 2, isSpent: false),
        Row(sent: [(max, 1), (1, 2)], turn: 2, isSpent: false),
        Row(sent: [(max - 1, 1), (max - 1, 2), (1, 3)], turn: 3, isSpent: false),
    ]) func `each turn has a budget of its own`(_ row: Row) {
        var budget = TurnBudget()
        for (bytes, turn) in row.sent { budget.note(bytes, inTurn: turn) }
        #expect(budget.isSpent(inTurn: row.turn) == row.isSpent)
    }

    @Test func `hits with long bodies have a larger one`() {
        var budget = TurnBudget()
        budget.note(TurnBudget.hitBytesMax - 1, inTurn: 7)
        #expect(budget.isSpent(inTurn: 7) && budget.hasRoomForHit(inTurn: 7))
        budget.note(1, inTurn: 7)
        #expect(!budget.hasRoomForHit(inTurn: 7) && budget.hasRoomForHit(inTurn: 8))
    }

    @Test func `those that were postponed have a budget of their own`() {
        var budget = TurnBudget()
        budget.note(Self.max, inTurn: 7)
        #expect(budget.isSpent(inTurn: 7))
        budget.renew(inTurn: 7)
        #expect(!budget.isSpent(inTurn: 7))
    }
}
