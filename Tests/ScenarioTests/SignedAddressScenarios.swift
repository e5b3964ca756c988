import Foundation
import Message
import Testing

@Suite("Signed addresses: one response for all who have proven their access")
struct SignedAddressScenarios {
    /// The store and the origin that redirects to it are one host here.
    private static let rules =
        "rules: [ { match: { host: 127.0.0.1 }, key: { signature: [ token ] } } ]"
    private static let (alice, bob): (UInt32, UInt32) = (0x7F00_0001, 0x7F00_0002)

    /// As Amazon S3 and others sign.
    private static func signed(_ path: String, _ signature: String, lifetime: Int = 300, at: String = now) -> String {
        "\(path)?X-Amz-Credential=k&X-Amz-Date=\(at)&X-Amz-Expires=\(lifetime)&X-Amz-Signature=\(signature)"
    }
    private static let now: String = {
        var bytes: [UInt8] = []
        appendTimestamp(WallTime(secondsSinceEpoch: Int64(Date().timeIntervalSince1970)), to: &bytes)
        return String(decoding: bytes.filter { $0 != 0x2D && $0 != 0x3A } + [0x5A], as: UTF8.self)
    }()

    @Test func `a new signature is no new response, once the origin has accepted it`() throws {
        try scenario(cache: Self.rules) { s in
            let client = try s.client(from: Self.alice)
            s.origin.expects("GET \(Self.signed("/o", "1"))").replies(
                200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "secret")
            #expect(try client.get(Self.signed("/o", "1")).text == "secret")
            // The same address again: the origin has let this client in.
            #expect(try client.get(Self.signed("/o", "1")).cacheStatus.hasPrefix("larder; hit"))
            // Another address: the origin says that it is right, and sends no body.
            s.origin.expects("GET \(Self.signed("/o", "2"))", "If-None-Match: \"1\"").replies(304, "ETag: \"1\"")
            let second = try client.get(Self.signed("/o", "2"))
            #expect(second.status == 200 && second.text == "secret")
            #expect(try client.get(Self.signed("/o", "2")).cacheStatus.hasPrefix("larder; hit"))
        }
    }

    static let refusals: [(status: Int, lines: [String])] = [
        (403, ["Cache-Control: max-age=60"]), (400, []), (404, ["Cache-Control: public, max-age=60"]), (503, []),
        (302, ["Location: /elsewhere", "Cache-Control: max-age=60"]),
    ]
    @Test(arguments: refusals) func `who has no proof gets what the origin says, and nobody else gets that`(
        _ row: (status: Int, lines: [String])
    ) throws {
        let rules = "rules: [ { match: { host: 127.0.0.1 }, key: { signature: known }, policy: [ stale-on-error ] } ]"
        try scenario(cache: rules) { s in
            let (alice, bob) = (try s.client(from: Self.alice), try s.client(from: Self.bob))
            s.origin.expects("GET \(Self.signed("/o", "1"))").replies(
                200, "Cache-Control: max-age=60, stale-if-error=60", "ETag: \"1\"", body: "secret")
            #expect(try alice.get(Self.signed("/o", "1")).text == "secret")
            for address in [Self.signed("/o", "1"), Self.signed("/o", "forged")] {
                for _ in 0..<2 {
                    s.origin.expects("GET \(address)", "If-None-Match: \"1\"").replies(
                        row.status, row.lines, Array("no".utf8))
                    let answer = try bob.get(address)
                    #expect(answer.status == row.status && answer.text == "no")
                }
            }
            #expect(try alice.get(Self.signed("/o", "1")).text == "secret")
        }
    }

    @Test func `the origin that cannot be asked proves nothing`() throws {
        try scenario(cache: Self.rules) { s in
            let (alice, bob) = (try s.client(from: Self.alice), try s.client(from: Self.bob))
            s.origin.expects("GET /o?token=1").replies(200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "secret")
            #expect(try alice.get("/o?token=1").text == "secret")
            #expect(try bob.get("/o?token=1", "Cache-Control: only-if-cached").status == 504)
            #expect(try bob.get("/o?token=1", "Cache-Control: max-stale, only-if-cached").status == 504)
            #expect(try alice.get("/o?token=1", "Cache-Control: only-if-cached").text == "secret")
        }
    }

    @Test func `an address without a signature is not the signed one`() throws {
        try scenario(cache: Self.rules) { s in
            let client = try s.client()
            s.origin.expects("GET \(Self.signed("/o", "1"))").replies(200, "Cache-Control: max-age=60", body: "secret")
            #expect(try client.get(Self.signed("/o", "1")).text == "secret")
            s.origin.expects("GET /o", "!If-None-Match").replies(403, body: "no")
            #expect(try client.get("/o").text == "no")
        }
    }

    @Test func `a range is part of the one response`() throws {
        try scenario(cache: Self.rules) { s in
            let (alice, bob) = (try s.client(from: Self.alice), try s.client(from: Self.bob))
            s.origin.expects("GET \(Self.signed("/o", "1"))").replies(
                200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "0123456789")
            #expect(try alice.get(Self.signed("/o", "1")).text == "0123456789")
            #expect(try alice.get(Self.signed("/o", "1"), "Range: bytes=2-4").text == "234")
            s.origin.expects("GET \(Self.signed("/o", "2"))", "If-None-Match: \"1\"").replies(403, body: "no")
            #expect(try bob.get(Self.signed("/o", "2"), "Range: bytes=2-4").text == "no")
            s.origin.expects("GET \(Self.signed("/o", "3"))", "If-None-Match: \"1\"").replies(304, "ETag: \"1\"")
            #expect(try bob.get(Self.signed("/o", "3"), "Range: bytes=2-4").text == "234")
        }
    }

    @Test func `nobody waits for the answer to a client that has not proven its access`() throws {
        try scenario(cache: Self.rules) { s in
            let (alice, bob) = (try s.client(from: Self.alice), try s.client(from: Self.bob))
            let gate = Gate()
            s.origin.expects("GET \(Self.signed("/o", "1"))").waits(for: gate).replies(
                200, "Cache-Control: max-age=60", body: "secret")
            s.origin.expects("GET \(Self.signed("/o", "2"))").replies(403, body: "no")
            try alice.ask("GET", Self.signed("/o", "1"))
            #expect(try bob.get(Self.signed("/o", "2")).text == "no")
            gate.open()
            #expect(try alice.response().text == "secret")
        }
    }

    @Test func `HEAD is not folded: the address is signed for GET`() throws {
        try scenario(cache: Self.rules) { s in
            let client = try s.client()
            s.origin.expects("GET \(Self.signed("/o", "1"))").replies(200, "Cache-Control: max-age=60", body: "secret")
            try client.get(Self.signed("/o", "1"))
            s.origin.expects("HEAD \(Self.signed("/o", "1"))").replies(403)
            try client.ask("HEAD", Self.signed("/o", "1"))
            #expect(try client.response(to: "HEAD").status == 403)
        }
    }

    @Test func `what is changed through a signed address is changed for all`() throws {
        try scenario(cache: Self.rules) { s in
            let client = try s.client()
            s.origin.expects("GET \(Self.signed("/o", "1"))").replies(200, "Cache-Control: max-age=60", body: "old")
            #expect(try client.get(Self.signed("/o", "1")).text == "old")
            s.origin.expects("DELETE /o").replies(204)
            try client.ask("DELETE", "/o")
            #expect(try client.response().status == 204)
            s.origin.expects("GET \(Self.signed("/o", "1"))").replies(200, "Cache-Control: max-age=60", body: "new")
            #expect(try client.get(Self.signed("/o", "1")).text == "new")
        }
    }

    @Test func `other parameters are part of the key`() throws {
        try scenario(cache: Self.rules) { s in
            let client = try s.client()
            for version in ["1", "2"] {
                s.origin.expects("GET /o?version=\(version)&token=t").replies(
                    200, "Cache-Control: max-age=60", body: version)
                #expect(try client.get("/o?version=\(version)&token=t").text == version)
            }
        }
    }

    // MARK: redirects

    @Test func `a redirect by an origin of the same rule is a proof`() throws {
        try scenario(cache: Self.rules) { s in
            let (alice, bob) = (try s.client(from: Self.alice), try s.client(from: Self.bob))
            s.origin.expects("GET /file").replies(302, "Location: \(Self.signed("/o", "1"))")
            s.origin.expects("GET \(Self.signed("/o", "1"))").replies(
                200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "secret")
            #expect(try alice.get("/file").status == 302)
            #expect(try alice.get(Self.signed("/o", "1")).text == "secret")
            s.origin.expects("GET /file").replies(302, "Location: \(Self.signed("/o", "2"))")
            #expect(try bob.get("/file").status == 302)
            #expect(try bob.get(Self.signed("/o", "2")).cacheStatus.hasPrefix("larder; hit"))
            // It is a proof for whom the origin sent there, and for the address that it named.
            s.origin.expects("GET \(Self.signed("/o", "2"))", "If-None-Match: \"1\"").replies(403, body: "no")
            #expect(try alice.get(Self.signed("/o", "2")).text == "no")
            s.origin.expects("GET \(Self.signed("/o", "3"))", "If-None-Match: \"1\"").replies(403, body: "no")
            #expect(try bob.get(Self.signed("/o", "3")).text == "no")
        }
    }

    @Test func `a redirect by anybody else is none`() throws {
        let rules = "rules: [ { match: { host: 127.0.0.1, path: \"/o\" }, key: { signature: known } } ]"
        try scenario(cache: rules) { s in
            let (alice, bob) = (try s.client(from: Self.alice), try s.client(from: Self.bob))
            s.origin.expects("GET \(Self.signed("/o", "1"))").replies(
                200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "secret")
            #expect(try alice.get(Self.signed("/o", "1")).text == "secret")
            s.origin.expects("GET /lure").replies(302, "Location: \(Self.signed("/o", "forged"))")
            #expect(try bob.get("/lure").status == 302)
            s.origin.expects("GET \(Self.signed("/o", "forged"))", "If-None-Match: \"1\"").replies(403, body: "no")
            #expect(try bob.get(Self.signed("/o", "forged")).text == "no")
        }
    }

    @Test func `a signature that has expired proves nothing`() throws {
        try scenario(cache: Self.rules) { s in
            let client = try s.client()
            let address = Self.signed("/o", "1", lifetime: 60, at: "20200101T000000Z")
            s.origin.expects("GET /file").replies(302, "Location: \(address)")
            #expect(try client.get("/file").status == 302)
            for _ in 0..<2 {
                s.origin.expects("GET \(address)").replies(200, "Cache-Control: max-age=60", "ETag: \"1\"", body: "b")
                #expect(try client.get(address).text == "b")
            }
        }
    }

    private static let stable =
        "rules: [ { match: { host: 127.0.0.1, path: \"/blobs/{hex:64}\" }, immutable: yes, "
        + "digest: { from: path, algorithm: sha256 } } ]"
    /// Of "secret".
    private static let blob = "/blobs/2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"

    @Test func `what an address stands for that never changes is one response, wherever it redirects`() throws {
        try scenario(cache: Self.stable) { s in
            let (alice, bob) = (try s.client(from: Self.alice), try s.client(from: Self.bob))
            s.origin.expects("GET \(Self.blob)").replies(307, "Location: /store/a?ticket=1")
            s.origin.expects("GET /store/a?ticket=1").replies(200, body: "secret")
            #expect(try alice.get(Self.blob).status == 307)
            #expect(try alice.get("/store/a?ticket=1").text == "secret")
            s.origin.expects("GET \(Self.blob)").replies(307, "Location: /store/b?ticket=2")
            #expect(try bob.get(Self.blob).status == 307)
            let answer = try bob.get("/store/b?ticket=2")
            #expect(answer.cacheStatus.hasPrefix("larder; hit") && answer.text == "secret")
            // Without the redirect, it is an address like any other.
            s.origin.expects("GET /store/b?ticket=2", "!If-None-Match").replies(403, body: "no")
            #expect(try alice.get("/store/b?ticket=2").text == "no")
        }
    }

    /// Without a digest, a page that asks for a log-in would pass for the file.
    @Test func `without a digest only the signature of the target may change`() throws {
        let rules = "rules: [ { match: { host: 127.0.0.1, path: \"/files/*\" }, immutable: yes } ]"
        try scenario(cache: rules) { s in
            let (alice, bob) = (try s.client(from: Self.alice), try s.client(from: Self.bob))
            s.origin.expects("GET /files/a").replies(302, "Location: /login?next=a")
            s.origin.expects("GET /login?next=a").replies(200, body: "who are you?")
            #expect(try alice.get("/files/a").status == 302)
            #expect(try alice.get("/login?next=a").text == "who are you?")
            for (client, signature) in [(bob, "1"), (alice, "2")] {
                s.origin.expects("GET /files/a").replies(302, "Location: \(Self.signed("/store/a", signature))")
                if signature == "1" {
                    s.origin.expects("GET \(Self.signed("/store/a", "1"))").replies(200, body: "secret")
                }
                #expect(try client.get("/files/a").status == 302)
                #expect(try client.get(Self.signed("/store/a", signature)).text == "secret")
            }
            s.origin.expects("GET /files/a").replies(302, "Location: \(Self.signed("/login", "1"))")
            s.origin.expects("GET \(Self.signed("/login", "1"))").replies(200, body: "who are you?")
            #expect(try bob.get("/files/a").status == 302)
            #expect(try bob.get(Self.signed("/login", "1")).text == "who are you?")
        }
    }

    @Test func `the digest in the address that redirects holds for what it redirects to`() throws {
        try scenario(cache: Self.stable) { s in
            let client = try s.client()
            s.origin.expects("GET \(Self.blob)").replies(307, "Location: /store/a")
            s.origin.expects("GET /store/a").replies(200, "Cache-Control: max-age=60", body: "forged")
            s.origin.expects("GET /store/a", "Cache-Control: no-cache").replies(200, body: "forged")
            #expect(try client.get(Self.blob).status == 307)
            let answer = try client.get("/store/a")
            #expect(answer.status == 502)
            #expect(try s.stat(.store, "digest-mismatches") == 2)
        }
    }

    @Test func `redirects may follow each other, and the next time the first one leads to the response`() throws {
        try scenario(cache: Self.stable) { s in
            let client = try s.client()
            s.origin.expects("GET \(Self.blob)").replies(307, "Location: /gate?ticket=1")
            s.origin.expects("GET /gate?ticket=1").replies(
                302, "Location: /store/a?ticket=1", "Cache-Control: max-age=9")
            s.origin.expects("GET /store/a?ticket=1").replies(200, body: "secret")
            #expect(try client.get(Self.blob).status == 307)
            #expect(try client.get("/gate?ticket=1").status == 302)
            #expect(try client.get("/store/a?ticket=1").text == "secret")
            s.origin.expects("GET \(Self.blob)").replies(307, "Location: /gate?ticket=2")
            #expect(try client.get(Self.blob).status == 307)
            let answer = try client.get("/gate?ticket=2")
            #expect(answer.status == 200 && answer.text == "secret")
        }
    }
}
