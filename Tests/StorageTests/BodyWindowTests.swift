import Storage
import Testing

@Suite("Body: window mode")
struct BodyWindowTests {
    private static let page = 256 << 10
    let tier = MemoryTier(budget: 3 << 20, shards: 2, objectMax: 2 << 20, variantsPerKeyMax: 1)
    let counter = Counter()

    /// A record whose body of unknown length has outgrown what may be stored, with `count` readers at the start.
    private func outgrown(readers count: Int) throws -> (body: Body, readers: [ReaderID]) {
        let body = try #require(tier.makeBody(expectedLength: nil))
        #expect(tier.insert(TestRecord("stream", body: body)))
        let readers = (0..<count).compactMap { _ in body.attach(at: 0) }
        #expect(readers.count == count)
        #expect(body.append(pattern(0..<2 << 20)) == .appended)
        #expect(body.append([1]) == .tooLarge)
        return (body, readers)
    }

    @Test func `a windowed record leaves the cache, and bytes that every reader has passed are freed`() throws {
        let (body, readers) = try outgrown(readers: 2)
        #expect(tier.lookup("stream").count == 1)
        body.abandonStorage(window: 4 * Self.page)
        #expect(tier.lookup("stream").isEmpty)
        #expect(!tier.insert(TestRecord("stream", body: body)))
        let used = tier.statistics.usedBytes
        body.advance(readers[0], to: 2 << 20)
        #expect(tier.statistics.usedBytes == used)
        #expect(body.bytes(from: 0) == pattern(0..<2 << 20))
        body.advance(readers[1], to: 1 << 20)
        #expect(tier.statistics.usedBytes < used - 3 * Self.page)
        #expect(body.bytes(from: 1 << 20) == pattern(1 << 20..<2 << 20))
        #expect(body.attach(at: 0) == nil)
        #expect(body.attach(at: 1 << 20) != nil)
    }

    @Test func `the writer pauses one window ahead, and is woken when there is space`() throws {
        let (body, readers) = try outgrown(readers: 1)
        #expect(!body.writerShouldPause)
        body.abandonStorage(window: 2 * Self.page)
        #expect(body.writerShouldPause)
        body.awaitRoom(counter.wake)
        body.advance(readers[0], to: 1 << 20)
        #expect(counter.count == 0)
        body.advance(readers[0], to: (2 << 20) - 2 * Self.page + 1)
        #expect(counter.count == 1)
        #expect(!body.writerShouldPause)
        body.awaitRoom(counter.wake)
        #expect(counter.count == 2)
    }

    @Test func `if a slow reader leaves, the writer continues`() throws {
        let (body, readers) = try outgrown(readers: 2)
        body.abandonStorage(window: Self.page)
        body.advance(readers[0], to: 2 << 20)
        body.awaitRoom(counter.wake)
        #expect(counter.count == 0)
        body.detach(readers[1])
        #expect(counter.count == 1)
        body.detach(readers[0])
        #expect(!body.writerShouldPause)
    }

    @Test func `any number of bytes passes through a few pages`() throws {
        let (body, readers) = try outgrown(readers: 1)
        body.abandonStorage(window: 2 * Self.page)
        var offset = 2 << 20
        var most = 0
        while offset < 40 << 20 {
            body.advance(readers[0], to: offset - 1000)
            #expect(body.bytes(from: offset - 1000) == pattern(offset - 1000..<offset))
            #expect(!body.writerShouldPause)
            #expect(body.append(pattern(offset..<offset + 100_000)) == .appended)
            offset += 100_000
            most = max(most, tier.statistics.usedBytes)
        }
        #expect(body.finish())
        #expect(body.length == offset)
        #expect(most < (2 << 20) + 4 * Self.page)
        body.detach(readers[0])
        #expect(tier.statistics.usedBytes < 2 * Self.page)
    }

    @Test func `a body in window mode continues although others use the whole budget`() throws {
        let tier = MemoryTier(budget: 100_000, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        let holder = try #require(tier.makeBody(expectedLength: 90_000))
        #expect(holder.append([1]) == .appended)
        let body = try #require(tier.makeBody(expectedLength: 50_000))
        #expect(body.append(pattern(0..<50_000)) == .full)
        body.abandonStorage(window: Self.page)
        #expect(body.append(pattern(0..<50_000)) == .appended)
        #expect(body.finish())
        #expect(tier.statistics.overdrawn == 1)
        #expect(holder.length == 1)
    }

    @Test func `bytes that were freed or overdrawn are released`() throws {
        do {
            let (body, readers) = try outgrown(readers: 1)
            body.abandonStorage(window: Self.page)
            body.advance(readers[0], to: 1 << 20)
            body.fail()
        }
        #expect(tier.statistics.usedBytes == 0)
    }
}
