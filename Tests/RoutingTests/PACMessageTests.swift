import Routing
import Testing

@Suite("The messages of the process for PAC files") struct PACMessageTests {
    static let requests: [PACRequest] = [
        .script([]), .script([1, 2, 3]), .question(url: Array("http://a/".utf8), host: Array("a".utf8)),
        .question(url: [], host: []), .question(url: [UInt8](repeating: 1, count: 70), host: [2]),
    ]
    static let replies: [PACReply] = [.ready, .answer([]), .answer([9, 9]), .failure([]), .failure(Array("why".utf8))]

    @Test(arguments: requests) func `a request survives its bytes, however they arrive`(_ request: PACRequest) throws {
        for size in 1...request.bytes.count {
            var buffer = PACMessageBuffer(contentBytesMax: 200)
            var found: [PACRequest] = []
            var rest = (request.bytes + request.bytes)[...]
            while !rest.isEmpty {
                buffer.append(rest.prefix(size))
                rest = rest.dropFirst(size)
                while let message = try buffer.next() { found.append(try PACRequest(message)) }
            }
            #expect(found == [request, request] && buffer.isEmpty)
        }
    }

    @Test(arguments: replies) func `a reply survives its bytes`(_ reply: PACReply) throws {
        var buffer = PACMessageBuffer(contentBytesMax: 10)
        buffer.append(reply.bytes)
        let message = try #require(try buffer.next())
        #expect(try PACReply(message) == reply)
    }

    static let damaged: [(bytes: [UInt8], fault: PACMessageFault)] = [
        ([0, 0, 0, 0], .empty), ([0, 0, 0, 12], .tooLong), ([255, 255, 255, 255], .tooLong), ([0, 0, 1, 0], .tooLong),
    ]
    @Test(arguments: damaged) func `a length that cannot be is a fault before its bytes arrive`(
        bytes: [UInt8], fault: PACMessageFault
    ) throws {
        var buffer = PACMessageBuffer(contentBytesMax: 10)
        buffer.append(bytes)
        #expect(throws: fault) { _ = try buffer.next() }
    }

    @Test func `a message that says less than its kind needs, or has no kind, is a fault`() {
        for (message, fault) in [
            ([], .unknownKind), ([9], .unknownKind), ([2], .incomplete), ([2, 0], .incomplete),
            ([2, 0, 5, 1], .incomplete),
        ] as [([UInt8], PACMessageFault)] {
            #expect(throws: fault, "\(message)") { _ = try PACRequest(message) }
        }
        for message in [[], [1], [3, 1], [6]] as [[UInt8]] {
            #expect(throws: PACMessageFault.unknownKind, "\(message)") { _ = try PACReply(message) }
        }
    }
}
