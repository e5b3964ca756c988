import Storage
import Testing

@Suite("Partial body: ranges that are present (RFC 9111 §3.3)")
struct SparseBodyTests {
    let tier = MemoryTier(budget: 16 << 20, shards: 4, objectMax: 4 << 20, variantsPerKeyMax: 4)
    private static let length = 300_000

    private func body(_ length: Int = length) throws -> Body { try #require(tier.makeSparseBody(length: length)) }

    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let filled: [Range<Int>]
        let extents: [Range<Int>]
        /// Contiguous from the first byte on.
        var prefix = 0

        init(_ description: String, _ filled: [Range<Int>], _ extents: [Range<Int>], prefix: Int = 0) {
            testDescription = description
            self.filled = filled
            self.extents = extents
            self.prefix = prefix
        }
    }

    static let rows = [
        Row("nothing", [], []),
        Row("one byte", [7..<8], [7..<8]),
        Row("apart", [10..<20, 30..<40], [10..<20, 30..<40]),
        Row("apart, the later first", [30..<40, 10..<20], [10..<20, 30..<40]),
        Row("a hole of one byte", [10..<20, 21..<40], [10..<20, 21..<40]),
        Row("adjacent", [10..<20, 20..<40], [10..<40]),
        Row("adjacent, the later first", [20..<40, 10..<20], [10..<40]),
        Row("overlapping", [10..<20, 15..<40], [10..<40]),
        Row("inside", [10..<40, 20..<30], [10..<40]),
        Row("around", [20..<30, 10..<40], [10..<40]),
        Row("the hole between", [10..<20, 30..<40, 20..<30], [10..<40]),
        Row("over several holes", [10..<20, 30..<40, 50..<60, 5..<55], [5..<60]),
        Row("from the first byte", [0..<20], [0..<20], prefix: 20),
        Row("joined to the first byte", [20..<40, 0..<20], [0..<40], prefix: 40),
        Row("over pages", [65_000..<200_000], [65_000..<200_000]),
        Row("to the end", [299_999..<300_000], [299_999..<300_000]),
    ]

    @Test func `what an indivisible fill lacks at its end is not fetched by itself`() throws {
        for ends in [{ (fill: Fill) in fill.abandon() }, { (fill: Fill) in _ = fill.finish() }] {
            let body = try #require(tier.makeSparseBody(length: 100))
            let fill = try body.hole(at: 0)
            fill.isIndivisible = true
            #expect(fill.append(pattern(0..<90)) == .appended)
            #expect(body.find(at: 90) == .awaited)
            ends(fill)
            #expect(body.state == .failed && body.find(at: 90) == .unavailable && body.find(at: 10) == .available(90))
        }
        let body = try #require(tier.makeSparseBody(length: 100))
        let fill = try body.hole(at: 0)
        fill.isIndivisible = true
        #expect(fill.append(pattern(0..<100)) == .appended)
        #expect(fill.finish() && body.state == .complete)
    }

    @Test(arguments: rows) func `ranges are combined to the byte`(_ row: Row) throws {
        let body = try body()
        for range in row.filled { #expect(body.fill(range)) }
        #expect(body.extents == row.extents)
        #expect(body.length == row.prefix)
        #expect(body.state == .partial)
        for extent in row.extents {
            #expect(body.bytes(from: extent.lowerBound) == pattern(extent))
            #expect(body.available(from: extent.lowerBound) == extent.upperBound)
            #expect(body.available(from: extent.upperBound - 1) == extent.upperBound)
            #expect(body.available(from: extent.upperBound) == extent.upperBound)
            #expect(body.firstVectorLength(from: extent.upperBound, limit: .max) == nil)
        }
    }

    @Test func `filling the last hole completes the body`() throws {
        let body = try body()
        #expect(body.fill(100_000..<Self.length))
        #expect(body.fill(0..<99_999))
        #expect(body.state == .partial)
        #expect(body.find(at: 99_999) == .missing(99_999..<100_000))
        #expect(body.fill(99_999..<100_000))
        #expect(body.state == .complete)
        #expect(body.length == Self.length)
        #expect(body.extents == [0..<Self.length])
        #expect(body.bytes() == pattern(0..<Self.length))
        #expect(body.find(at: 0) == .available(Self.length))
        #expect(body.find(at: Self.length) == .unavailable)
    }

    @Test func `a claim ends at the next bytes, the next claim, the limit, the end`() throws {
        let body = try body()
        #expect(body.fill(1000..<2000))
        let claimed = try body.hole(at: 5000, limit: 6000)
        #expect(body.find(at: 0) == .missing(0..<1000))
        #expect(body.find(at: 0, limit: 500) == .missing(0..<500))
        #expect(body.find(at: 999) == .missing(999..<1000))
        #expect(body.find(at: 1000) == .available(2000))
        #expect(body.find(at: 1999) == .available(2000))
        #expect(body.find(at: 2000) == .missing(2000..<5000))
        #expect(body.find(at: 5000) == .awaited)
        #expect(body.find(at: 5999) == .awaited)
        #expect(body.find(at: 6000) == .missing(6000..<Self.length))
        #expect(body.find(at: Self.length - 1) == .missing(Self.length - 1..<Self.length))
        #expect(body.find(at: Self.length) == .unavailable)
        #expect(claimed.append(pattern(5000..<5100)) == .appended)
        #expect(body.find(at: 5000) == .available(5100))
        #expect(body.find(at: 5100) == .awaited)
    }

    @Test func `an abandoned fill leaves its bytes and frees the rest of its hole`() throws {
        let body = try body()
        let fill = try body.hole(at: 10, limit: 100)
        #expect(fill.append(pattern(10..<30)) == .appended)
        fill.abandon()
        fill.abandon()
        #expect(body.extents == [10..<30])
        #expect(body.find(at: 30) == .missing(30..<Self.length))
    }

    @Test func `a fill whose last reference is gone is abandoned`() throws {
        let body = try body()
        do { _ = try body.hole(at: 0) }
        #expect(body.find(at: 0) == .missing(0..<Self.length))
        #expect(body.extents == [])
    }

    @Test func `a fill that ends early says so and frees the rest of its hole`() throws {
        let body = try body()
        let fill = try body.hole(at: 0, limit: 100)
        #expect(fill.append(pattern(0..<60)) == .appended)
        #expect(!fill.finish())
        #expect(body.find(at: 60) == .missing(60..<Self.length))
    }

    @Test func `a fill can end its hole early if the origin sends less`() throws {
        let body = try body()
        let fill = try body.hole(at: 0, limit: 1000)
        #expect(fill.append(pattern(0..<10)) == .appended)
        fill.shrink(to: 2000)
        #expect(fill.range == 0..<1000)
        fill.shrink(to: 20)
        #expect(fill.range == 0..<20)
        #expect(body.find(at: 20) == .missing(20..<Self.length))
        #expect(fill.append(pattern(10..<21)) == .tooLarge)
        #expect(fill.append(pattern(10..<20)) == .appended)
        #expect(fill.finish())
        let none = try body.hole(at: 500, limit: 600)
        none.shrink(to: 100)
        #expect(none.range == 500..<500)
        #expect(none.finish())
        #expect(body.extents == [0..<20])
    }

    @Test func `bytes beyond the hole are refused, and nothing is appended`() throws {
        let body = try body()
        let fill = try body.hole(at: 100, limit: 110)
        #expect(fill.append(pattern(100..<111)) == .tooLarge)
        #expect(body.extents == [])
        #expect(fill.read(pattern(100..<104), hint: 1000) == 10)
        #expect(fill.read(pattern(104..<110), hint: 1000) == 6)
        #expect(fill.read([1], hint: 1000) == nil)
        #expect(fill.finish())
    }

    @Test func `memory to read into ends with the page and with the hole`() throws {
        let body = try body()
        let fill = try body.hole(at: 65_530, limit: 65_600)
        #expect(fill.read(pattern(65_530..<65_600), hint: 1000) == 6)
        #expect(fill.read(pattern(65_536..<65_600), hint: 1000) == 64)
        #expect(body.bytes(from: 65_530) == pattern(65_530..<65_600))
    }

    @Test func `two fills share a page`() throws {
        let body = try body()
        let left = try body.hole(at: 0, limit: 100)
        let right = try body.hole(at: 100, limit: 200)
        for step in 0..<10 {
            #expect(right.append(pattern(100 + step * 10..<110 + step * 10)) == .appended)
            #expect(left.append(pattern(step * 10..<step * 10 + 10)) == .appended)
        }
        #expect(body.extents == [0..<200])
        #expect(body.bytes() == pattern(0..<200))
    }

    @Test(arguments: [(-1, false), (0, true), (1, true), (1 << 40, true), (1 << 40 + 1, false), (.max, false)])
    func `the length of a partial body has a limit`(_ length: Int, isPossible: Bool) {
        #expect((tier.makeSparseBody(length: length) != nil) == isPossible)
    }

    @Test func `an empty partial body is complete`() throws {
        #expect(try body(0).state == .complete)
    }

    @Test func `the number of pieces is bounded, and further claims are refused`() throws {
        let body = try body()
        var offset = 0
        while case .missing(let fill) = body.claim(at: offset, limit: offset + 1) {
            #expect(fill.complete())
            offset += 2
        }
        #expect(body.extents.count == 1023)
        #expect(body.find(at: offset) == .unavailable)
        #expect(body.find(at: 0) == .available(1))
    }

    @Test func `a claim counts the piece that its fill will publish`() throws {
        let body = try body()
        var fills: [Fill] = []
        while case .missing(let fill) = body.claim(at: fills.count * 3, limit: fills.count * 3 + 2) {
            fills.append(fill)
        }
        #expect(fills.count == 512)
        for fill in fills { #expect(fill.append(pattern(fill.position..<fill.position + 1)) == .appended) }
        #expect(body.extents.count == 512)
    }

    @Test func `readers can attach to a partial body, which has no effect`() throws {
        let body = try body()
        let reader = try #require(body.attach(at: 1000))
        #expect(body.readerCount == 0)
        body.advance(reader, to: 2000)
        body.detach(reader)
        #expect(body.attach(at: 0) != nil)
    }
}
