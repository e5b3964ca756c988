import Foundation
import Glibc
import Testing

@testable import Disk
@testable import DiskTools

@Suite("Drop records that could not be written at once")
struct OwedDropsTests {
    private let room = DiskStoreTestRoom(inMemory: true)
    private let calls = FaultyCalls()

    private enum Cause: CaseIterable {
        case noSpace, failedWrite, storeOff
    }

    /// Stores three objects and removes the second while its drop record cannot be written. Then the record can be written again, and
    /// the store is closed.
    private func removeOne(_ cause: Cause) throws {
        let store = try room.open(calls: calls)
        let ids = try (1...3).map { try #require(store.put("http://a.example/\($0)", segmentBytes(1000, UInt64($0)))) }
        #expect(store.flush())
        switch cause {
        case .noSpace:
            let rest = store.parts.ledger.withLock { ledger in
                let rest = ledger.limits.size - ledger.usedBytes
                return ledger.claim(rest, for: .moving) == .granted ? rest : 0
            }
            store.remove("http://a.example/2", ids[1])
            #expect(store.flush(), "the book has the removal")
            store.parts.ledger.withLock { $0.unclaim(rest) }
        case .failedWrite:
            calls.inject(.fail(EIO), into: [.write], path: "/segments/")
            store.remove("http://a.example/2", ids[1])
            _ = store.flush()
        case .storeOff:
            calls.inject(.fail(ENOSPC), into: [.write])
            store.put("http://a.example/4", [4])
            room.waitForLog { store.state != .on }
            store.remove("http://a.example/2", ids[1])
            _ = store.flush()
        }
        calls.heal()
        room.waitForLog { store.isOn }
        store.close()
    }

    @Test(arguments: Cause.allCases)
    private func `are written later, so that an index made from the files alone lacks what was removed`(
        _ cause: Cause
    ) throws {
        try removeOne(cause)
        try FileManager.default.removeItem(atPath: room.path + "/book")
        #expect(try verify(path: room.path, repair: true) { _ in }.isFine)
        let again = try room.open()
        defer { again.close() }
        #expect(try [1, 2, 3].map { try again.get("http://a.example/\($0)") != nil } == [true, false, true])
    }

    @Test func `the oldest are given up if there are too many`() {
        let drops = (1...UInt64(OwedDrops.countMax + 2)).map { DroppedObject(id: ObjectID(rawValue: $0), segment: 1) }
        var owed = OwedDrops()
        owed.add(drops.prefix(3))
        owed.add(drops.dropFirst(3))
        #expect(owed.take() == Array(drops.dropFirst(2)))
        #expect(owed.isEmpty)
    }
}
