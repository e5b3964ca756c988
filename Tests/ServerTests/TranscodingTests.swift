import Compression
import Storage
import Testing

@testable import Server

/// A tier with room, and bodies in it.
let tier = MemoryTier(budget: 256 << 20, shards: 1, objectMax: 128 << 20, variantsPerKeyMax: 1)

func body(_ bytes: [UInt8], isComplete: Bool = true) throws -> Body {
    let body = try #require(tier.makeBody(expectedLength: nil))
    #expect(append(bytes, to: body))
    if isComplete { #expect(body.finish()) }
    return body
}

func append(_ bytes: [UInt8], to body: Body) -> Bool {
    unsafe bytes.withUnsafeBytes { unsafe body.append($0) == .appended }
}

/// Words in no order: shrinks to about a third.
func text(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    let words = ["larder ", "pantry ", "cellar ", "the ", "of ", "shelf\n", "apple ", "jar "].map { Array($0.utf8) }
    var state = seed
    var result: [UInt8] = []
    result.reserveCapacity(count + 8)
    while result.count < count {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        result += words[Int(state >> 61)]
    }
    return Array(result.prefix(count))
}

func inflated(_ wire: [UInt8]) throws -> [UInt8] {
    var inflator = Inflator()
    var output: [UInt8] = []
    try inflator.decompress(wire, into: &output)
    try inflator.finish()
    return output
}

@Suite("Transcoding a stored body")
struct TranscodingTests {
    static let lengths = [0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 300_000, 1_500_000]

    /// All that comes until it waits or ends.
    private func drain(
        _ transcoder: Transcoder, _ body: Body, _ offset: inout Int, limit: Int = Transcoder.stepBytesMax
    ) throws(TranscodingError) -> (output: [UInt8], last: Transcoder.Progress) {
        var output: [UInt8] = []
        while true {
            let before = (out: output.count, offset: offset)
            let progress = try transcoder.next(from: body, offset: &offset, limit: limit, into: &output)
            #expect(output.count - before.out <= limit)
            #expect(offset - before.offset <= Transcoder.stepBytesMax)
            if progress != .more { return (output, progress) }
            #expect(output.count > before.out || offset > before.offset, "no step is idle")
        }
    }

    @Test(arguments: lengths, [16, 1000, .max]) func `a body stored as gzip is inflated to its content`(
        _ length: Int, _ limit: Int
    ) throws {
        let content = text(length)
        let stored = try body(gzip(content))
        var offset = 0
        let (output, last) = try drain(Transcoder(.inflate(InflateBounds())), stored, &offset, limit: min(limit, 65536))
        #expect(last == .done)
        #expect(offset == stored.length)
        #expect(output == content)
    }

    @Test(arguments: lengths, [1, 6]) func `a body stored uncompressed is compressed to gzip`(
        _ length: Int, _ level: Int
    )
        throws
    {
        let content = text(length)
        var offset = 0
        let transcoder = Transcoder(.compress(level: level))
        let (output, last) = try drain(transcoder, try body(content), &offset, limit: 1000)
        #expect(last == .done)
        #expect(try inflated(output) == content)
        #expect(length < 4096 || output.count < length / 2)
    }

    @Test func `the client can decode every published byte of a growing body`() throws {
        let pieces = (1...20).map { text($0 * 1777, seed: UInt64($0)) }
        let growing = try body([], isComplete: false)
        let transcoder = Transcoder(.compress(level: 1))
        var inflator = Inflator()
        var (offset, seen): (Int, [UInt8]) = (0, [])
        for piece in pieces {
            #expect(append(piece, to: growing))
            let (output, last) = try drain(transcoder, growing, &offset)
            #expect(last == .wait)
            try inflator.decompress(output, into: &seen)
            #expect(seen.count == growing.length, "what is held back comes too late")
            #expect(try drain(transcoder, growing, &offset).output == [], "nothing new, nothing sent")
        }
        #expect(growing.finish())
        let (output, last) = try drain(transcoder, growing, &offset)
        #expect(last == .done)
        try inflator.decompress(output, into: &seen)
        try inflator.finish()
        #expect(seen == pieces.flatMap { $0 })
    }

    /// A body whose writer publishes bytes between any two looks of the reader, and ends it between two looks as well.
    private final class Restless: TranscodedSource {
        private let body: Body
        private var rest: ArraySlice<UInt8>

        init(_ content: [UInt8]) throws {
            body = try ServerTests.body([], isComplete: false)
            rest = content[...]
        }

        private func publish() {
            guard body.state == .growing else { return }
            #expect(append(Array(rest.prefix(100)), to: body))
            rest = rest.dropFirst(100)
            if rest.isEmpty { #expect(body.finish()) }
        }

        var state: Body.State {
            defer { publish() }
            return body.state
        }

        var length: Int {
            defer { publish() }
            return body.length
        }

        func transcodedPiece(from offset: Int, limit: Int) -> UnsafeRawBufferPointer {
            defer { publish() }
            return unsafe body.transcodedPiece(from: offset, limit: limit)
        }
    }

    /// Three lengths, so that the last bytes come at each of the three looks of a step.
    @Test(arguments: [300_000, 300_100, 300_200])
    func `bytes published during a step are used by the next one`(_ length: Int) throws {
        let content = text(length)
        let source = try Restless(content)
        let transcoder = Transcoder(.compress(level: 1))
        var (offset, output): (Int, [UInt8]) = (0, [])
        while try transcoder.next(from: source, offset: &offset, into: &output) != .done {}
        let isSame = try inflated(output) == content
        #expect(isSame)
    }

    @Test func `gzip that grows byte by byte is inflated as it comes`() throws {
        let content = text(2000)
        let growing = try body([], isComplete: false)
        let transcoder = Transcoder(.inflate(InflateBounds()))
        var (offset, seen): (Int, [UInt8]) = (0, [])
        for byte in gzip(content) {
            #expect(append([byte], to: growing))
            let (output, last) = try drain(transcoder, growing, &offset)
            #expect(last == .wait)
            seen += output
        }
        #expect(growing.finish())
        #expect(try drain(transcoder, growing, &offset).last == .done)
        #expect(seen == content)
    }

    @Test func `a step of a bomb is no longer than any other`() throws {
        let bomb = try body(gzip([UInt8](repeating: 0, count: 100 << 20)))
        let transcoder = Transcoder(.inflate(InflateBounds(outputMax: 1 << 20)))
        var (offset, made): (Int, Int) = (0, 0)
        #expect(throws: TranscodingError.inflating(.outputTooLarge)) {
            while true {
                var output: [UInt8] = []
                _ = try transcoder.next(from: bomb, offset: &offset, into: &output)
                #expect(output.count <= Transcoder.stepBytesMax)
                made += output.count
            }
        }
        #expect(made == 1 << 20)
    }

    @Test func `members without content do not hold up the worker`() throws {
        let stored = try body(Array(repeatElement(gzip([]), count: 20_000).joined()))
        let transcoder = Transcoder(.inflate(InflateBounds()))
        var (offset, output): (Int, [UInt8]) = (0, [])
        #expect(try transcoder.next(from: stored, offset: &offset, into: &output) == .more)
        #expect(offset == Transcoder.stepBytesMax)
    }

    enum Fault: CaseIterable { case cutShort, damaged, plain, brokenOff }

    @Test(arguments: Fault.allCases) func `the bytes before an error are returned first`(_ fault: Fault) throws {
        let content = text(200_000)
        var wire = gzip(content)
        var expected = TranscodingError.inflating(.corrupt)
        switch fault {
        case .cutShort:
            wire.removeLast(1)
            expected = .inflating(.truncated)
        case .damaged: wire[wire.count - 5] ^= 1
        case .plain: wire = content
        case .brokenOff: expected = .bodyFailed
        }
        let stored = try body(wire, isComplete: fault != .brokenOff)
        stored.fail()
        let transcoder = Transcoder(.inflate(InflateBounds()))
        var (offset, output): (Int, [UInt8]) = (0, [])
        for _ in 0..<2 {
            #expect(throws: expected) {
                while try transcoder.next(from: stored, offset: &offset, into: &output) == .more {}
            }
            #expect(output == (fault == .plain ? [] : content))
        }
    }

    @Test func `an empty body with Content-Encoding gzip is empty`() throws {
        var offset = 0
        let (output, last) = try drain(Transcoder(.inflate(InflateBounds())), try body([]), &offset)
        #expect(last == .done && output.isEmpty)
    }

    @Test func `the number of compressors is bounded`() {
        #expect(Transcoder.mayCompress)
        var compressors = (0..<Transcoder.compressorsMax).map { _ in Transcoder(.compress(level: 1)) }
        #expect(!Transcoder.mayCompress)
        compressors.removeAll()
        #expect(Transcoder.mayCompress)
        let inflators = (0...Transcoder.compressorsMax).map { _ in Transcoder(.inflate(InflateBounds())) }
        withExtendedLifetime(inflators) { #expect(Transcoder.mayCompress) }
    }
}
