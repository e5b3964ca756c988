import Storage
import Testing

/// The bench's workload at a tenth of its scale: 10,000 objects of 1 KiB to 256 KiB, Zipf(0.9), memory for a tenth of
/// the bytes. Model and seed are fixed, so the ratios are too.
@Suite("S3-FIFO: hit ratio", .serialized)
struct HitRatioTests {
    private static let objects = 10_000
    private static let budget = (256 << 20) / 10
    private static let requests: [Int] = zipf(count: 50_000, seed: 1)

    @Test func `S3-FIFO gets more hits than LRU`() {
        let measured = Self.s3FIFO()
        let lru = Self.lru()
        #expect(measured >= 0.64, "S3-FIFO \(measured), LRU \(lru)")
        #expect(measured >= lru + 0.09, "S3-FIFO \(measured), LRU \(lru)")
    }

    /// Share of the last 60 % of the requests that were hits.
    private static func s3FIFO() -> Double {
        let tier = MemoryTier(budget: budget, shards: 16, objectMax: 1 << 20, variantsPerKeyMax: 1)
        return ratio { object in
            if let record = tier.lookup("\(object)").first {
                tier.touch(record)
                return true
            }
            guard let body = tier.makeBody(expectedLength: size(object)) else { return false }
            while let room = body.room() { body.commit(room) }
            _ = body.finish() && tier.insert(TestRecord("\(object)", body: body))
            return false
        }
    }

    private static func lru() -> Double {
        var lastUse: [Int: Int] = [:]
        var order: [(object: Int, time: Int)] = []
        var oldest = 0
        var used = 0
        return ratio { object in
            let isHit = lastUse[object] != nil
            if !isHit { used += size(object) }
            lastUse[object] = order.count
            order.append((object, order.count))
            while used > budget {
                let entry = order[oldest]
                oldest += 1
                guard lastUse[entry.object] == entry.time else { continue }
                lastUse[entry.object] = nil
                used -= size(entry.object)
            }
            return isHit
        }
    }

    private static func ratio(_ request: (Int) -> Bool) -> Double {
        let warm = requests.count * 2 / 5
        var hits = 0
        for (index, object) in requests.enumerated() where request(object) && index >= warm { hits += 1 }
        return Double(hits) / Double(requests.count - warm)
    }

    private static func size(_ object: Int) -> Int {
        switch (object * 7919 + 13) % 100 {
        case ..<20: 1024
        case ..<50: 4096
        case ..<80: 16_384
        case ..<95: 65_536
        default: 262_144
        }
    }

    private static func zipf(count: Int, seed: UInt64) -> [Int] {
        var sums: [Double] = []
        var sum = 0.0
        for rank in 1...objects {
            sum += 1 / power(Double(rank))
            sums.append(sum)
        }
        var generator = SeededGenerator(seed: seed)
        return (0..<count).map { _ in
            let wanted = Double.random(in: 0..<sum, using: &generator)
            var low = 0
            var high = objects - 1
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] < wanted { low = middle + 1 } else { high = middle }
            }
            return low
        }
    }
}
