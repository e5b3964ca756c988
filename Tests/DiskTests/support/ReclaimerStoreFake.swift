import EventLoop
import Glibc

@testable import Disk

/// A store without bytes, for the rules of reclaiming: what stands in which file, what the index says, which files wait for the book.
final class ReclaimerStoreFake: ReclaimerStore, @unchecked Sendable {  // what it holds is reached under its lock alone
    enum Written {
        case object(StoredHead)
        case drops([DroppedObject])
    }
    struct Indexed {
        var place: Place
        var useMark: UInt8 = 0
        var isPinned: Bool
    }
    struct State {
        var files: [UInt32: [Written]] = [:]
        var ends: [UInt32: UInt64] = [:]
        var index: [ObjectID: Indexed] = [:]
        var large: [UInt32: ObjectID] = [:]
        var active: UInt32 = 0
        var nextNumber: UInt32 = 1
        var nextID: UInt64 = 1
        var removed: Set<ObjectID> = []
        var waitingForCommit: [UInt32] = []
        var evicted: [ObjectID] = []
        var damaged: [ObjectID] = []
        /// What `owe` was given.
        var owed: [DroppedObject] = []
        var movedBytes: UInt64 = 0
        var storedBytes: UInt64 = 0
        var usedMax: UInt64 = 0
        var commits = 0
        /// What a test lets fail or happen.
        var unreadable: [ObjectID: DiskReadError] = [:]
        var movesLeft = Int.max
        var scanFails = false
        var duringMove: @Sendable (inout State, [MovedRecord]) -> Void = { _, _ in }
    }
    let ledger: Locked<Ledger>
    let state: Locked<State>

    init(_ limits: Ledger.Limits) {
        ledger = Locked(Ledger(limits: limits))
        state = Locked(State())
        state.withLock { open(&$0) }
    }

    // MARK: what a test does with it

    /// Nil: there is no room now, or the quota is full.
    func store(_ length: UInt64, _ storageClass: StorageClass = .permanent, useMark: UInt8 = 0) -> ObjectID? {
        state.withLock { state in
            let id = ObjectID(rawValue: state.nextID)
            let head = Self.head(id, storageClass, length)
            let bytes = head.place.recordLength
            guard ledger.withLock({ $0.promise(bytes, storageClass) }) else { return nil }
            guard ledger.withLock({ $0.claim(bytes, for: .storing) }) == .granted else {
                ledger.withLock { $0.withdraw(bytes, storageClass) }
                return nil
            }
            state.nextID += 1
            let place = append(.object(head), bytes, &state)
            ledger.withLock { $0.add(bytes, storageClass, to: place.segment, wasPromised: true) }
            state.index[id] = Indexed(place: place, useMark: useMark, isPinned: storageClass == .pinned)
            state.storedBytes += bytes
            return id
        }
    }

    func storeLarge(_ length: UInt64, useMark: UInt8 = 0) -> UInt32? {
        state.withLock { state in
            guard ledger.withLock({ $0.claim(length, for: .storing) }) == .granted else { return nil }
            let id = ObjectID(rawValue: state.nextID)
            state.nextID += 1
            let number = state.nextNumber
            state.nextNumber += 1
            ledger.withLock { ledger in
                ledger.begin(number, .large)
                ledger.grew(number, by: length)
                ledger.add(length, .permanent, to: number, wasPromised: false)
                ledger.close(number)
            }
            state.large[number] = id
            let place = Place(kind: .large, segment: number, offset: 0, headLength: 4096, bodyLength: length - 4096)
            state.index[id] = Indexed(place: place, useMark: useMark, isPinned: false)
            note(&state)
            return number
        }
    }

    func remove(_ id: ObjectID) { state.withLock { remove(id, &$0, notesDrop: true) } }

    func remove(_ id: ObjectID, _ state: inout State, notesDrop: Bool) {
        guard let entry = state.index.removeValue(forKey: id) else { return }
        state.removed.insert(id)
        ledger.withLock {
            $0.remove(entry.place.recordLength, entry.isPinned ? .pinned : .permanent, from: entry.place.segment)
        }
        guard notesDrop, ledger.withLock({ $0.claim(80, for: .moving) }) == .granted else { return }
        _ = append(.drops([DroppedObject(id: id, segment: entry.place.segment)]), 80, &state)
    }

    func touch(_ id: ObjectID) {
        state.withLock { state in
            guard let entry = state.index[id] else { return }
            state.index[id]?.useMark = min(3, entry.useMark + 1)
        }
    }

    /// No more is written into the segment that is written into.
    func closeActive() {
        state.withLock { state in
            ledger.withLock { $0.close(state.active) }
            open(&state)
        }
    }

    func commit() {
        state.withLock { state in
            state.commits += 1
            for number in state.waitingForCommit {
                state.files[number] = nil
                state.ends[number] = nil
                state.large[number] = nil
                ledger.withLock { $0.delete(number) }
            }
            state.waitingForCommit = []
        }
    }

    /// The objects that one would find who has the files alone.
    func rebuilt() -> Set<ObjectID> {
        state.withLock { state in
            var found: Set<ObjectID> = []
            var dropped: Set<ObjectID> = []
            for written in state.files.values.joined() {
                switch written {
                case .object(let head): found.insert(head.id)
                case .drops(let list): dropped.formUnion(list.map(\.id))
                }
            }
            return found.subtracting(dropped)
        }
    }

    // MARK: the store

    func scan(_ segment: UInt32, _ visit: (VictimRecord) -> Bool) throws(DiskReadError) {
        if state.withLock({ $0.scanFails }) { throw .failed(errno: EIO) }
        for written in state.withLock({ $0.files[segment] ?? [] }) {
            let record: VictimRecord =
                switch written {
                case .object(let head): .object(head)
                case .drops(let list): .drops(list)
                }
            guard visit(record) else { return }
        }
    }

    func status(of head: StoredHead) -> RecordStatus? {
        state.withLock { state in
            guard let entry = state.index[head.id], entry.place == head.place else { return nil }
            return RecordStatus(useMark: entry.useMark, isPinned: entry.isPinned)
        }
    }

    func read(_ head: StoredHead) throws(DiskReadError) -> MovedRecord? {
        if let error = state.withLock({ $0.unreadable[head.id] }) { throw error }
        return MovedRecord(
            id: head.id, key: head.key, from: head.place, attributes: head.attributes, head: head.head,
            checksums: head.checksums, body: FakeBody(length: Int(head.place.bodyLength)))
    }

    func move(_ records: [MovedRecord], room: UInt64) -> Bool {
        state.withLock { state in
            guard state.movesLeft > 0 else {
                ledger.withLock { $0.unclaim(room) }
                return false
            }
            state.movesLeft -= 1
            state.duringMove(&state, records)
            var room = room
            var drops: [DroppedObject] = []
            for record in records {
                let bytes = record.recordLength
                var head = Self.head(record.id, record.attributes.storageClass, UInt64(record.body.byteCount))
                head.attributes = record.attributes
                let place = append(.object(head), bytes, &state)
                room -= bytes
                state.movedBytes += bytes
                if let entry = state.index[record.id], entry.place == record.from {
                    state.index[record.id]?.place = place
                    state.index[record.id]?.useMark = entry.useMark > 0 ? entry.useMark - 1 : 0
                    let storageClass: StorageClass = entry.isPinned ? .pinned : .permanent
                    ledger.withLock {
                        $0.move(
                            record.from.recordLength, from: record.from.segment, to: place.segment, bytes, storageClass)
                    }
                } else {
                    drops.append(DroppedObject(id: record.id, segment: place.segment))
                }
            }
            if !drops.isEmpty {
                let bytes = UInt64(RecordHeader.byteCount + drops.count * DroppedObject.byteCount)
                _ = append(.drops(drops), bytes, &state)
                room -= bytes
            }
            ledger.withLock { $0.unclaim(room) }
            return true
        }
    }

    func noteEmptied(_ segment: UInt32) {}

    func carry(_ drops: [DroppedObject], room: UInt64) -> Bool {
        state.withLock { state in
            _ = append(.drops(drops), room, &state)
            return true
        }
    }

    func owe(_ drops: [DroppedObject]) {
        state.withLock { state in
            state.owed += drops
            let bytes = UInt64(RecordHeader.byteCount + drops.count * DroppedObject.byteCount)
            guard ledger.withLock({ $0.claim(bytes, for: .moving) }) == .granted else { return }
            _ = append(.drops(drops), bytes, &state)
        }
    }

    func evict(_ head: StoredHead) {
        state.withLock { state in
            guard let entry = state.index[head.id], entry.place == head.place else { return }
            remove(head.id, &state, notesDrop: false)
            state.evicted.append(head.id)
        }
    }

    func dropDamaged(_ head: StoredHead) {
        state.withLock { state in
            remove(head.id, &state, notesDrop: true)
            state.damaged.append(head.id)
        }
    }

    func status(ofLarge segment: UInt32) -> RecordStatus? {
        state.withLock { state in
            state.large[segment].flatMap { state.index[$0] }.map {
                RecordStatus(useMark: $0.useMark, isPinned: $0.isPinned)
            }
        }
    }

    func decrementUses(large segment: UInt32) {
        state.withLock { state in
            if let id = state.large[segment] { state.index[id]?.useMark -= 1 }
        }
    }

    func evict(large segment: UInt32) -> ObjectID? {
        state.withLock { state in
            guard let id = state.large[segment], state.index[id] != nil else { return nil }
            remove(id, &state, notesDrop: false)
            return id
        }
    }

    func deleteAfterCommit(_ segment: UInt32) { state.withLock { $0.waitingForCommit.append(segment) } }
    func commitSoon() {}
    func commitAndDelete() { commit() }

    // MARK: writing

    private func append(_ written: Written, _ bytes: UInt64, _ state: inout State) -> Place {
        let segmentBytes = ledger.withLock { $0.limits.segment }
        if state.ends[state.active, default: 0] + bytes > segmentBytes {
            ledger.withLock { $0.close(state.active) }
            open(&state)
        }
        let offset = state.ends[state.active, default: 0]
        state.ends[state.active, default: 0] += bytes
        ledger.withLock { $0.grew(state.active, by: bytes) }
        note(&state)
        switch written {
        case .object(var head):
            head.place.segment = state.active
            head.place.offset = offset
            state.files[state.active, default: []].append(.object(head))
            return head.place
        case .drops:
            state.files[state.active, default: []].append(written)
            return Place(kind: .packed, segment: state.active, offset: offset, headLength: 0, bodyLength: 0)
        }
    }

    private func open(_ state: inout State) {
        state.active = state.nextNumber
        state.nextNumber += 1
        state.files[state.active] = []
        ledger.withLock { $0.begin(state.active, .shared) }
    }

    private func note(_ state: inout State) {
        state.usedMax = max(state.usedMax, ledger.withLock { $0.fileBytes })
    }

    static func head(_ id: ObjectID, _ storageClass: StorageClass, _ length: UInt64) -> StoredHead {
        let attributes = ObjectAttributes(storageClass: storageClass, status: 200, storedAt: 0, expiresAt: 0)
        let key = Array("http://origin.test/\(id.rawValue)".utf8)
        let headPart = RecordCodec.headPartLength(
            kind: .packed, key: key, attributes: attributes, head: [], bodyLength: Int(length))
        let place = Place(
            kind: .packed, segment: 0, offset: 0, headLength: UInt32(headPart ?? 0), bodyLength: length)
        return StoredHead(id: id, place: place, key: key, attributes: attributes, head: [], checksums: [])
    }
}

/// Has a length, and no bytes.
private final class FakeBody: BodyBytes {
    let byteCount: Int
    init(length: Int) { byteCount = length }

    func vectors(from offset: Int, limit: Int, into vectors: UnsafeMutableBufferPointer<iovec>) -> Int {
        preconditionFailure("a fake body is not written")
    }
}
