import Compression
import Testing

/// Pieces of every size in, rooms of every size out.
@Suite("Streams, step by step")
struct StreamStepTests {
    static let text = Array("the larder, the cellar, the larder, the pantry".utf8) + GzipTests.text(90)

    @Test func `inflating is the same however input and room are cut`() throws {
        let wire = gzip(Array(Self.text.prefix(30))) + gzip([]) + gzip(Array(Self.text.dropFirst(30)))
        for split in 0...wire.count {
            for room in [1, 2, 7, 64, 4096] {
                var stream = Stream(room: room)
                try stream.inflate(wire[..<split])
                try stream.inflate(wire[split...])
                try stream.inflator.finish()
                #expect(stream.output == Self.text, "split at \(split), room of \(room)")
            }
        }
    }

    @Test(arguments: [1, 2, 3, 5, 100], [1, 2, 7, 1000])
    func `a stream may be inflated in any number of pieces`(_ piece: Int, _ room: Int) throws {
        let wire = gzip(Self.text) + gzip(Self.text)
        var stream = Stream(room: room)
        for start in stride(from: 0, to: wire.count, by: piece) {
            try stream.inflate(wire[start..<min(start + piece, wire.count)])
        }
        try stream.inflator.finish()
        #expect(stream.output == Self.text + Self.text)
    }

    @Test(arguments: 0..<200 as Range<UInt64>) func `random content survives random steps`(_ seed: UInt64)
        throws
    {
        var random = Seeded(state: seed)
        let content = random.content()
        var deflator = Deflator(level: Int.random(in: 1...9, using: &random))
        var wire: [UInt8] = []
        var rest = content[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 0...max(1, content.count / 3), using: &random))
            rest = rest.dropFirst(piece.count)
            deflate(piece, with: &deflator, Bool.random(using: &random) ? .sync : .no, random.room(), into: &wire)
        }
        deflate([], with: &deflator, .finish, random.room(), into: &wire)
        let isFinished = deflator.isFinished
        #expect(isFinished)
        var stream = Stream(room: random.room())
        while !wire.isEmpty {
            let piece = wire.prefix(Int.random(in: 1...wire.count, using: &random))
            try stream.inflate(piece)
            wire.removeFirst(piece.count)
        }
        try stream.inflator.finish()
        #expect(stream.output == content)
    }

    @Test(arguments: 0..<300 as Range<UInt64>) func `a damaged stream gives an error or an end, never a trap`(
        _ seed: UInt64
    ) {
        var random = Seeded(state: seed)
        let content = random.content()
        var wire = gzip(content)
        for _ in 0...Int.random(in: 0...3, using: &random) {
            wire[Int.random(in: 0..<wire.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        var stream = Stream(room: random.room(), bounds: InflateBounds(outputMax: 1 << 20))
        do throws(InflateError) {
            try stream.inflate(wire[...])
            try stream.inflator.finish()
        } catch {
            #expect([.corrupt, .truncated, .outputTooLarge].contains(error))
        }
        #expect(stream.output.count <= 1 << 20)
    }

    @Test func `one step never writes beyond its room`() throws {
        let bomb = gzip([UInt8](repeating: 0, count: 10 << 20))
        var stream = Stream(room: 1000)
        let step = try stream.step(bomb[...])
        #expect(step.produced == 1000 && step.needsRoom && step.consumed < bomb.count)
        #expect(stream.output == [UInt8](repeating: 0, count: 1000))
    }
}

/// Drives an inflator the way a caller with little room does.
struct Stream: ~Copyable {
    var inflator: Inflator
    var output: [UInt8] = []
    let room: Int

    init(room: Int, bounds: InflateBounds = InflateBounds()) {
        self.room = room
        inflator = Inflator(bounds: bounds)
    }

    mutating func step(_ bytes: ArraySlice<UInt8>) throws(InflateError) -> StreamStep {
        unsafe try bytes.span.bytes.withUnsafeBytes { input throws(InflateError) in
            try unsafe appendStep(to: &output, room: room) { room throws(InflateError) in
                unsafe try inflator.step(input, into: room)
            }
        }
    }

    mutating func inflate(_ bytes: ArraySlice<UInt8>) throws(InflateError) {
        var rest = bytes
        var isMore = true
        while isMore {
            let step = try step(rest)
            rest = rest.dropFirst(step.consumed)
            isMore = step.needsRoom
            if !isMore { #expect(rest.isEmpty) }
        }
    }
}

private func deflate(
    _ bytes: ArraySlice<UInt8>, with deflator: inout Deflator, _ flush: Deflator.Flush, _ room: Int,
    into output: inout [UInt8]
) {
    var rest = bytes
    var isMore = true
    while isMore {
        let step = unsafe rest.span.bytes.withUnsafeBytes { input in
            unsafe appendStep(to: &output, room: room) { unsafe deflator.step(input, into: $0, flush) }
        }
        rest = rest.dropFirst(step.consumed)
        isMore = step.needsRoom
    }
}

/// SplitMix64: the same numbers on every run.
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// Runs of equal bytes among noise, of any length up to 100 000.
    mutating func content() -> [UInt8] {
        var result: [UInt8] = []
        let length = Int.random(in: 0...Int.random(in: 0...100_000, using: &self), using: &self)
        while result.count < length {
            let count = min(length - result.count, Int.random(in: 1...500, using: &self))
            if Bool.random(using: &self) {
                result += [UInt8](repeating: UInt8.random(in: 0...255, using: &self), count: count)
            } else {
                for _ in 0..<count { result.append(UInt8.random(in: 0...255, using: &self)) }
            }
        }
        return result
    }

    /// Small more often than not; a flush in a room of less than seven bytes would not end.
    mutating func room() -> Int { Int.random(in: 8...Int.random(in: 8...70_000, using: &self), using: &self) }
}
