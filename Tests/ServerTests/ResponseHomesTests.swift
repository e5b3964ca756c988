import EventLoop
import Storage
import Synchronization
import Testing

@testable import Server

@Suite("A purge frees responses where they were allocated")
struct ResponseHomesTests {
    /// Tells which thread freed it.
    private final class Traced: StoredRecord, @unchecked Sendable {
        private let freedBy: Locked<[UInt8]>

        init(_ number: Int, _ body: Body, _ freedBy: Locked<[UInt8]>) {
            self.freedBy = freedBy
            let word = UInt64(number) &* 0x9e37_79b9_7f4a_7c15
            super.init(
                key: StorageKey(high: word, low: word.byteSwapped), keyBytes: Array("http://a/\(number)".utf8),
                head: [], body: body)
        }

        deinit { freedBy.withLock { $0.append(ThreadMemory.number) } }
    }

    private let tier = MemoryTier(budget: 16 << 20, shards: 4, objectMax: 1 << 16, variantsPerKeyMax: 1)
    private let freedBy = Locked<[UInt8]>([])

    private func store(_ numbers: Range<Int>) {
        for number in numbers {
            guard let body = tier.makeBody(expectedLength: 0) else { continue }
            #expect(tier.insert(Traced(number, body, freedBy)))
        }
    }

    /// A thread with a loop and a number, as a worker is one. `begin` runs on it first.
    private func worker(_ number: UInt8, begin: @escaping @Sendable () -> Void) throws -> (
        inbox: Inbox, end: () -> Void
    ) {
        let isReady = CountingSemaphore()
        let made = Locked<LoopReference?>(nil)
        let thread = OwnedThread(
            try startThread(name: "worker") {
                ThreadMemory.number = number
                guard let loop = try? EventLoop() else { return isReady.signal() }
                begin()
                made.withLock { $0 = LoopReference(loop: loop) }
                isReady.signal()
                loop.run()
            })
        isReady.wait()
        let inbox = try #require(made.withLock { $0?.loop.inbox })
        return (
            inbox,
            {
                inbox.post { made.withLock { $0.take() }?.loop.stop() }
                thread.join()
            }
        )
    }

    /// The loop of another thread. Only its inbox is used here.
    private struct LoopReference: @unchecked Sendable {
        let loop: EventLoop
    }

    @Test func `each worker frees what it allocated, before the purge homes`() throws {
        let first = try worker(1) { store(0..<700) }
        let second = try worker(2) { store(700..<1000) }
        defer {
            first.end()
            second.end()
        }
        let homes = ResponseHomes([first.inbox, second.inbox])
        let purged = tier.purge(dryRun: false, free: homes.free, where: { _ in true })
        #expect(purged.records == 1000)
        let freedBy = freedBy.withLock { $0 }
        #expect(freedBy.count { $0 == 1 } == 700)
        #expect(freedBy.count { $0 == 2 } == 300)
        #expect(tier.statistics.recordCount == 0)
    }

    @Test func `what a thread allocated that is no worker is freed at once`() throws {
        let first = try worker(1) { store(0..<10) }
        defer { first.end() }
        store(10..<30)
        _ = tier.purge(dryRun: false, free: ResponseHomes([first.inbox]).free, where: { _ in true })
        #expect(freedBy.withLock { $0 }.sorted() == Array(repeating: 0, count: 20) + Array(repeating: 1, count: 10))
    }

    /// As a soft purge does.
    @Test func `each response is visited once, by the worker that allocated it`() throws {
        let first = try worker(1) { store(0..<300) }
        let second = try worker(2) { store(300..<400) }
        defer {
            first.end()
            second.end()
        }
        store(400..<420)
        var lists: [[StoredRecord]] = []
        tier.forEach { lists.append([$0]) }
        let visits = Locked<[UInt8: [[UInt8]]]>([:])
        ResponseHomes([first.inbox, second.inbox]).visit(lists) { record in
            visits.withLock { $0[ThreadMemory.number, default: []].append(record.keyBytes) }
        }
        let counts = visits.withLock { $0.mapValues { Set($0).count } }
        #expect(counts == [0: 20, 1: 300, 2: 100])
        #expect(visits.withLock { $0.values.map(\.count).reduce(0, +) } == 420)
        #expect(tier.statistics.recordCount == 420)
    }

    @Test func `what a worker does not do in time is done by the thread that waits`() throws {
        let mayGoOn = CountingSemaphore()
        let first = try worker(1) { store(0..<500) }
        first.inbox.post { mayGoOn.wait() }
        _ = tier.purge(dryRun: false, free: ResponseHomes([first.inbox]).free, where: { _ in true })
        #expect(freedBy.withLock { $0 } == Array(repeating: 0, count: 500))
        mayGoOn.signal()
        first.end()
    }

    @Test func `a worker that has ended keeps nothing`() throws {
        let first = try worker(1) { store(0..<500) }
        first.end()
        _ = tier.purge(dryRun: false, free: ResponseHomes([first.inbox]).free, where: { _ in true })
        #expect(freedBy.withLock { $0.count } == 500)
        #expect(tier.statistics.recordCount == 0)
    }
}
