import Compression
import Testing

@Suite("RFC 1952 gzip")
struct GzipTests {
    static func text(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) } }

    private func inflate(_ bytes: [UInt8], outputMax: Int = 1 << 20, step: Int = .max) throws -> [UInt8] {
        var inflator = Inflator(outputMax: outputMax)
        var output: [UInt8] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            try inflator.decompress(Array(rest.prefix(step)), into: &output)
            rest = rest.dropFirst(step)
        }
        try inflator.finish()
        return output
    }

    @Test(arguments: [0, 1, 16383, 16384, 16385, 200_000])
    func `compressed content is restored in whatever pieces it arrives`(_ count: Int) throws {
        let text = Self.text(count)
        let compressed = gzip(text)
        #expect(compressed.prefix(2) == [0x1f, 0x8b])
        #expect(try inflate(compressed) == text)
        #expect(try inflate(compressed, step: 997) == text)
    }

    @Test func `a flush lets the receiver see everything so far`() throws {
        var deflator = Deflator()
        var (wire, seen): ([UInt8], [UInt8]) = ([], [])
        var inflator = Inflator(outputMax: 100)
        deflator.compress(Array("hello ".utf8), into: &wire, .sync)
        try inflator.decompress(wire, into: &seen)
        #expect(seen == Array("hello ".utf8))
        var end: [UInt8] = []
        deflator.compress(Array("larder".utf8), into: &end, .finish)
        try inflator.decompress(end, into: &seen)
        try inflator.finish()
        #expect(seen == Array("hello larder".utf8))
    }

    @Test func `members in a row are one stream`() throws {
        #expect(try inflate(gzip([1, 2]) + gzip([3])) == [1, 2, 3])
        #expect(try inflate(gzip([1, 2]) + gzip([3]), step: 1) == [1, 2, 3])
    }

    @Test func `input that is not gzip is refused at every call`() {
        var inflator = Inflator(outputMax: 100)
        var output: [UInt8] = []
        for _ in 0..<2 {
            var error: InflateError?
            do throws(InflateError) { try inflator.decompress(Array("plain text".utf8), into: &output) } catch let
                caught
            { error = caught }
            #expect(error == .corrupt)
        }
    }

    @Test func `a damaged stream is refused`() {
        var bytes = gzip(Self.text(1000))
        bytes[bytes.count - 5] ^= 1  // in the CRC-32
        #expect(throws: InflateError.corrupt) { try inflate(bytes) }
    }

    @Test func `a stream cut short is refused at its end`() {
        #expect(throws: InflateError.truncated) { try inflate(Array(gzip(Self.text(1000)).dropLast(1))) }
        #expect(throws: InflateError.truncated) { try inflate([]) }
    }

    @Test func `output stops at its bound`() throws {
        let zeros = gzip([UInt8](repeating: 0, count: 1 << 20))
        #expect(zeros.count < 2048)
        #expect(throws: InflateError.outputTooLarge) { try inflate(zeros, outputMax: (1 << 20) - 1) }
        #expect(try inflate(zeros, outputMax: 1 << 20).count == 1 << 20)
        var inflator = Inflator(outputMax: 1000)
        var output: [UInt8] = []
        do throws(InflateError) { try inflator.decompress(zeros, into: &output) } catch {
            #expect(error == .outputTooLarge)
        }
        #expect(output.count == 1000)
    }
}
