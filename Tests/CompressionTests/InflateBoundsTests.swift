import Compression
import Testing

@Suite("Decompression bombs")
struct InflateBoundsTests {
    static let megabyte = 1 << 20
    static let rows: [(rule: String, bounds: InflateBounds, zeros: Int, fits: Bool)] = [
        ("within all bounds", InflateBounds(), megabyte, true),
        ("as much as is allowed", InflateBounds(outputMax: megabyte), megabyte, true),
        ("one byte more", InflateBounds(outputMax: megabyte - 1), megabyte, false),
        ("nothing allowed, nothing there", InflateBounds(outputMax: 0), 0, true),
        ("nothing allowed, one byte there", InflateBounds(outputMax: 0), 1, false),
        ("beyond the ratio, but not much of it", InflateBounds(ratioMax: 100, outputFree: megabyte), megabyte, true),
        ("beyond the ratio", InflateBounds(ratioMax: 100, outputFree: megabyte / 2), megabyte, false),
        ("within the ratio", InflateBounds(ratioMax: 1100, outputFree: 0), megabyte, true),
        ("64 MiB of zeros", InflateBounds(), 64 * megabyte, true),
        ("more than that", InflateBounds(), 80 * megabyte, false),
        ("unless it is allowed", InflateBounds(ratioMax: 1100), 80 * megabyte, true),
    ]

    @Test(arguments: rows) func `output beyond the bounds is refused at every call`(
        _ row: (rule: String, bounds: InflateBounds, zeros: Int, fits: Bool)
    ) {
        let bomb = gzip([UInt8](repeating: 0, count: row.zeros))
        var inflator = Inflator(bounds: row.bounds)
        let count = drain(bomb, &inflator)
        #expect(count.error == (row.fits ? nil : .outputTooLarge), "\(row.rule)")
        #expect(count.made <= row.bounds.outputMax, "\(row.rule)")
        if row.fits { #expect(count.made == row.zeros, "\(row.rule)") }
        guard !row.fits else { return }
        #expect(drain(bomb, &inflator).error == .outputTooLarge, "\(row.rule)")
        #expect(throws: InflateError.outputTooLarge) { try inflator.finish() }
    }

    /// How many bytes come out, none of which is kept.
    private func drain(_ wire: [UInt8], _ inflator: inout Inflator) -> (made: Int, error: InflateError?) {
        var made = 0
        do throws(InflateError) {
            var rest = wire[...]
            var isMore = true
            while isMore {
                var room: [UInt8] = []
                let step = unsafe try rest.span.bytes.withUnsafeBytes { input throws(InflateError) in
                    try unsafe appendStep(to: &room, room: 64 << 10) { room throws(InflateError) in
                        unsafe try inflator.step(input, into: room)
                    }
                }
                made += step.produced
                rest = rest.dropFirst(step.consumed)
                isMore = step.needsRoom
            }
            try inflator.finish()
            return (made, nil)
        } catch {
            return (made, error)
        }
    }
}

@Suite("RFC 1952 §2.2 behind the last member")
struct TrailingBytesTests {
    static let rows: [(rule: String, trailing: [UInt8], error: InflateError?)] = [
        ("nothing", [], nil),
        ("zeros, as tape blocks have them", [UInt8](repeating: 0, count: 512), nil),
        ("a line of text", Array("trailing\n".utf8), nil),
        ("half a magic number", [0x1F], nil),
        ("half a magic number, then something else", [0x1F, 0x00, 0x8B], nil),
        ("the other half", [0x00, 0x8B, 0x08, 0x00], nil),
        ("zeros, then a member: it is no more one", [0] + gzip([9]), nil),
        ("a magic number begins a member, which is cut short", [0x1F, 0x8B], .truncated),
        ("or is no member", [0x1F, 0x8B, 0x07, 0x00], .corrupt),
    ]

    @Test(arguments: rows, [1, 2, .max])
    func `what does not begin a member is passed over`(
        _ row: (rule: String, trailing: [UInt8], error: InflateError?), _ piece: Int
    ) {
        var stream = Stream(room: 100)
        var error: InflateError?
        do throws(InflateError) {
            var wire = (gzip([1, 2]) + gzip([3]) + row.trailing)[...]
            while !wire.isEmpty {
                try stream.inflate(wire.prefix(piece))
                wire = wire.dropFirst(piece)
            }
            try stream.inflator.finish()
        } catch let caught { error = caught }
        #expect(error == row.error, "\(row.rule)")
        #expect(stream.output == [1, 2, 3], "\(row.rule)")
    }
}
