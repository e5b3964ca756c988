import Framing
import Message
import Testing

@Suite("FieldMemory: heads whose lines are repeated") struct FieldMemoryTests {
    private static func get(_ path: String, _ lines: String...) -> String {
        "GET http://h.example\(path) HTTP/1.1\r\n" + lines.map { "\($0)\r\n" }.joined() + "\r\n"
    }

    private static let lines = ["Host: h.example", "Accept: */*", "X-Own: 1", "accept-encoding: gzip"]

    @Test func `lines behind request lines of any length`() {
        expectSameWithMemory(
            ["/", "/a/long/path/that/moves/all/offsets", "/b", "/", "/"].map { path in
                (7, "GET http://h.example\(path) HTTP/1.1\r\n" + Self.lines.joined(separator: "\r\n") + "\r\n\r\n")
            })
    }

    @Test func `what follows the head, or lacks at its end, is as without`() {
        let head = Self.get("/a", "Host: h.example", "Accept: */*")
        expectSameWithMemory([
            (7, head), (7, head), (7, head + head), (7, head + "body"), (7, String(head.dropLast(2))),
            (7, String(head.dropLast())), (7, "\r\n" + head), (7, head),
        ])
    }

    @Test func `one byte that differs is seen, wherever it is`() {
        let head = Self.get("/a", "Host: h.example", "Range: bytes=0-1", "X: \(String(repeating: "y", count: 100))")
        let bytes = Array(head.utf8)
        for at in 26..<bytes.count {
            for byte: UInt8 in [0x00, 0x20, 0x3A, 0x41, 0x0A, 0x0D, 0xFF] where byte != bytes[at] {
                var changed = bytes
                changed[at] = byte
                expectSameWithMemory([(7, head), (7, head), (7, String(decoding: changed, as: UTF8.self)), (7, head)])
            }
        }
    }

    @Test func `connections that share an entry do not get each other's lines`() {
        let (one, two) = (Self.get("/", "Host: h.example", "A: 1"), Self.get("/", "Host: h.example", "B: 2"))
        expectSameWithMemory([(1, one), (257, two), (1, one), (257, two), (1, two), (257, one), (1, one), (1, one)])
    }

    @Test func `limits hold for lines that are remembered`() {
        let head = Self.get("/", "Host: h.example", "A: 1", "B: 2")
        let long = "GET http://h.example/\(String(repeating: "x", count: 100)) HTTP/1.1\r\n"
        var limits = Limits()
        limits.headBytesMax = 120
        expectSameWithMemory(
            [(7, head), (7, head), (7, long + "Host: h.example\r\nA: 1\r\nB: 2\r\n\r\n"), (7, head)], limits: limits)
        let memory = HeadMemory()
        var parsed = RequestHead()
        var counts: [Int?] = []
        for fields in [100, 100, 2] {
            var limits = Limits()
            limits.fieldCountMax = fields
            var progress = HeadProgress()
            let bytes = Array(head.utf8)
            do throws(FramingError) {
                _ = try parseRequestHead(
                    bytes.span, into: &parsed, progress: &progress, limits: limits, memory: memory, owner: 7)
                counts.append(parsed.fields.lines.count)
            } catch { counts.append(error == .tooManyFields ? nil : -1) }
        }
        #expect(counts == [3, 3, nil])
    }

    @Test(arguments: [0, 1, 31, 32, 33, 60]) func `any number of lines`(_ count: Int) {
        let head = Self.get("/").dropLast(2) + (0..<count).map { "Field-\($0): \($0)\r\n" }.joined() + "\r\n"
        expectSameWithMemory(Array(repeating: (7, String(head)), count: 4))
    }

    @Test(arguments: [900, 1000, 1100, 5000]) func `lines of any length`(_ count: Int) {
        let head = Self.get("/", "Host: h.example", "X: \(String(repeating: "y", count: count))")
        expectSameWithMemory(Array(repeating: (7, head), count: 4))
    }

    @Test func `a connection that sends something new each time`() {
        expectSameWithMemory(
            (0..<20).map { (7, Self.get("/", "Host: h.example", "X: \($0)")) } + [(7, Self.get("/", "X: 19"))])
    }

    @Test func `a host that is only in the lines`() {
        let head = "GET /a HTTP/1.1\r\nHost: h.example\r\n\r\n"
        expectSameWithMemory([
            (7, head), (7, head), (7, "GET /a HTTP/1.1\r\nHost: i.example\r\n\r\n"), (7, head), (7, head),
        ])
        expectSameWithMemory(Array(repeating: (7, "GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), count: 3))
    }
}
