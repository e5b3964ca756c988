import EventLoop
import Glibc
import Testing

@testable import Disk

/// What reclaiming costs in bytes written, and what it gives in hits, for two kinds of traffic. The figures are printed.
@Suite("Reclaiming under traffic")
struct ReclaimerTrafficTests {
    /// Requests for keys; what is missed is stored. A quarter of what is asked for fits.
    private struct Traffic {
        var name: String
        /// Of the key of rank r: 1 / r^exponent.
        var exponent: Double
        var keyCount = 16_000
        var requestCount = 120_000
    }

    private struct Outcome {
        /// Bytes written for each byte stored.
        var amplification: Double
        var hits: Double
    }

    @Test(arguments: [("uniform", 0.0, 1.9), ("Zipf 0.8", 0.8, 1.9), ("Zipf 1.0", 1.0, 2.0)])
    func `at most one byte is copied for each byte stored`(_ name: String, exponent: Double, most: Double) {
        let traffic = Traffic(name: name, exponent: exponent)
        let reclaiming = Self.run(traffic, touches: true)
        let forgetting = Self.run(traffic, touches: false)
        print(
            """
            reclaiming, \(name): \(reclaiming.amplification.rounded(to: 3)) bytes written per byte stored, \
            \((reclaiming.hits * 100).rounded(to: 1)) % hits; first in first out \
            \(forgetting.amplification.rounded(to: 3)), \((forgetting.hits * 100).rounded(to: 1)) %
            """)
        #expect(reclaiming.amplification < most)
        #expect(forgetting.amplification < 1.05)
        #expect(reclaiming.hits > forgetting.hits - 0.005)
    }

    private static func run(_ traffic: Traffic, touches: Bool) -> Outcome {
        var random = LedgerGenerator(seed: 4711)
        let size: UInt64 = 32 << 20
        let store = ReclaimerStoreFake(.init(size: size, pinned: 0, segment: 512 << 10))
        let reclaimer = Reclaimer(ledger: store.ledger, store: store)
        let ranks = Ranks(count: traffic.keyCount, exponent: traffic.exponent)
        var stored = [ObjectID?](repeating: nil, count: traffic.keyCount)
        var hits = 0
        for request in 0..<traffic.requestCount {
            let key = ranks.draw(using: &random)
            if let id = stored[key], store.state.withLock({ $0.index[id] }) != nil {
                hits += 1
                if touches { store.touch(id) }
            } else {
                // The length follows from the key: 8 KiB on average.
                stored[key] = store.store(UInt64(1024 + key &* 2_654_435_761 % 14_336))
            }
            if request % 8 == 0 { _ = reclaimer.turn() }
            if request % 256 == 0 { store.commit() }
        }
        let (written, moved) = store.state.withLock { ($0.storedBytes, $0.movedBytes) }
        #expect(store.state.withLock { $0.usedMax } <= size)
        return Outcome(
            amplification: Double(written + moved) / Double(written), hits: Double(hits) / Double(traffic.requestCount))
    }
}

/// Draws ranks, the first the most often.
private struct Ranks {
    private var sums: [Double] = []

    init(count: Int, exponent: Double) {
        var sum = 0.0
        for rank in 1...count {
            sum += 1 / pow(Double(rank), exponent)
            sums.append(sum)
        }
    }

    func draw(using random: inout LedgerGenerator) -> Int {
        let wanted = Double.random(in: 0..<(sums.last ?? 1), using: &random)
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] > wanted { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

extension Double {
    fileprivate func rounded(to digits: Int) -> Double {
        let unit = [1.0, 10, 100, 1000][digits]
        return (self * unit).rounded() / unit
    }
}
