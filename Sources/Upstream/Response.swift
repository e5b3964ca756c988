import Compression
import Message
package import Requesting

/// The final answer to a request. Its body is still arriving.
///
/// The request keeps its place among those that run until the body has been read to its end, or the response is released.
public struct Response: Sendable {
    public let status: Int
    public let fields: FieldLines
    public let body: Body
    /// Where the answer comes from: another URL than that of the request if redirects were followed.
    public let url: String
    /// The head as it was parsed.
    package let head: AnswerHead

    /// The bytes of an answer, in pieces as they arrive. They can be read once.
    ///
    /// The client holds at most `Client.Options.bufferBytes` and one piece that nobody has read; then the server has to wait. If the last
    /// reference to an unread body is released, the transfer is cancelled.
    public final class Body: AsyncSequence, Sendable {
        public typealias Element = [UInt8]
        public typealias Failure = ClientError

        private let transfer: Transfer
        /// The client does not end before the body.
        private let client: Client
        private let isGzip: Bool

        init(_ transfer: Transfer, client: Client, isGzip: Bool) {
            self.transfer = transfer
            self.client = client
            self.isGzip = isGzip
        }

        deinit { transfer.abandon() }

        /// The length that the head announced, before any decoding. Nil if it did not.
        public var length: UInt64? { transfer.download.expected }

        /// The most bytes that have waited for a reader at a time.
        package var heldBytesMost: Int { transfer.download.bytesMost }

        public func makeAsyncIterator() -> Iterator {
            Iterator(body: self, decoder: isGzip ? GzipDecoder() : nil)
        }

        public struct Iterator: AsyncIteratorProtocol {
            let body: Body
            let decoder: GzipDecoder?

            /// The next piece, which is never empty. Returns nil when the body is complete.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(ClientError) -> [UInt8]? {
                guard let decoder else { return try await body.transfer.download.next() }
                while true {
                    if let piece = try decoder.next() { return piece }
                    guard let input = try await body.transfer.download.next() else {
                        try decoder.finish()
                        return nil
                    }
                    decoder.add(input)
                }
            }
        }

        /// The next piece as it arrived, without decoding. Returns nil when the body is complete.
        package func next() async throws(ClientError) -> [UInt8]? { try await transfer.download.next() }

        /// The whole body.
        ///
        /// - Throws: `.bodyTooLarge` if it is longer than `limit`.
        public func collect(upTo limit: Int = 16 << 20) async throws(ClientError) -> [UInt8] {
            var bytes: [UInt8] = []
            for try await piece in self {
                guard bytes.count + piece.count <= limit else { throw .bodyTooLarge(limit: limit) }
                bytes += piece
            }
            return bytes
        }

        /// The first bytes of the body. The rest is read and dropped.
        ///
        /// - Returns: at most `limit` bytes, and the length of the whole body.
        public func collect(first limit: Int) async throws(ClientError) -> (bytes: [UInt8], length: UInt64) {
            var (bytes, length): ([UInt8], UInt64) = ([], 0)
            for try await piece in self {
                bytes += piece.prefix(limit - bytes.count)
                length += UInt64(piece.count)
            }
            return (bytes, length)
        }
    }
}

/// Decodes gzip (RFC 1952) in pieces of bounded size.
final class GzipDecoder {
    private static let pieceBytes = 64 << 10
    private var inflator = Inflator()
    private var input: [UInt8] = []
    private var used = 0
    private var hasBegun = false

    func add(_ bytes: [UInt8]) {
        precondition(used == input.count, "the bytes before have been decoded")
        input = bytes
        used = 0
        hasBegun = true
    }

    /// The next decoded piece. Returns nil if more input is needed.
    func next() throws(ClientError) -> [UInt8]? {
        while used < input.count || hasMore {
            var piece: [UInt8] = []
            do throws(InflateError) {
                let step = try advance(&piece)
                used += step.consumed
                hasMore = step.needsRoom
            } catch { throw .undecodable }
            if !piece.isEmpty { return piece }
        }
        return nil
    }

    /// An empty body is valid although it is not gzip.
    func finish() throws(ClientError) {
        guard hasBegun else { return }
        do throws(InflateError) { try inflator.finish() } catch { throw .undecodable }
    }

    private var hasMore = false

    private func advance(_ piece: inout [UInt8]) throws(InflateError) -> StreamStep {
        let (bytes, start) = (input, used)
        return unsafe try bytes.span.bytes.withUnsafeBytes { all throws(InflateError) in
            let rest = unsafe UnsafeRawBufferPointer(rebasing: all[start...])
            return unsafe try appendStep(to: &piece, room: GzipDecoder.pieceBytes) { room throws(InflateError) in
                unsafe try inflator.step(rest, into: room)
            }
        }
    }
}
