import Compression

/// Encodes the content of one request with gzip while it is sent.
final class ContentEncoder {
    private var deflator = Deflator()
    /// Content without a length comes when its client has something to say, and must not wait for more.
    private let isPrompt: Bool

    init(isPrompt: Bool) { self.isPrompt = isPrompt }

    /// - Returns: what can be sent now. It may be empty.
    func encode(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var output: [UInt8] = []
        unsafe deflator.compress(bytes, into: &output, isPrompt ? .sync : .no)
        return output
    }

    /// The end of the coding.
    func finish() -> [UInt8] {
        var output: [UInt8] = []
        deflator.compress([], into: &output, .finish)
        return output
    }
}
