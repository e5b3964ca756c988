import EventLoop
import Testing

@testable import Disk

@Suite("The index in memory")
struct DiskIndexTests {
    private func place(_ segment: UInt32, _ offset: UInt64, body: UInt64 = 100, kind: Place.Kind = .packed) -> Place {
        Place(kind: kind, segment: segment, offset: offset, headLength: kind == .large ? 4096 : 160, bodyLength: body)
    }

    private func entry(
        _ hash: UInt64, _ id: UInt64, _ place: Place, _ storageClass: StorageClass = .permanent
    ) throws -> DiskIndexEntry {
        try #require(
            DiskIndexEntry(
                hash: hash, id: ObjectID(rawValue: id), place: place, storageClass: storageClass, isRenewed: false))
    }

    @Test(arguments: [0, 1, 15, 16, 17, 65_536, 1 << 20, 0xF_FFE0_0000])
    func `an entry returns the place it was made from`(_ body: UInt64) throws {
        for kind in [Place.Kind.packed, .large] {
            for storageClass in StorageClass.allCases {
                for isRenewed in [false, true] {
                    let place = Place(
                        kind: kind, segment: .max, offset: kind == .large ? 0 : 0xF_FFFF_FFF0,
                        headLength: kind == .large ? 0xF_F000 : 0xF_FFF0, bodyLength: body)
                    let entry = try #require(
                        DiskIndexEntry(
                            hash: .max, id: ObjectID(rawValue: .max), place: place, storageClass: storageClass,
                            isRenewed: isRenewed, uses: 2))
                    #expect(entry.place == place)
                    #expect(entry.storageClass == storageClass)
                    #expect(entry.isRenewed == isRenewed)
                    #expect(entry.uses == 2)
                }
            }
        }
        #expect(MemoryLayout<DiskIndexEntry>.stride == 32)
    }

    @Test func `a place beyond the limits makes no entry`() {
        func entry(_ place: Place) -> DiskIndexEntry? {
            DiskIndexEntry(hash: 1, id: ObjectID(rawValue: 1), place: place, storageClass: .permanent, isRenewed: false)
        }
        #expect(entry(place(1, 8)) == nil)
        #expect(entry(place(1, 1 << 36)) == nil)
        #expect(entry(place(1, 0, body: 1 << 36)) == nil)
        #expect(entry(place(1, 0, body: .max)) == nil)
        #expect(entry(Place(kind: .packed, segment: 1, offset: 0, headLength: 0, bodyLength: 1)) == nil)
        #expect(entry(Place(kind: .packed, segment: 1, offset: 0, headLength: 1 << 20, bodyLength: 1)) == nil)
    }

    @Test func `the newest object comes first, wherever it is`() throws {
        let index = DiskIndex()
        for (id, segment) in [(3, 9), (1, 12), (2, 4)] as [(UInt64, UInt32)] {
            index.insert(try entry(7, id, place(segment, 4096)))
        }
        index.insert(try entry(8, 4, place(1, 4096)))
        #expect(index.find(7).map(\.id.rawValue) == [3, 2, 1])
        #expect(index.find(9).isEmpty)
        #expect(index.count == 4)
    }

    @Test func `a number is in the index once`() throws {
        let index = DiskIndex()
        #expect(index.insert(try entry(7, 1, place(1, 4096))))
        #expect(!index.insert(try entry(7, 1, place(2, 4096))))
        #expect(index.find(7).map(\.place.segment) == [1])
    }

    @Test func `an object moves only if it is still at its old place`() throws {
        let index = DiskIndex()
        index.insert(try entry(7, 1, place(1, 4096)))
        #expect(!index.move(from: place(1, 8192), to: try entry(7, 1, place(2, 4096))))
        #expect(!index.move(from: place(1, 4096), to: try entry(7, 2, place(2, 4096))))
        #expect(index.move(from: place(1, 4096), to: try entry(7, 1, place(2, 4096))))
        #expect(index.find(7).map(\.place) == [place(2, 4096)])
        #expect(index.entry(7, at: place(1, 4096)) == nil)
    }

    @Test func `uses are counted up to three, and can be taken back`() throws {
        let index = DiskIndex()
        index.insert(try entry(7, 1, place(1, 4096), .pinned))
        for expected in [1, 2, 3, 3] as [UInt8] {
            index.touch(7, ObjectID(rawValue: 1))
            #expect(index.find(7).first?.uses == expected)
        }
        for expected in [2, 1, 0, 0] as [UInt8] {
            index.decrementUses(7, ObjectID(rawValue: 1))
            #expect(index.find(7).first?.uses == expected)
        }
        #expect(index.find(7).first?.storageClass == .pinned)
    }

    @Test func `only the requested object is removed`() throws {
        let index = DiskIndex()
        for id in 1...4 as ClosedRange<UInt64> { index.insert(try entry(7, id, place(UInt32(id), 4096))) }
        #expect(index.remove(7, ObjectID(rawValue: 2))?.place.segment == 2)
        #expect(index.remove(7, ObjectID(rawValue: 2)) == nil)
        #expect(index.remove(7, at: place(3, 4096))?.id.rawValue == 3)
        #expect(index.remove(7, at: place(3, 8192)) == nil)
        #expect(Set(index.removeAll(7).map(\.id.rawValue)) == [1, 4])
        #expect(index.count == 0)
    }

    /// With few shards and bad hashes, so that runs of entries collide, wrap around the end, and move when one goes.
    @Test(arguments: 1...6 as ClosedRange<UInt64>) func `it behaves like a dictionary`(_ seed: UInt64) throws {
        var random = SplitMix(state: seed)
        let index = DiskIndex(shardCount: seed % 2 == 0 ? 1 : 4)
        var model: [ObjectID: DiskIndexEntry] = [:]
        for step in 1...20_000 as ClosedRange<UInt64> {
            let hash = UInt64.random(in: 0..<(seed * 100), using: &random) &* 0x9E37_79B9_7F4A_7C15
            let grows = step % 8000 < 5000
            if Int.random(in: 0..<100, using: &random) < (grows ? 70 : 30) {
                let new = try entry(hash, step, place(UInt32(step), 4096))
                index.insert(new)
                model[new.id] = new
            } else if let id = index.find(hash).randomElement(using: &random)?.id {
                #expect(index.remove(hash, id) == model[id])
                model[id] = nil
            }
            if step % 500 == 0 {
                var seen: [ObjectID: DiskIndexEntry] = [:]
                index.forEach { seen[$0.id] = $0 }
                #expect(seen == model)
                #expect(index.count == model.count)
                for entry in model.values { #expect(index.entry(entry.hash, entry.id) == entry) }
            }
        }
    }

    @Test func `tables take at most 60 bytes for an object, at any number of them`() throws {
        let index = DiskIndex()
        var random = SplitMix(state: 1)
        for id in 1...300_000 as ClosedRange<UInt64> {
            index.insert(try entry(random.next(), id, place(1, 4096)))
            if id >= 20_000, id % 1000 == 0 { #expect(index.tableBytes <= Int(id) * 60, "\(id)") }
        }
    }

    private func waiting(_ hash: UInt64, _ id: ObjectID) -> PackedObject {
        PackedObject(
            id: id, hash: hash, key: [], attributes: .sample(), head: [], body: SegmentTestBody(length: 0, seed: 1))
    }

    @Test func `a waiting object is published or cancelled, and never both`() {
        let pending = Pending()
        let id = ObjectID(rawValue: 1)
        pending.add(waiting(7, id))
        #expect(pending.contains(7, id))
        #expect(pending.cancel(7, id))
        #expect(!pending.cancel(7, id))
        var isPublished = false
        #expect(!pending.publish(7, id) { isPublished = true })
        #expect(!isPublished)
        pending.add(waiting(7, id))
        pending.add(waiting(7, ObjectID(rawValue: 2)))
        #expect(pending.publish(7, id) { isPublished = true })
        #expect(isPublished)
        #expect(pending.waiting(7).map(\.id) == [ObjectID(rawValue: 2)])
        pending.add(waiting(7, ObjectID(rawValue: 3)))
        #expect(pending.cancelAll(7) == [2, 3].map { ObjectID(rawValue: $0) })
        #expect(pending.waiting(7).isEmpty)
    }
}
