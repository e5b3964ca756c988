import CZlib

/// The input is not gzip, is incomplete, or expands too far.
package enum InflateError: Error, Equatable {
    case corrupt
    /// The stream expands beyond its bounds. It may be a decompression bomb.
    case outputTooLarge
    /// The input ended before the stream did.
    case truncated
}

/// Decompresses a gzip stream (RFC 1952), piece by piece, up to a bound. Several members in a row are one stream (§2.2).
/// Bytes behind a member that do not begin another one are ignored, as gzip(1) and browsers do. Mostly they are padding.
///
///     start ──▶ inMember ──its end──▶ betweenMembers ──1F──▶ magic ──8B──▶ inMember
///                                           └───anything else──┴──▶ trailing
@safe package struct Inflator: ~Copyable {
    private let stream: UnsafeMutablePointer<z_stream>
    private let bounds: InflateBounds
    private var inputCount = 0
    private var outputCount = 0
    private enum State { case inMember, betweenMembers, magic, trailing, failed(InflateError) }
    private var state: State = .inMember

    package init(bounds: InflateBounds = InflateBounds()) {
        self.bounds = bounds
        unsafe stream = .allocate(capacity: 1)
        unsafe stream.initialize(to: z_stream())
        let status = unsafe inflateInit2_(stream, gzipWindowBits, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
        precondition(status == Z_OK, "inflateInit2 failed: no memory")
    }

    /// - Parameter outputMax: the most bytes of output.
    package init(outputMax: Int) { self.init(bounds: InflateBounds(outputMax: outputMax, ratioMax: .max)) }

    deinit {
        unsafe inflateEnd(stream)
        unsafe stream.deallocate()
    }

    /// Decompresses as much of `input` as fits into `room`, which must not be empty. Never writes beyond the bounds, and throws if there
    /// would be more. After an error it throws the same error again.
    package mutating func step(
        _ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) throws(InflateError) -> StreamStep {
        unsafe precondition(!room.isEmpty, "a step needs room")
        var step = StreamStep()
        while true {
            switch state {
            case .failed(let error):
                // Return the bytes before the error first.
                guard step.produced > 0 else { throw error }
                step.needsRoom = true
                return step
            case .trailing:
                step.consumed = input.count
                return step
            case .betweenMembers:
                guard step.consumed < input.count else { return step }
                state = unsafe input[step.consumed] == gzipMagic.first ? .magic : .trailing
                step.consumed += 1
            case .magic:
                guard step.consumed < input.count else { return step }
                guard unsafe input[step.consumed] == gzipMagic.second else {
                    state = .trailing
                    continue
                }
                beginMember()
            case .inMember:
                step.needsRoom = step.produced == room.count
                guard !step.needsRoom, unsafe advance(input, room, &step) else { return step }
            }
        }
    }

    /// Whether all of the input so far belongs to members, and the last one is complete.
    package var isAtEndOfMember: Bool { if case .betweenMembers = state { true } else { false } }

    /// Reports the end of the input. Throws `.truncated` if the stream is incomplete.
    package func finish() throws(InflateError) {
        switch state {
        case .betweenMembers, .magic, .trailing: return
        case .inMember: throw .truncated
        case .failed(let error): throw error
        }
    }

    /// One call of zlib, which may end the member or the stream. Returns false if it needs more input.
    private mutating func advance(
        _ input: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer, _ step: inout StreamStep
    ) -> Bool {
        let source = unsafe UnsafeRawBufferPointer(rebasing: input[step.consumed...])
        let allowed = min(room.count - step.produced, bounds.outputMax - outputCount)
        let target = unsafe UnsafeMutableRawBufferPointer(rebasing: room[step.produced..<step.produced + allowed])
        let (status, taken, made) = unsafe allowed > 0 ? run(source, target) : runWithoutRoom(source)
        step.consumed += taken
        inputCount += taken
        outputCount += made
        guard bounds.allow(outputCount, from: inputCount) else {
            state = .failed(.outputTooLarge)
            return true
        }
        step.produced += made
        switch status {
        case Z_STREAM_END: state = .betweenMembers
        case Z_OK: break
        case Z_BUF_ERROR: return false
        default: state = .failed(.corrupt)
        }
        return true
    }

    /// The output has reached its bound. Another byte would be too much, but the stream may be at its end.
    private func runWithoutRoom(_ source: UnsafeRawBufferPointer) -> (status: CInt, taken: Int, made: Int) {
        var spill: UInt8 = 0
        return unsafe withUnsafeMutableBytes(of: &spill) { unsafe run(source, $0) }
    }

    private func run(
        _ source: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer
    ) -> (status: CInt, taken: Int, made: Int) {
        unsafe withStream(stream, source, target) { unsafe inflate(stream, Z_NO_FLUSH) }
    }

    /// Starts a new member. The first byte of its magic number was used already, so zlib is given it again.
    private mutating func beginMember() {
        unsafe inflateReset(stream)
        var (first, spill): (UInt8, UInt8) = (gzipMagic.first, 0)
        _ = unsafe withUnsafeBytes(of: &first) { first in
            unsafe withUnsafeMutableBytes(of: &spill) { unsafe run(first, $0) }
        }
        state = .inMember
    }

}

/// RFC 1952 §2.3.1: ID1 and ID2.
private let gzipMagic: (first: UInt8, second: UInt8) = (0x1F, 0x8B)

extension Inflator {
    /// Appends the decompressed form of `bytes`. For small streams that are in memory.
    package mutating func decompress(_ bytes: [UInt8], into output: inout [UInt8]) throws(InflateError) {
        unsafe try bytes.span.bytes.withUnsafeBytes { input throws(InflateError) in
            var rest = unsafe input
            var made = StreamStep()
            repeat {
                made = unsafe try appendStep(to: &output, room: chunkBytes) { room throws(InflateError) in
                    unsafe try step(rest, into: room)
                }
                unsafe rest = UnsafeRawBufferPointer(rebasing: rest[made.consumed...])
            } while made.needsRoom
        }
    }
}
