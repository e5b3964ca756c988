import Admin
import EventLoop
import Testing

@testable import larder
import JSON

@Suite("larder ls, du and top")
struct ListingTests {
    private func object(_ url: String, bytes: Int, hits: Int = 0, zone: String = "default") -> JSONValue {
        .object([
            .init(name: "url", value: .string(url)), .init(name: "bytes", value: .integer(Int64(bytes))),
            .init(name: "hits", value: .integer(Int64(hits))), .init(name: "zone", value: .string(zone)),
            .init(name: "status", value: .integer(200)), .init(name: "state", value: .string("fresh")),
            .init(name: "age", value: .integer(61)), .init(name: "ttl", value: .integer(7200)),
            .init(name: "type", value: .string("text/html")), .init(name: "variants", value: .integer(2)),
            .init(name: "vary", value: .array([.string("accept")])),
        ])
    }

    @Test func `a line has what there is to know`() {
        let line = objectLine(object("http://a/b", bytes: 2048, hits: 1234))
        let words = line.split(separator: " ").joined(separator: " ")
        #expect(words == "fresh 200 2.0 KiB 1 min 1 s 2 h 0 min 1,234 text/html http://a/b (by accept; 2 stored)")
    }

    @Test func `what has its key by a digest has its addresses in place of the key, and counts for the first`() throws {
        var object = ObjectDescription(
            key: Array("http://f/sha256:1#digest".utf8),
            addresses: ["http://a/1", "http://b/1?token=secret"].map { Array($0.utf8) })
        object.bytes = 7
        let json = try JSONValue(parsing: object.json)
        #expect(json["url"]?.text == "http://f/sha256:1#digest")
        #expect(json["addresses"]?.elements?.map(\.text) == ["http://a/1", "http://b/1?token=***"])
        #expect(objectLine(json).hasSuffix(" http://a/1  (and 1 more)"))
        var usage = Usage()
        usage.add(json)
        #expect(usage.hosts == ["a": .init(records: 1, bytes: 7)])
        object.addresses = []
        #expect(try JSONValue(parsing: object.json)["addresses"] == nil)
    }

    @Test func `what others chose stays in its line and acts on no terminal`() {
        let line = objectLine(object("http://a/\u{1B}[2J\u{9B}31m\r\nfresh 200 http://b/", bytes: 1).legible)
        #expect(line.contains("http://a/\\u001b[2J\\u009b31m\\r\\nfresh 200 http://b/"))
        let answer = Array(
            "{\"sections\":[{\"name\":\"a\\n\",\"lines\":[{\"name\":\"b\",\"value\":\"\\u001b]0;x\\u0007\"}]}],\"decision\":\"c\"}"
                .utf8)
        let printed = Locked("")
        let console = Console(print: { text in printed.withLock { $0 += text } }, error: { _ in })
        #expect(show(answer, Arguments(), console, as: explanationText) == ExitStatus.done)
        let text = printed.withLock { $0 }
        #expect(text.hasPrefix("a\\n\n  b") && text.contains("\\u001b]0;x\\u0007") && !text.utf8.contains(0x1B))
    }

    @Test func `du sums by host and by zone, the largest first`() throws {
        var usage = Usage()
        usage.add(object("http://a/1", bytes: 10))
        usage.add(object("https://b:8443/1", bytes: 30, zone: "big"))
        usage.add(object("http://a:81/2", bytes: 5))
        #expect(usage.total == .init(records: 3, bytes: 45))
        #expect(usage.hosts == ["a": .init(records: 2, bytes: 15), "b": .init(records: 1, bytes: 30)])
        let json = try JSONValue(parsing: Array(usage.json.utf8))
        #expect(json["hosts"]?.elements?.map { $0["host"]?.text } == ["b", "a"])
        #expect(json["zones"]?.elements?.map { $0["bytes"] } == [.integer(30), .integer(15)])
        #expect(json["records"] == .integer(3) && json["bytes"] == .integer(45))
        let lines = usage.text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        #expect(
            lines == ["By host", "30 B 1 b", "15 B 2 a", "By zone", "30 B 1 big", "15 B 2 default", "45 B 3 total"])
    }

    @Test func `top keeps the largest and no more`() {
        var top = Top<String>(3)
        for (index, weight) in [5, 1, 9, 5, 7, 0, 9].enumerated() { top.add(Int64(weight)) { "\(weight)/\(index)" } }
        #expect(top.values == ["9/2", "9/6", "7/4"])
        var made = 0
        top.add(1) {
            made += 1
            return ""
        }
        #expect(made == 0)
    }
}

@Suite("Answers of lines")
struct LineReaderTests {
    @Test(arguments: [1, 2, 3, 5, 7, 1000]) func `lines are the same however they come`(_ size: Int) {
        var reader = LineReader()
        var lines: [String] = []
        let bytes = Array("ab\ncd\ne\n\nrest".utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            reader.receive(bytes[start..<min(start + size, bytes.count)]) {
                lines.append(String(decoding: $0, as: UTF8.self))
            }
        }
        #expect(lines == ["ab", "cd", "e", ""])
    }
}
