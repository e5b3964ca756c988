import Access
import ClientSetup
import EventLoop
import Foundation
import Message
import Server
import Settings
import TLS
import Testing

/// An authority with one root, on a machine that trusts enough others to make large pages.
private let authority = Pages(
    roots: [Array("the root".utf8)],
    systemRoots: (0..<300).map { number in Array(repeating: UInt8(number % 251), count: 1500 + number) },
    now: WallTime(secondsSinceEpoch: 784_111_777), sha1: Digest.sha1)

extension Scenario {
    /// A request in origin-form, as a client sends it that does not know the proxy as its proxy.
    fileprivate func page(_ line: String, _ fields: String...) throws -> SeenMessage {
        let client = try client()
        try client.send(
            ([line + " HTTP/1.1", "Host: proxy.example.org:3128"] + fields + ["", ""]).joined(separator: "\r\n"))
        return try client.response(to: String(line.prefix { $0 != " " }))
    }
}

@Suite("The pages of the proxy port")
struct PageScenarios {
    static let rows: [(path: String, type: String)] = [
        ("/ca.pem", "application/x-x509-ca-cert"), ("/ca-bundle.pem", "application/x-pem-file"),
        ("/truststore.jks", "application/x-java-keystore"), ("/setup.sh", "text/x-shellscript; charset=utf-8"),
        ("/proxy.pac", "application/x-ns-proxy-autoconfig"), ("/wpad.dat", "application/x-ns-proxy-autoconfig"),
    ]
    @Test(arguments: rows) func `a page has its type, its length, an entity tag, and is always asked for again`(
        _ row: (path: String, type: String)
    ) throws {
        try scenario(pages: authority) { s in
            let page = try s.page("GET \(row.path)")
            #expect(page.status == 200 && page["Content-Type"] == row.type, "\(page.head)")
            #expect(page["Content-Length"] == "\(page.body.count)" && !page.body.isEmpty)
            #expect(page["Cache-Control"] == "no-cache")
            let tag = try #require(page["ETag"])

            let head = try s.page("HEAD \(row.path)")
            #expect(head.status == 200 && head["Content-Length"] == "\(page.body.count)" && head.body.isEmpty)

            let known = try s.page("GET \(row.path)", "If-None-Match: \"x\", \(tag)")
            #expect(known.status == 304 && known["ETag"] == tag && known["Content-Length"] == nil, "\(known.head)")
            #expect(try s.page("GET \(row.path)?a=b", "If-None-Match: \"x\"").body == page.body)
        }
    }

    @Test func `a page is whole, however slowly it is read, on a connection that goes on`() throws {
        try scenario(pages: authority) { s in
            let client = try s.client(receiveBuffer: 4096)
            for _ in 1...2 {
                try client.send("GET /ca-bundle.pem HTTP/1.1\r\nHost: h\r\n\r\n")
                let page = try client.response()
                #expect(page.body.count > 500_000 && PEMCertificates.read(page.body).count == 301)
            }
        }
    }

    @Test func `clients of one worker share the bytes of a page`() throws {
        try scenario(pages: authority, { configuration, _ in configuration.workers = .count(1) }) { s in
            let before = s.tier.memory.statistics.usedBytes
            _ = try s.page("GET /ca-bundle.pem")
            let after = s.tier.memory.statistics.usedBytes
            _ = try s.page("GET /ca-bundle.pem")
            #expect(after > before + 500_000 && s.tier.memory.statistics.usedBytes == after)
        }
    }

    @Test(arguments: ["/ca.pem", "/ca-bundle.pem", "/truststore.jks"])
    func `without an authority there are no certificates, and a sentence says so`(_ path: String) throws {
        try scenario { s in
            let answer = try s.page("GET \(path)")
            #expect(answer.status == 404 && answer.text.contains("no certificate authority"), "\(answer)")
            #expect(try s.page("HEAD \(path)").status == 404)
        }
    }

    @Test(arguments: ["/setup.sh", "/proxy.pac"]) func `without an authority a machine can still be set up`(
        _ path: String
    ) throws {
        try scenario { s in
            let page = try s.page("GET \(path)")
            #expect(page.text.contains("proxy.example.org:3128"))
        }
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH"]) func `pages are read, and nothing else`(_ method: String)
        throws
    {
        try scenario(pages: authority) { s in
            let answer = try s.page("\(method) /ca.pem")
            #expect(answer.status == 405 && answer["Allow"] == "GET, HEAD", "\(answer)")
        }
    }

    @Test(arguments: [
        "/", "/ca", "/ca.pem/", "/CA.PEM", "/%63a.pem", "//ca.pem", "/./ca.pem", "/intermediate.key", "/root.pem",
    ])
    func `no other path is answered`(_ path: String) throws {
        try scenario(pages: authority) { s in
            let answer = try s.page("GET \(path)")
            #expect(answer.status == 400 && answer.cacheStatus.contains("detail=not-a-proxy-request"), "\(answer)")
        }
    }

    @Test func `a request with a body is no request for a page`() throws {
        try scenario(pages: authority) { s in
            let client = try s.client()
            try client.send("GET /ca.pem HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nGET ")
            #expect(try client.response().status == 400)
            try client.expectClosed()
        }
    }

    @Test(arguments: ["", "a~b", "-x"]) func `a Host field that no script may contain is refused`(_ host: String) throws
    {
        try scenario { s in
            for path in ["/setup.sh", "/proxy.pac"] {
                let client = try s.client()
                try client.send("GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
                let answer = try client.response()
                #expect(answer.status == 400 && answer.text.contains("Host"), "\(answer)")
            }
        }
    }

    @Test func `a client that may not use the proxy gets no page`() throws {
        try scenario(
            pages: authority,
            { configuration, _ in configuration.access.namedClients = [AddressRange("192.0.2.1")!] }
        ) { s in
            let answer = try s.page("GET /ca.pem")
            #expect(answer.status == 403)
        }
    }

    @Test func `a client without a password gets the pages, since it has to begin somewhere`() throws {
        try scenario(
            pages: authority,
            { configuration, files in
                configuration.access.authentication.basic.usersFile = try files.write(
                    "users", "ann:$1$salt$qJH7.N4xYta3aEG/dfqo/0\n")
                configuration.access.namedClients = nil
            }
        ) { s in
            let page = try s.page("GET /ca.pem")
            let other = try s.client().get("/a")
            #expect(page.status == 200 && other.status == 407)
        }
    }

    @Test func `the same path in absolute-form is for an origin`() throws {
        try scenario(pages: authority) { s in
            s.origin.expects("GET /ca.pem").replies(200, body: "of the origin")
            let answer = try s.client().get("/ca.pem")
            #expect(answer.text == "of the origin")
        }
    }

    @Test func `a reload changes the pages`() throws {
        try scenario(pages: authority) { s in
            #expect(try s.page("GET /ca.pem").status == 200)
            try s.adopt { _, _ in }
            try s.eventually("the pages are gone") { try s.page("GET /ca.pem").status == 404 }
        }
    }
}
