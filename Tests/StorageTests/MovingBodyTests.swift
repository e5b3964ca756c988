import EventLoop
import Storage
import Testing

@Suite("Bodies of unknown length that move to the back store")
struct MovingBodyTests {
    private func with(_ engine: Engine, _ body: (TiersRoom) throws -> Void) throws {
        let room = try TiersRoom(engine)
        defer { room.remove() }
        // Until the store is loaded, `insert` leaves work behind that holds the response.
        #expect(room.backStore.waitUntilLoaded())
        try body(room)
        #expect(room.closeAndEmpty() == 0, "all memory is given back")
    }

    /// A stored response whose body still grows in memory.
    private func begin(_ room: TiersRoom, bytes count: Int, _ text: String = "v|1") throws -> Versioned {
        let body = try #require(room.tiers.makeBody(expectedLength: nil))
        let record = Versioned("a", text, body)
        #expect(room.tiers.insert(record) && body.append(pattern(0..<count)) == .appended)
        return record
    }

    private func move(_ record: Versioned, in room: TiersRoom) -> Versioned? { move(record, in: room.tiers) }

    private func move(_ record: Versioned, in tiers: Tiers) -> Versioned? {
        tiers.moveToBackStore(record, lengthMax: 64 << 20) { old, body in
            Versioned("a", (old as! Versioned).text, body)
        } as? Versioned
    }

    /// What a reader gets from an offset on.
    private func read(_ body: Body, from start: Int = 0, to end: Int? = nil) -> [UInt8] {
        var room = [UInt8](repeating: 0, count: 256 << 10)
        var all: [UInt8] = []
        let end = end ?? body.length
        while start + all.count < end {
            let bytes: [UInt8]? = unsafe room.withUnsafeMutableBytes { room in
                guard
                    case .bytes(let bytes) = unsafe body.piece(
                        from: start + all.count, limit: end - start - all.count, room: room, waits: true)
                else { return nil }
                return unsafe Array(bytes)
            }
            guard let bytes else { break }
            all += bytes
        }
        return all
    }

    private static let lengths = [1, 65_535, 65_536, 65_537, 1_000_000, 9 << 20]

    @Test(arguments: Engine.allCases, lengths)
    func `one that has ended is whole, with its length, also in another process`(_ engine: Engine, _ length: Int) throws
    {
        try with(engine) { room in
            let first = length / 3
            do {
                let record = try begin(room, bytes: first)
                let moved = try #require(move(record, in: room))
                #expect(record.body.state == .moved && record.body.continuation === moved)
                #expect(room.tiers.memory.find("a", under: storageKey("a")).first === moved)
                let body = moved.body
                #expect(body.isLarge && body.state == .growing && body.length == first && body.expectedLength == nil)
                var start = first
                while start < length {
                    let end = min(length, start + 300_001)
                    #expect(body.append(pattern(start..<end)) == .appended)
                    start = end
                    #expect(read(body, to: start) == pattern(0..<start), "at any time all of it can be read")
                }
                #expect(room.records("a").count == 1)
                #expect(body.finish() && body.state == .complete && body.expectedLength == length)
                #expect(read(body) == pattern(0..<length))
                #expect(room.backStore.flush())
                #expect(read(body) == pattern(0..<length))
            }
            room.tiers.clearMemory()
            #expect(room.records("a").first?.body.pieces() == pattern(0..<length))
            try room.reopen()
            let record = try #require(room.records("a").first)
            #expect(record.text == "v|1" && record.body.expectedLength == length && record.body.state == .complete)
            #expect(record.body.pieces() == pattern(0..<length))
        }
    }

    @Test(arguments: Engine.allCases) func `its memory is free once it is written`(_ engine: Engine) throws {
        try with(engine) { room in
            let moved = try #require(move(try begin(room, bytes: 1 << 20), in: room))
            for start in stride(from: 1 << 20, to: 32 << 20, by: 1 << 20) {
                #expect(moved.body.append(pattern(start..<start + 1 << 20)) == .appended)
                if moved.body.writerShouldPause {
                    let wake = CountingSemaphore()
                    moved.body.awaitRoom(Wake { wake.signal() })
                    #expect(wake.wait(timeout: .seconds(60)))
                }
            }
            #expect(moved.body.finish() && room.backStore.flush())
            #expect(room.tiers.memory.statistics.usedBytes < 1 << 20)
            #expect(read(moved.body, from: 20 << 20) == pattern(20 << 20..<32 << 20))
        }
    }

    /// Evicting it would free nothing, and until the back store has it, nobody could be served from it.
    @Test(arguments: Engine.allCases) func `one that is not written yet is not evicted`(_ engine: Engine) throws {
        let room = try TiersRoom(engine, memory: 1 << 20)
        defer { room.remove() }
        #expect(room.backStore.waitUntilLoaded())
        room.calls.shut()
        let moved = try #require(move(try begin(room, bytes: 100_000), in: room))
        let end = 1 << 20
        #expect(moved.body.append(pattern(100_000..<end)) == .appended && moved.body.finish())
        func crowd(_ names: Range<Int>) throws {
            for name in names {
                guard let body = room.tiers.makeBody(expectedLength: 1000) else { continue }
                guard body.append(pattern(0..<1000)) == .appended, body.finish() else { continue }
                _ = room.tiers.insert(Versioned("other\(name)", "v|1|session", body))
            }
        }
        try crowd(0..<2000)
        #expect(room.tiers.memory.find("a", under: storageKey("a")).first === moved)
        room.calls.open()
        #expect(room.backStore.flush())
        #expect(room.records("a").first?.body.pieces() == pattern(0..<end))
        try crowd(2000..<6000)
        #expect(room.tiers.memory.find("a", under: storageKey("a")).isEmpty, "then it makes room for others")
    }

    @Test(arguments: Engine.allCases) func `the writer waits for the back store, not for readers`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            room.calls.shut()
            let moved = try #require(move(try begin(room, bytes: 1 << 20), in: room))
            let reader = try #require(moved.body.attach(at: 0))
            #expect(moved.body.append(pattern(1 << 20..<8 << 20)) == .appended)
            #expect(moved.body.writerShouldPause)
            let wake = CountingSemaphore()
            moved.body.awaitRoom(Wake { wake.signal() })
            room.calls.open()
            #expect(wake.wait(timeout: .seconds(60)))
            moved.body.detach(reader)
            moved.body.fail()
        }
    }

    @Test(arguments: Engine.allCases) func `one that breaks off is not stored`(_ engine: Engine) throws {
        try with(engine) { room in
            let moved = try #require(move(try begin(room, bytes: 1 << 20), in: room))
            #expect(moved.body.append(pattern(1 << 20..<3 << 20)) == .appended)
            moved.body.fail()
            // That it failed is enough. If it was stored until it is removed, a crash in between would leave the part as the whole.
            #expect(room.backStore.flush() && room.backStore.statistics.storedObjects == 0)
            #expect(room.backStore.statistics.objectCount == 0)
            room.tiers.remove(moved)
            #expect(moved.body.state == .failed && read(moved.body) == pattern(0..<3 << 20))
            #expect(room.backStore.flush() && room.backStore.flush())
            #expect(room.heads("a") == [] && room.backStore.statistics.objectCount == 0)
            try room.reopen()
            #expect(room.heads("a") == [])
        }
    }

    @Test(arguments: Engine.allCases, ["remove", "invalidate", "replace"])
    func `one that goes on its way is not stored at its end`(_ engine: Engine, _ how: String) throws {
        try with(engine) { room in
            let moved = try #require(move(try begin(room, bytes: 1 << 20), in: room))
            switch how {
            case "remove": room.tiers.remove(moved)
            case "invalidate": #expect(room.tiers.invalidate(storageKey("a"), Array("a".utf8)) == 1)
            default: try room.store("a", "v|2")
            }
            #expect(moved.body.append(pattern(1 << 20..<3 << 20)) == .appended)
            #expect(moved.body.finish() && read(moved.body) == pattern(0..<3 << 20))
            room.leaveToBackStore()
            #expect(room.heads("a") == (how == "replace" ? ["v|2"] : []))
            #expect(room.backStore.statistics.objectCount == (how == "replace" ? 1 : 0))
        }
    }

    @Test(arguments: Engine.allCases) func `what is no longer stored does not move`(_ engine: Engine) throws {
        try with(engine) { room in
            let record = try begin(room, bytes: 100)
            room.tiers.remove(record)
            #expect(move(record, in: room) == nil && record.body.state == .growing)
            let other = try begin(room, bytes: 100, "v|1|session")
            #expect(move(other, in: room) == nil && other.body.state == .growing)
            #expect(room.backStore.flush() && room.backStore.statistics.objectCount == 0)
        }
    }

    @Test(arguments: Engine.allCases) func `the response with the newest head moves`(_ engine: Engine) throws {
        try with(engine) { room in
            let record = try begin(room, bytes: 100)
            let renewed = Versioned("a", "v|1 renewed", record.body)
            #expect(room.tiers.replace(record, with: renewed))
            let moved = try #require(move(record, in: room))
            #expect(moved.text == "v|1 renewed")
            let later = Versioned("a", "v|1 later", moved.body)
            #expect(room.tiers.replace(moved, with: later))
            #expect(moved.body.finish())
            room.leaveToBackStore()
            #expect(room.heads("a") == ["v|1 later"])
            try room.reopen()
            #expect(room.heads("a") == ["v|1 later"] && room.records("a").first?.body.pieces() == pattern(0..<100))
        }
    }

    // MARK: readers

    @Test(arguments: Engine.allCases) func `who waits in memory is woken, and goes on where it stands`(
        _ engine: Engine
    ) throws {
        try with(engine) { room in
            let record = try begin(room, bytes: 1000)
            let reader = try #require(record.body.attach(at: 1000))
            let wake = CountingSemaphore()
            _ = try #require(record.body.await(beyond: 1000, Wake { wake.signal() }))
            let moved = try #require(move(record, in: room))
            #expect(wake.wait(timeout: .seconds(60)))
            #expect(record.body.bytes() == pattern(0..<1000), "its pages stay")
            let next = try #require(record.body.continuation)
            let other = try #require(next.body.attach(at: 1000))
            record.body.detach(reader)
            #expect(next.body.await(beyond: 1000, Wake { wake.signal() }) != nil)
            #expect(moved.body.append(pattern(1000..<2000)) == .appended)
            #expect(wake.wait(timeout: .seconds(60)) && read(next.body, from: 1000) == pattern(1000..<2000))
            next.body.detach(other)
            #expect(moved.body.finish())
        }
    }

    // MARK: the back store takes no more

    private let window = 256 << 10

    @Test func `a window frees nothing that somebody reads, and reads the rest from the back store`() throws {
        try with(.disk) { room in
            let record = try begin(room, bytes: 1000)
            let behind = try #require(record.body.attach(at: 0))
            let moved = try #require(move(record, in: room))
            let body = moved.body
            #expect(body.append(pattern(1000..<2 << 20)) == .appended && room.backStore.flush())
            let slow = try #require(body.attach(at: 100_000))
            let fast = try #require(body.attach(at: 2 << 20))
            body.abandonStorage(window: window)
            #expect(body.isWindowed && body.readerCount == 3)
            #expect(room.tiers.memory.find("a", under: storageKey("a")).isEmpty)
            // What is on the back store needs no memory: the window begins behind it.
            #expect(!body.writerShouldPause)
            #expect(body.append(pattern(2 << 20..<2 << 20 + 2 * window)) == .appended)
            body.advance(fast, to: body.length)
            #expect(body.writerShouldPause, "two are behind")
            #expect(read(body, from: 100_000) == pattern(100_000..<body.length))
            body.advance(slow, to: body.length)
            #expect(body.writerShouldPause, "one is behind that reads the body in memory")
            let wake = CountingSemaphore()
            body.awaitRoom(Wake { wake.signal() })
            let next = try #require(body.attach(at: 1000))
            record.body.detach(behind)
            #expect(read(body, from: 1000) == pattern(1000..<body.length))
            body.advance(next, to: body.length)
            #expect(wake.wait(timeout: .seconds(60)) && !body.writerShouldPause)
            #expect(body.attach(at: 0) == nil, "the bytes behind the slowest are freed")
            #expect(body.append(pattern(body.length..<3 << 20)) == .appended)
            for reader in [slow, fast, next] { body.detach(reader) }
            #expect(body.finish() && !body.hasReaders)
            #expect(room.backStore.flush() && room.backStore.statistics.objectCount == 0)
        }
    }

    @Test func `a disk that fails is left, at any block`() throws {
        for count in [0, 1, 5, 40] {
            try with(.disk) { room in
                let moved = try #require(move(try begin(room, bytes: 100), in: room))
                let body = moved.body
                let reader = try #require(body.attach(at: 0))
                var length = 100
                func grow(_ blocks: Int) {
                    for _ in 0..<blocks {
                        #expect(body.append(pattern(length..<length + Body.blockBytes)) == .appended)
                        length += Body.blockBytes
                    }
                }
                grow(count)
                _ = room.backStore.flush()
                room.calls.fill(true)
                grow(2)
                _ = room.backStore.flush()
                #expect(body.isLeftByDisk)
                #expect(read(body) == pattern(0..<length))
                body.abandonStorage(window: window)
                grow(3)
                #expect(read(body) == pattern(0..<length))
                body.advance(reader, to: length)
                body.detach(reader)
                room.calls.fill(false)
                #expect(body.finish())
            }
        }
    }

    @Test func `a disk that fails at the end takes the response out of memory`() throws {
        try with(.disk) { room in
            let moved = try #require(move(try begin(room, bytes: 1 << 20), in: room))
            _ = room.backStore.flush()
            room.calls.fill(true)
            #expect(moved.body.append([1]) == .appended && moved.body.finish())
            _ = room.backStore.flush()
            #expect(room.tiers.memory.find("a", under: storageKey("a")).isEmpty)
            #expect(read(moved.body) == pattern(0..<1 << 20) + [1], "who reads it reads on")
            room.calls.fill(false)
        }
    }

    @Test(arguments: 0..<12, Engine.allCases)
    func `readers on other threads see each byte, whatever becomes of it`(_ seed: UInt64, _ engine: Engine) throws {
        try with(engine) { room in
            let record = try begin(room, bytes: 1000)
            let readers = (0..<4).map { _ in record.body.attach(at: 0) }
            let tiers = room.tiers
            inThreads(5) { [self] index in
                guard index < 4 else { return write(record, to: Self.length, in: tiers, seed) }
                let (count, isEqual) = follow(record, readers[index], piece: index == 0 ? 10_000 : 64 << 10)
                #expect(isEqual && count == Self.length)
            }
        }
    }

    private static let length = 6 << 20

    /// Writes a body that moves at 1 MiB, and that may break off at the end or leave the back store on its way.
    private func write(_ record: Versioned, to length: Int, in tiers: Tiers, _ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var record = record
        while record.body.length < length {
            let start = record.body.length
            if start > 1 << 20, !record.body.isLarge {
                guard let moved = move(record, in: tiers) else {
                    Issue.record("it does not move")
                    return
                }
                record = moved
            }
            if start > 3 << 20, seed % 3 == 0, !record.body.isWindowed { record.body.abandonStorage(window: window) }
            let end = min(length, start + Int.random(in: 1...200_000, using: &random))
            #expect(record.body.append(pattern(start..<end)) == .appended)
            guard record.body.writerShouldPause else { continue }
            let wake = CountingSemaphore()
            record.body.awaitRoom(Wake { wake.signal() })
            #expect(wake.wait(timeout: .seconds(60)))
        }
        if seed % 3 == 1 { record.body.fail() } else { #expect(record.body.finish()) }
    }

    /// Reads to the end, and goes on where the body has moved to.
    private func follow(_ record: StoredRecord, _ reader: ReaderID?, piece: Int) -> (count: Int, isEqual: Bool) {
        var (body, reader) = (record.body, reader)
        var room = [UInt8](repeating: 0, count: 64 << 10)
        var offset = 0
        var isEqual = true
        while true {
            let state = body.state
            let available = body.available(from: offset) - offset
            if available > 0 {
                let bytes: [UInt8]? = unsafe room.withUnsafeMutableBytes { room in
                    guard
                        case .bytes(let bytes) = unsafe body.piece(
                            from: offset, limit: min(available, piece), room: room, waits: true)
                    else { return nil }
                    return unsafe Array(bytes)
                }
                guard let bytes else { break }
                isEqual = isEqual && bytes == pattern(offset..<offset + bytes.count)
                offset += bytes.count
                if let reader { body.advance(reader, to: offset) }
            } else if state == .moved, let next = body.continuation?.body {
                let left = reader
                reader = next.attach(at: offset)
                if let left { body.detach(left) }
                body = next
            } else if state != .growing {
                break
            } else {
                let wake = CountingSemaphore()
                if body.await(beyond: offset, Wake { wake.signal() }) != nil { wake.wait() }
            }
        }
        if let reader { body.detach(reader) }
        return (offset, isEqual)
    }
}
