import EventLoop
import Testing

@testable import Disk

@Suite("Disk store: the sleep of the keeper")
struct BookKeeperTests {
    private let room = DiskStoreTestRoom()

    /// A keeper without a thread, connected as in a running store.
    private func withKeeper(_ body: (BookKeeper, DiskStoreParts) -> Void) throws {
        let opening = try DiskStoreOpening(room.options(), DiskStoreTestRoom.tuning, calls: SystemCalls())
        let keeper = BookKeeper(parts: opening.parts, reservedIDs: opening.reservedIDs)
        keeper.connect(afterDeletion: {}, wakeReclaimer: {}, drop: { _ in })
        body(keeper, opening.parts)
        keeper.disconnect()
        opening.parts.book.close()
        opening.parts.directory.unlock()
    }

    @Test func `turning the store off wakes the keeper, which then sleeps as long as between two probes`()
        throws
    {
        try withKeeper { keeper, parts in
            #expect(keeper.nextSleep() == .seconds(60) && keeper.isAsleep)
            parts.health.turnOff("a write failed")
            #expect(!keeper.isAsleep)
            #expect(keeper.nextSleep() == parts.tuning.probeInterval && keeper.isAsleep)
            parts.health.turnOff("another write failed")
            #expect(keeper.isAsleep, "it was woken once, and the interval of the probes is kept")
        }
    }

    @Test func `a keeper that is awake needs no waking`() throws {
        try withKeeper { keeper, parts in
            parts.health.turnOff("the commit failed")
            #expect(keeper.nextSleep() == parts.tuning.probeInterval, "no turn is wanted at once")
        }
    }

    @Test func `a wanted commit needs no sleep`() throws {
        try withKeeper { keeper, _ in
            keeper.commitSoon()
            #expect(keeper.nextSleep() == nil && !keeper.isAsleep)
        }
    }
}
