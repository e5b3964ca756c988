import Storage
import Testing

@Suite("Partial body: any order of claims and fills")
struct SparsePropertyTests {
    let tier = MemoryTier(budget: 16 << 20, shards: 4, objectMax: 4 << 20, variantsPerKeyMax: 4)

    @Test(arguments: 0..<12) func `after fills in any order, the body agrees with an array of bytes`(_ seed: Int) throws
    {
        var generator = SeededGenerator(seed: UInt64(seed))
        let length = [1, 50, 1000, 65_536, 65_537, 200_000][seed % 6]
        let body = try #require(tier.makeSparseBody(length: length))
        var model = [UInt8](repeating: 0, count: length)
        /// 0: a hole, 1: claimed, 2: there.
        func free(_ range: Range<Int>) { for index in range where model[index] == 1 { model[index] = 0 } }
        var fills: [Fill] = []
        for _ in 0..<150 where body.state == .partial {
            let offset = Int.random(in: 0..<length, using: &generator)
            let limit = offset + 1 + Int.random(in: 0..<length, using: &generator) / 5
            switch Int.random(in: 0..<6, using: &generator) {
            case 0...2:
                let next = model[offset...].firstIndex { $0 != model[offset] } ?? length
                switch body.claim(at: offset, limit: limit) {
                case .available(let end):
                    #expect(model[offset] == 2 && end == next)
                case .awaited: #expect(model[offset] == 1)
                case .missing(let fill):
                    #expect(model[offset] == 0 && fill.range == offset..<min(next, limit, length))
                    for index in fill.range { model[index] = 1 }
                    fills.append(fill)
                case .unavailable: Issue.record("within its length there is room")
                }
            case 3:
                guard let fill = fills.randomElement(using: &generator), fill.position < fill.range.upperBound else {
                    continue
                }
                let end = Int.random(in: fill.position..<fill.range.upperBound, using: &generator)
                free(end..<fill.range.upperBound)
                fill.shrink(to: end)
            case 4:
                guard let index = fills.indices.randomElement(using: &generator) else { continue }
                let fill = fills.remove(at: index)
                free(fill.position..<fill.range.upperBound)
                if seed % 2 == 0 { #expect(fill.finish() == (fill.position == fill.range.upperBound)) }
            default:
                guard let fill = fills.randomElement(using: &generator), fill.position < fill.range.upperBound else {
                    continue
                }
                let end = Int.random(in: fill.position...fill.range.upperBound, using: &generator)
                let start = fill.position
                #expect(fill.append(pattern(start..<end)) == .appended)
                for index in start..<end { model[index] = 2 }
            }
            #expect(body.extents == Self.runs(of: 2, in: model))
            #expect(body.length == (model.firstIndex { $0 != 2 } ?? length))
        }
        for extent in body.extents { #expect(body.bytes(from: extent.lowerBound) == pattern(extent)) }
        fills = []
        #expect(body.fill(0..<length))
        #expect(body.state == .complete)
        #expect(body.bytes() == pattern(0..<length))
    }

    private static func runs(of value: UInt8, in model: [UInt8]) -> [Range<Int>] {
        var runs: [Range<Int>] = []
        var start = 0
        while let first = model[start...].firstIndex(of: value) {
            start = model[first...].firstIndex { $0 != value } ?? model.count
            runs.append(first..<start)
        }
        return runs
    }
}
