import Storage
import Testing

@Suite("Partial body: what is kept of a body that broke off (RFC 9111 §3.3)")
struct PartialBodyTests {
    let tier = MemoryTier(budget: 8 << 20, shards: 1, objectMax: 4 << 20, variantsPerKeyMax: 4)
    let counter = Counter()

    /// A growing body that broke off after some bytes.
    private func broken(at end: Int, of length: Int) throws -> Body {
        let body = try #require(tier.makeBody(expectedLength: length))
        #expect(body.append(pattern(0..<end)) == .appended)
        return body
    }

    @Test(arguments: [0, 1, 262_144, 300_000, 599_999])
    func `present bytes stay, the rest becomes a hole, and filling it completes the body`(_ end: Int) throws {
        let body = try broken(at: end, of: 600_000)
        #expect(body.makePartial())
        #expect(body.state == .partial)
        #expect(body.length == end)
        #expect(body.extents == (end > 0 ? [0..<end] : []))
        #expect(body.bytes() == pattern(0..<end))
        #expect(body.find(at: end) == .missing(end..<600_000))
        #expect(body.fill(0..<600_000))
        #expect(body.state == .complete)
        #expect(body.bytes() == pattern(0..<600_000))
    }

    @Test func `readers that wait are woken when the body becomes partial`() throws {
        let body = try broken(at: 10, of: 100)
        let reader = try #require(body.attach(at: 0))
        #expect(body.find(at: 10) == .awaited)
        #expect(body.find(at: 9) == .available(10))
        #expect(body.await(beyond: 10, counter.wake) != nil)
        #expect(body.await(beyond: 50, counter.wake) != nil)
        #expect(body.makePartial())
        #expect(counter.count == 2)
        body.advance(reader, to: 10)
        body.detach(reader)
        #expect(body.bytes() == pattern(0..<10))
    }

    @Test func `a body with all bytes becomes complete, not partial`() throws {
        let body = try broken(at: 100, of: 100)
        #expect(body.makePartial())
        #expect(body.state == .complete)
    }

    @Test func `a body of unknown length, a window, or a body that has ended does not become partial`() throws {
        let unknown = try #require(tier.makeBody(expectedLength: nil))
        #expect(!unknown.makePartial())
        let windowed = try broken(at: 10, of: 100)
        windowed.abandonStorage(window: 1)
        #expect(!windowed.makePartial())
        let failed = try broken(at: 10, of: 100)
        failed.fail()
        #expect(!failed.makePartial())
        #expect(failed.find(at: 10) == .unavailable)
        #expect(unknown.state == .growing && windowed.state == .growing && failed.state == .failed)
        let partial = try broken(at: 10, of: 100)
        #expect(partial.makePartial())
        #expect(!partial.makePartial())
        partial.fail()
        #expect(partial.state == .partial)
    }

    @Test func `if the budget has no space for the map of pieces, the body stays as it was`() throws {
        let body = try broken(at: 10, of: 100)
        tier.setBudget(1)
        #expect(!body.makePartial())
        #expect(body.state == .growing)
    }

    @Test func `a writer may pause as long as it likes`() throws {
        for length in [nil, 20] {
            let body = try #require(tier.makeBody(expectedLength: length))
            #expect(tier.insert(TestRecord("a", body: body)))
            #expect(body.append(pattern(0..<10)) == .appended)
            for index in 0..<50 { #expect(tier.store("k\(index)", bytes: 400_000) != nil) }
            #expect(tier.lookup("a").first?.body === body)
            #expect(body.append(pattern(10..<20)) == .appended)
            #expect(body.finish())
            #expect(body.bytes() == pattern(0..<20))
            tier.removeAll()
        }
    }
}
