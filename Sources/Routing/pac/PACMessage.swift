/// What Larder tells the process that evaluates a PAC file.
///
/// A message is its length in four bytes, the highest first, then a byte for its kind, then what it says.
package enum PACRequest: Equatable, Sendable {
    /// The PAC file. It comes first, and once.
    case script([UInt8])
    /// Asks `FindProxyForURL(url, host)`.
    case question(url: [UInt8], host: [UInt8])

    package var bytes: [UInt8] {
        switch self {
        case .script(let text): message(1, text)
        case .question(let url, let host):
            message(2, [UInt8(url.count >> 8 & 0xFF), UInt8(url.count & 0xFF)] + url + host)
        }
    }

    /// - Parameter message: without its length.
    package init(_ message: [UInt8]) throws(PACMessageFault) {
        let content = message.dropFirst()
        switch message.first {
        case 1: self = .script(Array(content))
        case 2:
            guard content.count >= 2 else { throw .incomplete }
            let length = Int(content[1]) << 8 | Int(content[2])
            guard content.count - 2 >= length else { throw .incomplete }
            self = .question(url: Array(content[3..<3 + length]), host: Array(content[(3 + length)...]))
        default: throw .unknownKind
        }
    }
}

/// What the process answers, one for each request.
package enum PACReply: Equatable, Sendable {
    /// The script was read.
    case ready
    /// What the function returned.
    case answer([UInt8])
    /// The script cannot be read, or the function threw. The text says why.
    case failure([UInt8])

    package var bytes: [UInt8] {
        switch self {
        case .ready: message(3, [])
        case .answer(let text): message(4, text)
        case .failure(let text): message(5, text)
        }
    }

    /// - Parameter message: without its length.
    package init(_ message: [UInt8]) throws(PACMessageFault) {
        let content = Array(message.dropFirst())
        switch message.first {
        case 3:
            guard content.isEmpty else { throw .unknownKind }
            self = .ready
        case 4: self = .answer(content)
        case 5: self = .failure(content)
        default: throw .unknownKind
        }
    }
}

/// Why bytes are no message. Nothing that comes after them can be trusted, so the process ends.
package enum PACMessageFault: Error, Equatable, Sendable {
    case tooLong
    case empty
    case incomplete
    case unknownKind
}

private func message(_ kind: UInt8, _ content: [UInt8]) -> [UInt8] {
    let length = UInt32(content.count + 1)
    return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: length >> $0) } + [kind] + content
}

/// Finds the messages in bytes that arrive in pieces.
package struct PACMessageBuffer: Sendable {
    private var bytes: [UInt8] = []
    private let bytesMax: Int

    /// The longest PAC file. Browsers accept a megabyte, too.
    package static let scriptBytesMax = 1 << 20
    /// The longest answer, or text of an error.
    package static let replyBytesMax = 8 << 10

    /// - Parameter contentBytesMax: the longest script or reply that is expected.
    package init(contentBytesMax: Int) { bytesMax = contentBytesMax + 1 }

    package mutating func append(_ piece: some Sequence<UInt8>) { bytes += piece }

    /// The next message, without its length. Nil: more bytes are needed.
    package mutating func next() throws(PACMessageFault) -> [UInt8]? {
        guard bytes.count >= 4 else { return nil }
        let length = bytes[..<4].reduce(0) { $0 << 8 | Int($1) }
        guard length > 0 else { throw .empty }
        guard length <= bytesMax else { throw .tooLong }
        guard bytes.count >= 4 + length else { return nil }
        let message = Array(bytes[4..<4 + length])
        bytes.removeFirst(4 + length)
        return message
    }

    /// Whether bytes are left that nobody has asked for.
    package var isEmpty: Bool { bytes.isEmpty }
}
