import Foundation
import Glibc
import Testing

private let ok = "HTTP/1.1 200 OK\r\n"

@Suite("client: the examples of docs/upstream.md", .onOwnThreads) struct ExampleTests {
    private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    @Test func `the page shows what is tested here`() throws {
        let page = try String(
            contentsOf: Self.directory.appendingPathComponent("../../docs/upstream.md"), encoding: .utf8)
        let examples = try String(contentsOf: Self.directory.appendingPathComponent("Examples.swift"), encoding: .utf8)
        let shown = page.matches(of: /```swift\n((?s:.*?))```/).map { String($0.1) }
        #expect(shown.count == 6)
        for example in shown { #expect(examples.contains(example), "\(example)") }
    }

    @Test func `get, download, and many requests`() async throws {
        let server = try ScriptedServer(answering: ok + "Content-Length: 5\r\n\r\nhello")
        #expect(try await get(server.url()) == "hello")
        var length = 0
        try await download(server.url()) { length += $0.count }
        #expect(length == 5)
        let urls = (0..<20).map { server.url("/\($0)") }
        #expect(try await fetchAll(urls, urgent: [urls[3]]) == Dictionary(uniqueKeysWithValues: urls.map { ($0, 5) }))
    }

    @Test func `an error ends the other requests`() async throws {
        let server = try ScriptedServer { peer, number in
            _ = try peer.head()
            if number > 0 { peer.end() }
        }
        await #expect(throws: (any Error).self) {
            try await fetchAll([server.url("/a"), server.url("/b")], urgent: [])
        }
    }

    @Test func `upload a file`() async throws {
        let path = "/tmp/larder-example-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        try Data("hello".utf8).write(to: URL(fileURLWithPath: path))
        defer { _ = unsafe unlink(path) }
        let server = try ScriptedServer { peer, _ in
            let head = try peer.head()
            let body = try peer.bytes(5)
            let isRight = head.contains("Content-Type: application/octet-stream") && body == Array("hello".utf8)
            try peer.send("HTTP/1.1 \(isRight ? 201 : 400) x\r\nContent-Length: 0\r\n\r\n")
        }
        #expect(try await upload(path, to: server.url()) == 201)
    }

    @Test func `through a proxy`() async throws {
        let proxy = try ScriptedServer(answering: ok + "Cache-Status: larder; hit\r\nContent-Length: 0\r\n\r\n")
        let answer = try await throughLarder("https://example.org/", port: proxy.address.port)
        #expect(answer.status == 200 && answer.cache == "larder; hit")
    }

    @Test func `through the engine`() async throws {
        let proxy = try ScriptedServer { peer, _ in
            while true {
                let head = try peer.head()
                if !head.contains("Proxy-Authorization: Basic ZmxlZXQ6cGFzcw==") {
                    try peer.send(
                        "HTTP/1.1 407 x\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n")
                } else if head.hasPrefix("GET http://mirror.example/a HTTP/1.1\r\n"),
                    head.contains("\r\nAuthorization: Bearer tok\r\n")
                {
                    try peer.send(ok + "Content-Length: 5\r\n\r\nhello")
                } else {
                    return
                }
            }
        }
        for (name, value) in [("CORP_PASSWORD", "pass"), ("MIRROR_TOKEN", "tok")] {
            _ = unsafe setenv(name, value, 1)
        }
        #expect(try await throughTheEngine("http://mirror.example/a", proxy: "http://\(proxy.address)") == "hello")
        let refused = try await throughTheEngine("http://127.0.0.1/", proxy: "http://\(proxy.address)")
        #expect(refused == "refused: destination-forbidden")
    }
}
