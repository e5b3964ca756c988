import EventLoop
import Foundation
import Testing

@testable import Disk

/// A store against a dictionary: random operations, kills, power cuts, failing calls. What is read is to the byte
/// what was put under the key, with a head that was given to it, and was not removed; what was flushed, and neither
/// removed nor evicted, is there.
@Suite("A disk store does what a dictionary does", .serialized)
struct StoreModelTests {
    @Test(arguments: seeds(12)) func `whatever is done`(_ seed: UInt64) throws {
        try StoreModel(seed: seed, .init()).run(steps: 700)
    }

    @Test(arguments: seeds(10)) func `when the process is killed`(_ seed: UInt64) throws {
        try StoreModel(seed: seed, .init(kills: 4)).run(steps: 700)
    }

    @Test(arguments: seeds(10)) func `when the power is cut`(_ seed: UInt64) throws {
        try StoreModel(seed: seed, .init(kills: 2, powerCuts: 4)).run(steps: 700)
    }

    @Test(arguments: seeds(10)) func `when calls fail`(_ seed: UInt64) throws {
        try StoreModel(seed: seed, .init(kills: 2, faults: 8)).run(steps: 700)
    }

    @Test(arguments: seeds(6)) func `when more is stored than there is room for`(_ seed: UInt64) throws {
        try StoreModel(seed: seed, .init(kills: 2, bodyBytesMax: 120_000, isCrowded: true)).run(steps: 1800)
    }

    @Test(arguments: seeds(6)) func `when there is no room, calls fail and the power is cut`(_ seed: UInt64) throws {
        try StoreModel(seed: seed, .init(kills: 2, powerCuts: 2, faults: 4, bodyBytesMax: 120_000, isCrowded: true))
            .run(steps: 1800)
    }

    @Test(arguments: seeds(6)) func `when the book is lost`(_ seed: UInt64) throws {
        try StoreModel(seed: seed, .init(kills: 3, losesBook: true, bodyBytesMax: 60_000, isCrowded: true))
            .run(steps: 1500)
    }

    /// LARDER_STORE_SEED: that one alone; LARDER_STORE_SEEDS: so many.
    private static func seeds(_ count: UInt64) -> [UInt64] {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["LARDER_STORE_SEED"].flatMap(UInt64.init) { return [seed] }
        let count = environment["LARDER_STORE_SEEDS"].flatMap(UInt64.init) ?? count
        return Array(1...count)
    }
}
