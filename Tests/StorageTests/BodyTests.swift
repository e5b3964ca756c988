import Storage
import Testing

@Suite("Body: one writer, many readers")
struct BodyTests {
    let tier = MemoryTier(budget: 8 << 20, shards: 4, objectMax: 4 << 20, variantsPerKeyMax: 4)

    private static let lengths = [0, 1, 63, 64, 4096, 4097, 262_144, 262_145, 1_000_000, 3_000_000]

    @Test(arguments: lengths, [true, false])
    func `a reader gets the bytes that were written, however they were cut`(_ length: Int, isKnown: Bool) throws {
        let body = try #require(tier.makeBody(expectedLength: isKnown ? length : nil))
        var generator = SeededGenerator(seed: UInt64(length))
        var offset = 0
        while offset < length {
            let count = min(length - offset, Int.random(in: 1...70_000, using: &generator))
            #expect(body.append(pattern(offset..<offset + count)) == .appended)
            offset += count
            #expect(body.length == offset)
        }
        #expect(body.state == .growing)
        #expect(body.finish())
        #expect(body.state == .complete)
        #expect(body.bytes() == pattern(0..<length))
        #expect(body.bytes(from: length / 3, vectorCount: 1) == pattern(length / 3..<length))
    }

    @Test func `a page has the first bytes, or has not all of them`() throws {
        func firstBytes(_ body: Body, _ count: Int) -> [UInt8]? {
            unsafe body.firstBytes(count).map { unsafe Array($0) }
        }
        for length in Self.lengths {
            for expected in [length, nil] {
                let body = try #require(tier.makeBody(expectedLength: expected))
                #expect(body.append(pattern(0..<length)) == .appended)
                #expect(body.finish())
                for count in [0, 1, 64, 65, 4096, 4097, length] where count <= length {
                    if let bytes = firstBytes(body, count) { #expect(bytes == pattern(0..<count)) }
                }
                if expected != nil, 1...262_144 ~= length { #expect(firstBytes(body, length) != nil) }
                if length > 262_144 { #expect(firstBytes(body, length) == nil) }
            }
        }
    }

    @Test func `an empty body takes no page`() throws {
        let before = tier.statistics.usedBytes
        let body = try #require(tier.makeBody(expectedLength: 0))
        #expect(body.finish())
        #expect(tier.statistics.usedBytes - before < 400)
    }

    @Test func `memory to read into ends with the page and with the body`() throws {
        let body = try #require(tier.makeBody(expectedLength: 262_144 + 100))
        #expect(body.append(pattern(0..<262_140)) == .appended)
        #expect(body.read(pattern(262_140..<262_240), hint: 1000) == 4)
        #expect(body.read(pattern(262_144..<262_204), hint: 1000) == 100)
        #expect(body.read(pattern(262_204..<262_244), hint: 1000) == 40)
        #expect(body.read([1], hint: 1000) == nil)
        #expect(body.finish())
        #expect(body.bytes() == pattern(0..<262_244))
    }

    @Test func `the hint is never exceeded`() throws {
        let body = try #require(tier.makeBody(expectedLength: nil))
        #expect(body.read([], hint: 10) == 10)
        #expect(body.length == 0)
    }

    @Test func `a body that ends early fails`() throws {
        let body = try #require(tier.makeBody(expectedLength: 10))
        #expect(body.append([1, 2, 3]) == .appended)
        #expect(!body.finish())
        #expect(body.state == .failed)
        body.fail()
        #expect(body.bytes() == [1, 2, 3])
    }

    @Test func `bytes beyond the promised length are refused, and nothing is appended`() throws {
        let body = try #require(tier.makeBody(expectedLength: 3))
        #expect(body.append([1, 2, 3, 4]) == .tooLarge)
        #expect(body.length == 0)
        #expect(body.append([1, 2, 3]) == .appended)
    }

    @Test func `the limit of a body also bounds bodies of unknown length`() throws {
        #expect(tier.makeBody(expectedLength: (4 << 20) + 1) == nil)
        #expect(tier.makeBody(expectedLength: 4 << 20) != nil)
        #expect(tier.makeBody(expectedLength: -1) == nil)
        let body = try #require(tier.makeBody(expectedLength: nil))
        let megabyte = [UInt8](repeating: 7, count: 1 << 20)
        for _ in 0..<4 { #expect(body.append(megabyte) == .appended) }
        #expect(body.append([1]) == .tooLarge)
        #expect(body.read([1], hint: 1) == nil)
    }

    @Test func `if the budget has no space, appending says full and earlier bytes stay`() throws {
        let tier = MemoryTier(budget: 64 << 10, shards: 1, objectMax: 1 << 20, variantsPerKeyMax: 1)
        let body = try #require(tier.makeBody(expectedLength: nil))
        #expect(body.append(pattern(0..<28 << 10)) == .appended)
        #expect(body.append(pattern(28 << 10..<61 << 10)) == .full)
        #expect(body.length == 28 << 10)
        #expect(body.bytes() == pattern(0..<28 << 10))
        #expect(tier.statistics.refused == 1)
        #expect(tier.statistics.usedBytes <= 64 << 10)
    }

    @Test func `a limit bounds the bytes that a reader gets`() throws {
        let body = try #require(tier.makeBody(expectedLength: 1000))
        #expect(body.append(pattern(0..<1000)) == .appended)
        #expect(body.firstVectorLength(from: 10, limit: 20) == 20)
        #expect(body.firstVectorLength(from: 990, limit: 20) == 10)
        #expect(body.firstVectorLength(from: 1000, limit: 20) == nil)
        #expect(body.firstVectorLength(from: 2000, limit: 20) == nil)
    }
}
