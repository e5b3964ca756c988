import Storage
import Testing

@Suite("Body: waiting for more")
struct BodyWaitTests {
    let tier = MemoryTier(budget: 8 << 20, shards: 1, objectMax: 4 << 20, variantsPerKeyMax: 1)
    let counter = Counter()

    private func body() throws -> Body { try #require(tier.makeBody(expectedLength: nil)) }

    @Test func `a wait is woken once, by the first bytes behind its offset`() throws {
        let body = try body()
        #expect(body.await(beyond: 0, counter.wake) != nil)
        #expect(counter.count == 0)
        #expect(body.append([1]) == .appended)
        #expect(counter.count == 1)
        #expect(body.append([2]) == .appended)
        #expect(counter.count == 1)
    }

    @Test func `a wait for a later offset is not woken early`() throws {
        let body = try body()
        #expect(body.await(beyond: 2, counter.wake) != nil)
        #expect(body.append([1, 2]) == .appended)
        #expect(counter.count == 0)
        #expect(body.append([3]) == .appended)
        #expect(counter.count == 1)
    }

    @Test func `bytes that are present need no wait`() throws {
        let body = try body()
        #expect(body.append([1, 2]) == .appended)
        #expect(body.await(beyond: 1, counter.wake) == nil)
        #expect(body.await(beyond: 2, counter.wake) != nil)
        #expect(body.finish())
        #expect(counter.count == 1)
        #expect(body.await(beyond: 2, counter.wake) == nil)
    }

    @Test(arguments: [true, false]) func `the end wakes everybody`(_ isWhole: Bool) throws {
        let body = try body()
        for offset in [0, 5, 1000] { #expect(body.await(beyond: offset, counter.wake) != nil) }
        if isWhole { #expect(body.finish()) } else { body.fail() }
        #expect(counter.count == 3)
        #expect(body.await(beyond: 0, counter.wake) == nil)
    }

    @Test func `bytes that were committed in place wake readers, too`() throws {
        let body = try body()
        #expect(body.await(beyond: 0, counter.wake) != nil)
        #expect(body.read([1, 2, 3], hint: 100) == 100)
        #expect(counter.count == 1)
    }

    @Test func `a cancelled wait is not woken`() throws {
        let body = try body()
        let ticket = try #require(body.await(beyond: 0, counter.wake))
        #expect(body.await(beyond: 0, counter.wake) != nil)
        body.cancel(ticket)
        body.cancel(ticket)
        #expect(body.append([1]) == .appended)
        #expect(counter.count == 1)
    }

    @Test func `a woken reader may wait again from within the wake-up`() throws {
        let body = try body()
        let counter = counter
        let again = Wake { _ = body.await(beyond: 1, counter.wake) }
        #expect(body.await(beyond: 0, again) != nil)
        #expect(body.append([1]) == .appended)
        #expect(counter.count == 0)
        #expect(body.append([2]) == .appended)
        #expect(counter.count == 1)
    }
}
