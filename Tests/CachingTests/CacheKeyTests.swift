import Caching
import Message
import Testing

@Suite("RFC 9111 §2 Cache keys")
struct CacheKeyTests {
    func key(_ bytes: [UInt8], secret: (UInt64, UInt64) = (1, 2)) -> CacheKey {
        CacheKeyHasher(secret: secret).key(of: bytes.span)
    }

    @Test func `the same bytes under the same secret are the same key`() {
        let bytes = Array("http://a.example/some/path?with=query".utf8)
        #expect(key(bytes) == key(bytes, secret: (1, 2)))
        #expect(key(bytes) != key(bytes, secret: (1, 3)))
        #expect(key(bytes) != key(bytes, secret: (0, 2)))
    }

    @Test func `lengths, zeros and single bits change each half of a key`() {
        var highs: Set<UInt64> = []
        var lows: Set<UInt64> = []
        var count = 0
        func add(_ bytes: [UInt8]) {
            let it = key(bytes)
            highs.insert(it.high)
            lows.insert(it.low)
            count += 1
        }
        for length in 0...80 { add([UInt8](repeating: 0, count: length)) }
        for length in 1...80 {
            for bit in 0..<length * 8 {
                var bytes = [UInt8](repeating: 0, count: length)
                bytes[bit / 8] = 1 << UInt8(bit % 8)
                add(bytes)
            }
        }
        #expect(highs.count == count)
        #expect(lows.count == count)
    }

    @Test func `one bit changes half of the key`() {
        var random = Seeded(7)
        var changed = 0
        let rounds = 2000
        for _ in 0..<rounds {
            var bytes = (0..<Int.random(in: 1...60, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            let before = key(bytes)
            bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            let after = key(bytes)
            changed += (before.high ^ after.high).nonzeroBitCount + (before.low ^ after.low).nonzeroBitCount
        }
        let average = changed / rounds
        #expect((60...68).contains(average), "\(average) of 128 bits")
    }

    @Test func `a key found in a set is found again`() {
        let keys = Set((0..<1000).map { key(Array("/\($0)".utf8)) })
        #expect(keys.count == 1000)
        #expect(keys.contains(key(Array("/7".utf8))))
    }
}
