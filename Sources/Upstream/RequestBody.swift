import EventLoop
import Framing
import Glibc

/// The body of a request. A body that is streamed is never in memory as a whole: what produces it waits while the server takes nothing.
public struct RequestBody: Sendable {
    /// Gives one piece to the client, and returns when there is room for another.
    typealias Write = @Sendable ([UInt8]) async throws(ClientError) -> Void

    enum Kind: Sendable {
        case none
        case bytes([UInt8])
        /// - Parameter length: nil if it is not known. The body is sent in chunks then (RFC 9112 §7.1).
        case produced(length: UInt64?, @Sendable (Write) async throws(ClientError) -> Void)
        case file(String)
    }
    let kind: Kind

    public static let none = RequestBody(kind: .none)

    public static func bytes(_ bytes: [UInt8]) -> RequestBody { RequestBody(kind: .bytes(bytes)) }

    public static func text(_ text: String) -> RequestBody { .bytes(Array(text.utf8)) }

    /// The pieces of a sequence, in order. The sequence is asked for the next piece when there is room for it.
    ///
    /// - Parameter length: the sum of all pieces. Nil: the body is sent in chunks.
    public static func stream<Pieces: AsyncSequence & Sendable>(
        _ pieces: Pieces, length: UInt64? = nil
    ) -> RequestBody where Pieces.Element == [UInt8] {
        RequestBody(
            kind: .produced(length: length) { write throws(ClientError) in
                do {
                    for try await piece in pieces { try await write(piece) }
                } catch let error as ClientError {
                    throw error
                } catch is CancellationError {
                    throw .cancelled
                } catch {
                    throw .bodyUnavailable("\(error)")
                }
            })
    }

    /// The content of a file. It is read while it is sent; its length is that at the beginning.
    public static func file(_ path: String) -> RequestBody { RequestBody(kind: .file(path)) }

    /// The body with its framing.
    ///
    /// - Throws: `.bodyUnavailable` if a file cannot be opened.
    func opened() throws(ClientError) -> OpenedBody {
        switch kind {
        case .none: return OpenedBody(framing: .none, content: .bytes([]))
        case .bytes(let bytes): return OpenedBody(framing: .length(UInt64(bytes.count)), content: .bytes(bytes))
        case .produced(let length, let produce):
            return OpenedBody(framing: length.map { .length($0) } ?? .chunked, content: .produced(produce))
        case .file(let path):
            let file = try SentFile(path)
            return OpenedBody(
                framing: .length(file.length),
                content: .produced { write throws(ClientError) in
                    while let piece = try file.next() { try await write(piece) }
                })
        }
    }
}

/// A body that is about to be sent.
struct OpenedBody: Sendable {
    enum Content: Sendable {
        case bytes([UInt8])
        case produced(@Sendable (RequestBody.Write) async throws(ClientError) -> Void)
    }
    let framing: BodyLength
    let content: Content

    var length: UInt64? {
        switch framing {
        case .length(let count): count
        case .none: 0
        case .chunked, .untilClose, .tunnel: nil
        }
    }
}

/// A file that is read piece by piece.
private final class SentFile: Sendable {
    private static let pieceBytes = 64 << 10
    private let path: String
    private let file: Descriptor
    let length: UInt64

    init(_ path: String) throws(ClientError) {
        self.path = path
        let raw = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard raw >= 0 else { throw .bodyUnavailable("\(path): \(systemText(errno))") }
        file = Descriptor(adopting: raw)
        var status = stat()
        guard unsafe fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .bodyUnavailable("\(path) is not a file")
        }
        length = UInt64(clamping: status.st_size)
    }

    /// Returns nil at the end.
    func next() throws(ClientError) -> [UInt8]? {
        var piece = [UInt8](repeating: 0, count: SentFile.pieceBytes)
        switch unsafe piece.withUnsafeMutableBytes({ unsafe IO.read(file.rawValue, into: $0) }) {
        case .bytes(let count):
            piece.removeLast(piece.count - count)
            return piece
        case .closed: return nil
        case .wouldBlock: throw .bodyUnavailable("\(path) is not a file")
        case .failed(let code): throw .bodyUnavailable("\(path): \(systemText(code))")
        }
    }
}

/// The system's words for an `errno`.
func systemText(_ code: CInt) -> String { systemErrorText(code) }
