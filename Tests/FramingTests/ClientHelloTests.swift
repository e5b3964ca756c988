import Framing
import Testing

@Suite("RFC 8446 §4.1.2: a ClientHello is read before it is answered")
struct ClientHelloTests {
    // MARK: the parts

    static func vector(_ content: [UInt8], lengthBytes: Int) -> [UInt8] {
        (0..<lengthBytes).reversed().map { UInt8(truncatingIfNeeded: content.count >> (8 * $0)) } + content
    }

    static func serverName(_ name: [UInt8], type: UInt8 = 0) -> [UInt8] {
        [0, 0] + vector(vector([type] + vector(name, lengthBytes: 2), lengthBytes: 2), lengthBytes: 2)
    }

    static func protocols(_ names: [String]) -> [UInt8] {
        let list = names.flatMap { vector(Array($0.utf8), lengthBytes: 1) }
        return [0, 16] + vector(vector(list, lengthBytes: 2), lengthBytes: 2)
    }

    static func encrypted(_ content: [UInt8]) -> [UInt8] { [0xFE, 0x0D] + vector(content, lengthBytes: 2) }

    static func body(_ extensions: [UInt8]?, suites: [UInt8] = [0x13, 0x01], compression: [UInt8] = [0]) -> [UInt8] {
        [3, 3] + [UInt8](repeating: 7, count: 32) + vector([1, 2, 3], lengthBytes: 1) + vector(suites, lengthBytes: 2)
            + vector(compression, lengthBytes: 1) + (extensions.map { vector($0, lengthBytes: 2) } ?? [])
    }

    static func message(_ body: [UInt8], type: UInt8 = 1) -> [UInt8] { [type] + vector(body, lengthBytes: 3) }

    /// One record for each piece of at most so many bytes.
    static func records(_ message: [UInt8], of size: Int = 1 << 14) -> [UInt8] {
        stride(from: 0, to: message.count, by: size).flatMap {
            [0x16, 3, 1] + vector(Array(message[$0..<min($0 + size, message.count)]), lengthBytes: 2)
        }
    }

    static let name = Array("files.example.org".utf8)
    static let usual = serverName(name) + protocols(["h2", "http/1.1"]) + [0xAA, 0xAA, 0, 1, 0]
    static let whole = ClientHello(serverName: name, protocols: [Array("h2".utf8), Array("http/1.1".utf8)])

    // MARK: what is read

    static let rows: [(what: String, body: [UInt8], expected: ClientHello.Reading)] = [
        ("name and protocols", body(usual), .complete(whole)),
        (
            "extensions in another order", body(protocols(["x"]) + serverName([1])),
            .complete(ClientHello(serverName: [1], protocols: [[0x78]]))
        ),
        ("no extension that matters", body([0, 43, 0, 3, 2, 3, 4]), .complete(ClientHello())),
        ("no extensions, as TLS 1.2 allows", body(nil), .complete(ClientHello())),
        (
            "a name with a NUL is handed on as it is", body(serverName([0x61, 0, 0x62])),
            .complete(ClientHello(serverName: [0x61, 0, 0x62]))
        ),
        (
            "an encrypted hello, or random bytes like one", body(usual + encrypted([0, 0, 1, 0, 1, 9, 0, 0, 0, 0])),
            .complete(ClientHello(serverName: name, protocols: whole.protocols, encryptedHello: .outer))
        ),
        (
            "the hello that was encrypted", body(encrypted([1]) + serverName([1])),
            .complete(ClientHello(serverName: [1], encryptedHello: .inner))
        ),
        ("two encrypted hellos", body(encrypted([0, 1]) + encrypted([0, 1])), .malformed),
        ("an encrypted hello without a type", body(encrypted([])), .malformed),
        ("an encrypted hello without content", body(encrypted([0])), .malformed),
        ("an encrypted hello of another type", body(encrypted([2, 0])), .malformed),
        ("bytes behind the type of an inner hello", body(encrypted([1, 0])), .malformed),
        ("bytes behind the extensions", body(usual) + [0], .malformed),
        ("two names", body(serverName(name) + serverName(name)), .malformed),
        ("two lists of protocols", body(protocols(["a"]) + protocols(["a"])), .malformed),
        ("an empty name", body(serverName([])), .malformed),
        ("a name of another type", body(serverName(name, type: 1)), .malformed),
        (
            "two names in one list",
            body([0, 0] + vector(vector([0, 0, 1, 1, 0, 0, 1, 1], lengthBytes: 2), lengthBytes: 2)), .malformed
        ),
        ("an empty list of names", body([0, 0, 0, 2, 0, 0]), .malformed),
        ("an empty list of protocols", body([0, 16, 0, 2, 0, 0]), .malformed),
        ("an empty protocol", body([0, 16, 0, 3, 0, 1, 0]), .malformed),
        ("an extension longer than the extensions", body([0, 0, 0, 9, 0]), .malformed),
        ("half an extension", body([0, 0, 0]), .malformed),
        ("no cipher suite", body(usual, suites: []), .malformed),
        ("half a cipher suite", body(usual, suites: [1, 2, 3]), .malformed),
        ("no compression method", body(usual, compression: []), .malformed),
        ("nothing", [], .malformed),
        ("a random number that is cut off", [3, 3, 1, 2], .malformed),
    ]

    @Test(arguments: rows)
    func `what the message says`(_ row: (what: String, body: [UInt8], expected: ClientHello.Reading)) {
        #expect(ClientHello.read(Self.records(Self.message(row.body)).span) == row.expected, "\(row.what)")
    }

    @Test(arguments: [1, 2, 3, 5, 40, 1 << 14])
    func `the message may be split over records, and arrive byte by byte`(_ size: Int) {
        let bytes = Self.records(Self.message(Self.body(Self.usual)), of: size)
        var asked = 0
        var needs = 0
        for count in 0..<bytes.count {
            let reading = ClientHello.read(Array(bytes[..<count]).span)
            guard case .incomplete(let more) = reading else {
                Issue.record("\(count) of \(bytes.count) bytes: \(reading)")
                return
            }
            // Nothing is decided before as many bytes have arrived as were asked for.
            #expect(more > count && more <= bytes.count && more >= needs)
            if count >= needs { asked += 1 }
            needs = more
        }
        #expect(ClientHello.read(bytes.span) == .complete(Self.whole))
        // Whoever asks only when enough has arrived asks twice for each record: for its header, and for the rest.
        #expect(asked <= 2 * ((bytes.count + size) / size + 1))
        // What follows does not matter.
        #expect(ClientHello.read((bytes + [0x17, 3, 3, 0, 1, 0]).span) == .complete(Self.whole))
    }

    static let otherBytes: [(what: String, bytes: [UInt8], expected: ClientHello.Reading)] = [
        ("nothing yet", [], .incomplete(needs: 5)),
        ("an alert record", [0x15, 3, 3, 0, 2, 2, 40], .malformed),
        ("SSL 2", [0x80, 0x2E, 1, 3, 1], .malformed),
        ("another major version", [0x16, 2, 0, 0, 5], .malformed),
        ("an empty record", [0x16, 3, 1, 0, 0], .malformed),
        ("a record of more than 2^14 bytes", [0x16, 3, 1, 0x40, 1], .malformed),
        ("another message", records(message(body(usual), type: 2)), .malformed),
        (
            "another record within the message",
            Array(records(message(body(usual)), of: 20).prefix(25)) + [0x17, 3, 3, 0, 1, 0], .malformed
        ),
        ("a record that ends beyond 16 KiB", [0x16, 3, 1, 0x40, 0], .tooLong),
        ("a message that ends beyond 16 KiB", [0x16, 3, 1, 0, 4, 1, 0, 0x40, 0], .tooLong),
        ("many records without end", records(message([UInt8](repeating: 0, count: 12_000)), of: 1), .tooLong),
    ]

    @Test(arguments: otherBytes)
    func `what is no ClientHello`(_ row: (what: String, bytes: [UInt8], expected: ClientHello.Reading)) {
        #expect(ClientHello.read(row.bytes.span) == row.expected, "\(row.what)")
    }
}
