import Redis
import Testing

@Suite("RESP2: replies") struct RedisReaderTests {
    /// The replies that come from these bytes, fed in these pieces.
    static func replies(
        _ pieces: [ArraySlice<UInt8>], from reader: RedisReader = RedisReader()
    ) throws(RedisProtocolError) -> [RedisReply] {
        var replies: [RedisReply] = []
        for piece in pieces {
            reader.feed(Array(piece))
            while let reply = try reader.next() { replies.append(reply) }
        }
        return replies
    }

    static func bytes(_ text: String) -> RedisReply { .bytes(Array(text.utf8)) }

    static let rows: [(String, RedisReply)] = [
        ("+OK\r\n", .status(Array("OK".utf8))),
        ("+\r\n", .status([])),
        ("-ERR unknown command\r\n", .error(Array("ERR unknown command".utf8))),
        (":0\r\n", .integer(0)),
        (":-9223372036854775808\r\n", .integer(.min)),
        (":9223372036854775807\r\n", .integer(.max)),
        ("$5\r\nhello\r\n", bytes("hello")),
        ("$4\r\na\r\nb\r\n", bytes("a\r\nb")),
        ("$0\r\n\r\n", .bytes([])),
        ("$-1\r\n", .nothing),
        ("*-1\r\n", .nothing),
        ("*0\r\n", .list([])),
        ("*2\r\n$1\r\na\r\n:7\r\n", .list([bytes("a"), .integer(7)])),
        ("*3\r\n$-1\r\n*-1\r\n-ERR x\r\n", .list([.nothing, .nothing, .error(Array("ERR x".utf8))])),
        // What XREAD returns.
        (
            "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n5-0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
            .list([
                .list([
                    bytes("s"), .list([.list([bytes("5-0"), .list([bytes("a"), bytes("b")])])]),
                ])
            ])
        ),
    ]

    @Test(arguments: rows) func `a reply is read whole and from every two pieces`(
        _ text: String, _ expected: RedisReply
    ) throws {
        let all = Array(text.utf8)
        #expect(try Self.replies([all[...]]) == [expected])
        for place in 0...all.count {
            #expect(try Self.replies([all[..<place], all[place...]]) == [expected], "split at \(place)")
        }
        #expect(try Self.replies(all.indices.map { all[$0...$0] }) == [expected], "byte by byte")
        for count in 0..<all.count { #expect(try Self.replies([all[..<count]]) == [], "\(count) bytes are no reply") }
    }

    @Test func `replies that come together are read one after the other`() throws {
        let all = Array(Self.rows.map { $0.0 }.joined().utf8)
        let expected = Self.rows.map { $0.1 }
        #expect(try Self.replies([all[...]]) == expected)
        for place in 0...all.count {
            #expect(try Self.replies([all[..<place], all[place...]]) == expected, "split at \(place)")
        }
    }

    @Test func `a part of a body comes in pieces of a socket`() throws {
        let body = (0..<(256 << 10)).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let all = Array("$\(body.count)\r\n".utf8) + body + Array("\r\n+OK\r\n".utf8)
        let pieces = stride(from: 0, to: all.count, by: 16_384).map { all[$0..<min($0 + 16_384, all.count)] }
        #expect(try Self.replies(pieces) == [.bytes(body), .status(Array("OK".utf8))])
    }

    static let nonsense: [(String, String)] = [
        ("HTTP", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
        ("an empty line", "\r\n"),
        ("RESP3", "%1\r\n+a\r\n:1\r\n"),
        ("zero bytes", "\0\0\0\0"),
        ("an integer with letters", ":1a\r\n"),
        ("an integer beyond 64 bits", ":9223372036854775808\r\n"),
        ("no integer", ":\r\n"),
        ("a length with letters", "$1x\r\na\r\n"),
        ("a negative length", "$-2\r\n"),
        ("a negative count", "*-2\r\n"),
        ("a count beyond 31 bits", "*2147483648\r\n"),
        ("nonsense in an array", "*2\r\n:1\r\nx\r\n"),
        ("arrays in nine levels", String(repeating: "*1\r\n", count: 9) + ":1\r\n"),
    ]

    @Test(arguments: nonsense) func `what is no reply is an error that tells what came`(
        _ name: String, _ text: String
    ) {
        let reader = RedisReader()
        let error = #expect(throws: RedisProtocolError.self) {
            try Self.replies([Array(text.utf8)[...]], from: reader)
        }
        guard case .malformed(let detail) = error else {
            Issue.record("\(name): \(String(describing: error))")
            return
        }
        #expect(!detail.isEmpty && detail.utf8.allSatisfy { 0x20...0x7E ~= $0 })
        #expect(error?.description.contains(detail) == true)
    }

    @Test func `after an error the reader is dead and says the same again`() {
        let reader = RedisReader()
        #expect(reader.failure == nil)
        reader.feed(Array("HTTP/1.1 200 OK\r\n".utf8))
        let first = #expect(throws: RedisProtocolError.self) { try reader.next() }
        reader.feed(Array("+OK\r\n".utf8))
        let second = #expect(throws: RedisProtocolError.self) { try reader.next() }
        #expect(first == second && reader.failure == first)
    }

    @Test func `replies before the nonsense are read`() throws {
        let reader = RedisReader()
        reader.feed(Array("+OK\r\nHTTP".utf8))
        #expect(try reader.next() == .status(Array("OK".utf8)))
        #expect(throws: RedisProtocolError.self) { try reader.next() }
    }

    // MARK: bounds

    static let announced: [(String, RedisProtocolError?)] = [
        ("*1000000000\r\n", .tooManyElements),
        ("*2147483647\r\n", .tooManyElements),
        ("*11\r\n", .tooManyElements),
        ("*10\r\n", nil),
        ("*5\r\n*6\r\n", .tooManyElements),
        ("*5\r\n*5\r\n", nil),
        // Arrays of arrays that are complete count as well.
        ("*2\r\n*4\r\n:1\r\n:1\r\n:1\r\n:1\r\n*5\r\n", .tooManyElements),
    ]

    @Test(arguments: announced) func `an array with too many elements is refused when it is announced`(
        _ text: String, _ expected: RedisProtocolError?
    ) throws {
        let reader = RedisReader(elementCountMax: 10)
        reader.feed(Array(text.utf8))
        if let expected {
            #expect(throws: expected) { try reader.next() }
        } else {
            #expect(try reader.next() == nil)
        }
    }

    @Test func `the elements of one reply count, not those of all`() throws {
        let reader = RedisReader(elementCountMax: 3)
        for _ in 0..<5 {
            reader.feed(Array("*3\r\n:1\r\n:2\r\n:3\r\n".utf8))
            #expect(try reader.next()?.array?.count == 3)
        }
    }

    @Test func `by default an announced billion costs nothing`() {
        let reader = RedisReader()
        reader.feed(Array("*1000000000\r\n".utf8))
        #expect(throws: RedisProtocolError.tooManyElements) { try reader.next() }
    }

    @Test(arguments: [0, 1]) func `a reply has a bound of bytes, whole or incomplete`(_ excess: Int) throws {
        let reply = Array("$90\r\n".utf8) + [UInt8](repeating: 0x61, count: 90) + [0x0D, 0x0A]
        let reader = RedisReader(replyBytesMax: reply.count - excess)
        reader.feed(reply)
        if excess == 0 {
            #expect(try reader.next() == .bytes([UInt8](repeating: 0x61, count: 90)))
        } else {
            #expect(throws: RedisProtocolError.replyTooLong) { try reader.next() }
        }
        let incomplete = RedisReader(replyBytesMax: 90)
        incomplete.feed(Array("*2\r\n$1000000\r\n".utf8))
        #expect(try incomplete.next() == nil)
        incomplete.feed([UInt8](repeating: 0x61, count: 90))
        #expect(throws: RedisProtocolError.replyTooLong) { try incomplete.next() }
    }

    @Test func `elements that were read count to the bytes of their reply`() throws {
        let reader = RedisReader(replyBytesMax: 100)
        reader.feed(Array("*1000\r\n".utf8))
        let error = #expect(throws: RedisProtocolError.self) {
            for _ in 0..<50 {
                reader.feed(Array(":1\r\n".utf8))
                let reply = try reader.next()
                #expect(reply == nil)
            }
        }
        #expect(error == .replyTooLong)
    }

    @Test func `the bytes of one reply count, not those behind it`() throws {
        let reader = RedisReader(replyBytesMax: 10)
        reader.feed(Array(String(repeating: "+abcde\r\n", count: 100).utf8))
        for _ in 0..<100 { #expect(try reader.next() == .status(Array("abcde".utf8))) }
        #expect(try reader.next() == nil)
    }

    @Test func `what follows a reply counts for the next one`() throws {
        let reader = RedisReader(replyBytesMax: 40)
        reader.feed(Array("+OK\r\n$100\r\n".utf8) + [UInt8](repeating: 0x61, count: 50))
        #expect(try reader.next() == .status(Array("OK".utf8)))
        #expect(throws: RedisProtocolError.replyTooLong) { try reader.next() }
        // hiredis has no error, and would go on.
        reader.feed([UInt8](repeating: 0x61, count: 50) + Array("\r\n+OK\r\n".utf8))
        #expect(throws: RedisProtocolError.replyTooLong) { try reader.next() }
    }

    @Test(arguments: ["+", "-", ":", "$", "*", "*2\r\n$"]) func `a line has a bound`(_ start: String) throws {
        let reader = RedisReader()
        reader.feed(Array(start.utf8) + [UInt8](repeating: 0x31, count: RedisReader.lineBytesMax))
        #expect(try reader.next() == nil)
        reader.feed([0x31])
        #expect(throws: RedisProtocolError.lineTooLong) { try reader.next() }
    }

    @Test func `an incomplete reply is released with its reader`() throws {
        for _ in 0..<100 {
            let reader = RedisReader()
            reader.feed(Array("*3\r\n$5\r\nhello\r\n*2\r\n:1\r\n$100000\r\nabc".utf8))
            #expect(try reader.next() == nil)
        }
    }

    // MARK: what a reply is

    @Test func `a reply gives what it is, and nothing else`() {
        let error = RedisReply.error(Array("WRONGPASS invalid username-password pair".utf8))
        #expect(error.errorCode == "WRONGPASS")
        #expect(error.text == "WRONGPASS invalid username-password pair")
        #expect(error.data == nil && error.int == nil && error.array == nil)
        #expect(RedisReply.error(Array("OOM".utf8)).errorCode == "OOM")
        #expect(RedisReply.error([]).errorCode == "")
        #expect(RedisReply.status(Array("NOAUTH".utf8)).errorCode == nil)
        #expect(RedisReply.status([0x61]).data == [0x61] && RedisReply.bytes([0xFF]).data == [0xFF])
        #expect(RedisReply.bytes([0xFF]).text == "\u{FFFD}")
        #expect(RedisReply.integer(3).int == 3 && RedisReply.integer(3).text == nil)
        #expect(RedisReply.list([.nothing]).array == [.nothing])
        #expect(RedisReply.nothing.data == nil && RedisReply.nothing.text == nil)
    }
}
