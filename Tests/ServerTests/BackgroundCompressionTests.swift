import Compression
import EventLoop
import Storage
import Testing

@testable import Server

@Suite("Compressing once, in the background")
struct BackgroundCompressionTests {
    private func compress(_ source: Body, in tier: MemoryTier, level: Int = 6) throws -> Body? {
        let loop = try EventLoop()
        let pool = try BlockingPool(threads: 2, queueMax: 4)
        let result = Locked<Body??>(nil)
        let inbox = loop.inbox
        let loopReference = UnsafeLoop(loop)
        #expect(
            BackgroundCompression.begin(source, in: tier, level: level, on: pool, inbox: inbox) { copy in
                result.withLock { $0 = .some(copy) }
                loopReference.loop.stop()
            })
        run(loop)
        pool.shutdown()
        return try #require(result.withLock { $0 })
    }

    @Test(arguments: [2000, 65_536, 300_000, 5_000_000]) func `the copy is gzip of the whole`(_ length: Int) throws {
        let content = text(length)
        let copy = try #require(try compress(try body(content), in: tier))
        #expect(copy.state == .complete)
        #expect(copy.length < length / 2)
        var (offset, output): (Int, [UInt8]) = (0, [])
        let transcoder = Transcoder(.inflate(InflateBounds()))
        while try transcoder.next(from: copy, offset: &offset, into: &output) == .more {}
        #expect(output == content)
    }

    @Test func `a short copy takes no more room than its bytes`() throws {
        let copy = try #require(try compress(try body(text(100_000)), in: tier))
        #expect(copy.expectedLength == copy.length)
    }

    @Test func `a body that does not get smaller is not kept compressed`() throws {
        #expect(try compress(try body(gzip(text(300_000))), in: tier) == nil)
        #expect(try compress(try body(Array("short".utf8)), in: tier) == nil)
        #expect(try compress(try body([]), in: tier) == nil)
    }

    @Test func `without memory the compression is given up and keeps nothing`() throws {
        let source = try body(text(4_000_000))
        let small = MemoryTier(budget: 300_000, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        #expect(try compress(source, in: small) == nil)
        #expect(small.statistics.usedBytes == 0)
    }

    @Test func `if the pool has no room for the rest, the compression is given up`() throws {
        let loop = try EventLoop()
        let pool = try BlockingPool(threads: 1, queueMax: 1)
        let told = Locked(false)
        let loopReference = UnsafeLoop(loop)
        let source = try body(text(3 << 20))
        let inbox = loop.inbox
        let isBegun = BackgroundCompression.begin(source, in: tier, on: pool, inbox: inbox) { copy in
            #expect(copy == nil)
            told.withLock { $0 = true }
            loopReference.loop.stop()
        }
        #expect(isBegun)
        pool.shutdown()  // the first piece is done, the next one finds nobody
        run(loop)
        #expect(told.withLock { $0 })
    }

    @Test func `a full queue is reported at once`() throws {
        let loop = try EventLoop()
        let pool = try BlockingPool(threads: 1, queueMax: 1)
        let source = try body(text(100_000))
        let inbox = loop.inbox
        pool.shutdown()
        #expect(!BackgroundCompression.begin(source, in: tier, on: pool, inbox: inbox) { _ in })
    }

    @Test func `a record's copy is made once, and kept`() throws {
        let loop = try EventLoop()
        let pool = try BlockingPool(threads: 1, queueMax: 10)
        let content = text(100_000)
        let source = try body(content)
        let copy = CompressedCopy()
        for _ in 0..<20 { #expect(copy.body(of: source, in: tier, on: pool, inbox: loop.inbox) == nil) }
        pool.shutdown()
        // What the one job found comes in before this.
        let loopReference = UnsafeLoop(loop)
        loop.inbox.post { loopReference.loop.stop() }
        run(loop)
        let made = try #require(copy.body(of: source, in: tier, on: pool, inbox: loop.inbox))
        #expect(made.length < content.count / 2)
        #expect(copy.body(of: source, in: tier, on: pool, inbox: loop.inbox) === made)
    }

    @Test func `a compression that was given up is not tried again, but one that found the queue full is`() throws {
        let loop = try EventLoop()
        let pool = try BlockingPool(threads: 1, queueMax: 10)
        let full = try BlockingPool(threads: 1, queueMax: 1)
        full.shutdown()
        let source = try body(gzip(text(100_000)))
        let copy = CompressedCopy()
        #expect(copy.body(of: source, in: tier, on: full, inbox: loop.inbox) == nil)
        #expect(copy.state == .none)
        #expect(copy.body(of: source, in: tier, on: pool, inbox: loop.inbox) == nil)
        #expect(copy.state == .beingMade)
        pool.shutdown()
        let loopReference = UnsafeLoop(loop)
        loop.inbox.post { loopReference.loop.stop() }
        run(loop)
        #expect(copy.state == .givenUp)
    }

    @Test func `a growing body has no copy yet`() throws {
        let loop = try EventLoop()
        let pool = try BlockingPool(threads: 1, queueMax: 10)
        let copy = CompressedCopy()
        #expect(copy.body(of: try body(text(5000), isComplete: false), in: tier, on: pool, inbox: loop.inbox) == nil)
        #expect(copy.state == .none)
        pool.shutdown()
    }
}

/// Until somebody stops it, or something is wrong.
private func run(_ loop: EventLoop) {
    let limit = Timer { loop.stop() }
    loop.timers.schedule(limit, after: .seconds(20))
    loop.run()
    loop.timers.cancel(limit)
}

/// The loop in a closure that runs on its own thread.
private struct UnsafeLoop: @unchecked Sendable {
    let loop: EventLoop
    init(_ loop: EventLoop) { self.loop = loop }
}
