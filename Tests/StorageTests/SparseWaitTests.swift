import Storage
import Testing

@Suite("Partial body: waiting for a hole to be filled")
struct SparseWaitTests {
    let tier = MemoryTier(budget: 8 << 20, shards: 1, objectMax: 4 << 20, variantsPerKeyMax: 1)
    let counter = Counter()
    let body: Body

    init() throws { body = try #require(tier.makeSparseBody(length: 1000)) }

    @Test func `a wait is woken once, by the byte that it waits for`() throws {
        let fill = try body.hole(at: 100, limit: 200)
        #expect(body.await(beyond: 150, counter.wake) != nil)
        #expect(fill.append(pattern(100..<150)) == .appended)
        #expect(counter.count == 0)
        #expect(fill.append(pattern(150..<151)) == .appended)
        #expect(counter.count == 1)
        #expect(fill.append(pattern(151..<200)) == .appended)
        #expect(counter.count == 1)
    }

    @Test func `bytes at other places wake nobody`() throws {
        let fill = try body.hole(at: 100, limit: 200)
        #expect(body.await(beyond: 100, counter.wake) != nil)
        #expect(body.fill(500..<600))
        #expect(body.fill(0..<100))
        #expect(counter.count == 0)
        fill.abandon()
        #expect(counter.count == 1)
    }

    @Test func `bytes that are present, or that nobody fetches, need no wait`() throws {
        #expect(body.fill(100..<200))
        #expect(body.await(beyond: 100, counter.wake) == nil)
        #expect(body.await(beyond: 199, counter.wake) == nil)
        #expect(body.await(beyond: 200, counter.wake) == nil)
        #expect(body.await(beyond: 0, counter.wake) == nil)
        #expect(body.await(beyond: 1000, counter.wake) == nil)
        #expect(counter.count == 0)
    }

    @Test(arguments: ["abandon", "finish", "shrink", "forget"])
    func `abandoning a hole wakes those who wait for it`(_ how: String) throws {
        var fill: Fill? = try body.hole(at: 100, limit: 200)
        #expect(fill?.append(pattern(100..<110)) == .appended)
        for offset in [110, 150, 199] { #expect(body.await(beyond: offset, counter.wake) != nil) }
        switch how {
        case "abandon": fill?.abandon()
        case "finish": #expect(fill?.finish() == false)
        case "shrink": fill?.shrink(to: 0)
        default: fill = nil
        }
        #expect(counter.count == 3)
        #expect(body.find(at: 110) == .missing(110..<1000))
    }

    @Test func `shrinking a hole wakes only those who wait behind its new end`() throws {
        let fill = try body.hole(at: 100, limit: 200)
        #expect(body.await(beyond: 149, counter.wake) != nil)
        #expect(body.await(beyond: 150, counter.wake) != nil)
        fill.shrink(to: 150)
        #expect(counter.count == 1)
        #expect(fill.complete())
        #expect(counter.count == 2)
    }

    @Test func `the last byte wakes readers of a body that is complete by then`() throws {
        let fill = try body.hole(at: 0)
        let body = body
        let counter = counter
        #expect(body.await(beyond: 999, Wake { if body.state == .complete { counter.wake() } }) != nil)
        #expect(fill.complete())
        #expect(counter.count == 1)
    }

    @Test func `a cancelled wait is not woken`() throws {
        let fill = try body.hole(at: 0)
        let ticket = try #require(body.await(beyond: 0, counter.wake))
        body.cancel(ticket)
        fill.abandon()
        #expect(counter.count == 0)
    }

    @Test func `the first reader that is woken claims the rest, and the others wait for it`() throws {
        let fill = try body.hole(at: 0)
        let body = body
        let found = Found()
        for _ in 0..<3 { #expect(body.await(beyond: 0, Wake { found.look(body) }) != nil) }
        fill.abandon()
        #expect(found.claimed == 1)
        #expect(found.awaited == 2)
    }

    /// What those woken one after another on this thread find.
    private final class Found: @unchecked Sendable {
        private var fills: [Fill] = []
        private(set) var awaited = 0
        var claimed: Int { fills.count }
        func look(_ body: Body) {
            switch body.claim(at: 0, limit: .max) {
            case .missing(let fill): fills.append(fill)
            case .awaited: awaited += 1
            case .available, .unavailable: break
            }
        }
    }
}
