/// What a TLS client asks for in its first message (RFC 8446 §4.1.2), as far as a proxy needs it before it answers.
package struct ClientHello: Equatable, Sendable {
    /// The name in the server_name extension (RFC 6066 §3), as sent. Nil without the extension.
    package var serverName: [UInt8]?
    /// The protocols in the ALPN extension (RFC 7301 §3.1), in the client's order. Nil without the extension.
    package var protocols: [[UInt8]]?
    /// The type in the encrypted_client_hello extension (RFC 9849 §5). Nil without the extension.
    package var encryptedHello: EncryptedHello?

    package init(
        serverName: [UInt8]? = nil, protocols: [[UInt8]]? = nil, encryptedHello: EncryptedHello? = nil
    ) {
        self.serverName = serverName
        self.protocols = protocols
        self.encryptedHello = encryptedHello
    }

    /// `ECHClientHelloType`.
    package enum EncryptedHello: UInt8, Sendable {
        /// Another ClientHello is encrypted in this one, or the bytes are random: browsers send the extension to servers that do not know it as
        /// well (RFC 9849 §6.2), so its presence proves nothing.
        case outer = 0
        /// This is the hello that was encrypted. A server sends it to another behind it; a client does not (RFC 9849 §6.1).
        case inner = 1
    }

    package enum Reading: Equatable, Sendable {
        case complete(ClientHello)
        /// The bytes may belong to a ClientHello. Read again when at least `count` bytes have arrived.
        case incomplete(needs: Int)
        /// The bytes are no ClientHello: the client speaks another protocol, or has a fault.
        case malformed
        /// The message does not fit into `bytesMax`.
        case tooLong
    }

    /// The most bytes of a message that are accepted, record headers included. Real clients send 200 to 2,000, post-quantum key shares
    /// included.
    package static let bytesMax = 16 << 10

    /// Reads a ClientHello from the first bytes of a connection. It may be split over any number of records (RFC 8446 §5.1).
    ///
    /// - Parameter bytes: everything received so far. What follows the last record of the message is ignored.
    package static func read(_ bytes: borrowing Span<UInt8>) -> Reading {
        var message: [UInt8] = []
        var position = 0
        while true {
            let header = position + 5
            guard header <= bytesMax else { return .tooLong }
            guard mayBeRecord(bytes, at: position) else { return .malformed }
            guard bytes.count >= header else { return .incomplete(needs: header) }
            let length = Int(bytes[position + 3]) << 8 + Int(bytes[position + 4])
            guard (1...(1 << 14)).contains(length) else { return .malformed }
            let end = header + length
            guard end <= bytesMax else { return .tooLong }
            guard bytes.count >= end else { return .incomplete(needs: end) }
            for index in header..<end { message.append(bytes[index]) }
            position = end
            // The type of a handshake message, 1 for a ClientHello, and its length (RFC 8446 §4).
            guard message[0] == 1 else { return .malformed }
            guard message.count >= 4 else { continue }
            let whole = 4 + Int(message[1]) << 16 + Int(message[2]) << 8 + Int(message[3])
            guard whole <= bytesMax else { return .tooLong }
            if message.count >= whole { return parse(message[4..<whole]).map { .complete($0) } ?? .malformed }
        }
    }

    /// Whether the bytes at `position`, as far as they have arrived, begin a handshake record of TLS 1.x.
    private static func mayBeRecord(_ bytes: borrowing Span<UInt8>, at position: Int) -> Bool {
        (bytes.count <= position || bytes[position] == 0x16)
            && (bytes.count <= position + 1 || bytes[position + 1] == 3)
    }

    /// Parses the body of the message. Returns nil if it breaks the rules of RFC 8446 §4.1.2 or of the three extensions.
    private static func parse(_ body: ArraySlice<UInt8>) -> ClientHello? {
        var reader = VectorReader(body)
        var hello = ClientHello()
        guard reader.skip(2 + 32), reader.vector(lengthBytes: 1) != nil, let suites = reader.vector(lengthBytes: 2),
            suites.count >= 2, suites.count % 2 == 0, reader.vector(lengthBytes: 1)?.isEmpty == false
        else { return nil }
        // A client of TLS 1.2 may send no extensions at all.
        if reader.isAtEnd { return hello }
        guard var extensions = reader.vector(lengthBytes: 2).map(VectorReader.init), reader.isAtEnd else { return nil }
        while !extensions.isAtEnd {
            guard let type = extensions.number(bytes: 2), let content = extensions.vector(lengthBytes: 2) else {
                return nil
            }
            switch type {
            case 0:
                guard hello.serverName == nil, let name = hostName(content) else { return nil }
                hello.serverName = name
            case 16:
                guard hello.protocols == nil, let protocols = protocolNames(content) else { return nil }
                hello.protocols = protocols
            case 0xFE0D:
                guard hello.encryptedHello == nil, let type = encryptedHello(content) else { return nil }
                hello.encryptedHello = type
            default: break
            }
        }
        return hello
    }

    /// The one host_name of the list (RFC 6066 §3: not more than one name of a type, and no other type exists).
    private static func hostName(_ content: ArraySlice<UInt8>) -> [UInt8]? {
        var reader = VectorReader(content)
        guard var list = reader.vector(lengthBytes: 2).map(VectorReader.init), reader.isAtEnd,
            list.number(bytes: 1) == 0,
            let name = list.vector(lengthBytes: 2), !name.isEmpty, list.isAtEnd
        else { return nil }
        return Array(name)
    }

    /// An outer hello has ciphertext behind its type, an inner one nothing (RFC 9849 §5).
    private static func encryptedHello(_ content: ArraySlice<UInt8>) -> EncryptedHello? {
        guard let type = content.first.flatMap(EncryptedHello.init), (type == .inner) == (content.count == 1) else {
            return nil
        }
        return type
    }

    private static func protocolNames(_ content: ArraySlice<UInt8>) -> [[UInt8]]? {
        var reader = VectorReader(content)
        guard var list = reader.vector(lengthBytes: 2).map(VectorReader.init), reader.isAtEnd, !list.isAtEnd else {
            return nil
        }
        var names: [[UInt8]] = []
        while !list.isAtEnd {
            guard let name = list.vector(lengthBytes: 1), !name.isEmpty else { return nil }
            names.append(Array(name))
        }
        return names
    }
}

/// Reads numbers and vectors with a length in front, as TLS encodes them (RFC 8446 §3.4).
private struct VectorReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    /// Returns false if there are not so many bytes.
    mutating func skip(_ count: Int) -> Bool {
        guard rest.count >= count else { return false }
        rest = rest.dropFirst(count)
        return true
    }

    mutating func number(bytes count: Int) -> Int? {
        guard rest.count >= count else { return nil }
        let number = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(count)
        return number
    }

    mutating func vector(lengthBytes: Int) -> ArraySlice<UInt8>? {
        guard let length = number(bytes: lengthBytes), rest.count >= length else { return nil }
        defer { rest = rest.dropFirst(length) }
        return rest.prefix(length)
    }
}
