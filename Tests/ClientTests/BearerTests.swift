import EventLoop
import Foundation
import ProgramUnderTest
import TLS
import Testing

/// Clients that send a token, as Bearer or as a password, and Larder with a file of tokens or keys from a server.
@Suite("Tokens", .enabled(if: Nginx.isInstalled && installed("curl") != nil, "packages nginx-light, curl"))
struct BearerTests {
    private static func access(_ bearer: String, user: String) -> String {
        """
        access:
          authentication: { bearer: { \(bearer) } }
          rules: [ allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ], user: [ \(user) ] } ]
        """
    }

    /// A new token in the file `tokens`.
    private static func token(of name: String, in place: Workplace, _ more: String...) async throws -> String {
        let made = try await place.run(
            Larder.executable, ["passwd", "--token", place.path("tokens"), name] + more)
        try #require(made.status == 0, "\(made)")
        return made.out.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Programs that take the proxy from their environment, with a token as the password.
    static let programs: [(name: String, program: String, words: [String])] = [
        ("curl", "curl", ["-q", "-sS", "-m", "20"]),
        (
            "python, urllib", "python3",
            ["-c", "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())"]
        ),
        (
            "python, requests", "python3",
            [
                "-c",
                "import sys\ntry: import requests\nexcept ImportError: sys.exit(77)\nr = requests.get(sys.argv[1])\nsys.stdout.write(r.text if r.status_code == 200 else str(r))",
            ]
        ),
        (
            "node", "node",
            [
                "-e",
                "const p = new URL(process.env.http_proxy); const h = { 'Proxy-Authorization': 'Basic ' + Buffer.from(p.username + ':' + p.password).toString('base64') };"
                    + "require('http').get({ host: p.hostname, port: p.port, path: process.argv[1], headers: h }, r => r.pipe(process.stdout));",
            ]
        ),
    ]
    @Test(arguments: programs.map(\.name)) func `a token is the password of a proxy in the environment`(
        _ name: String
    ) async throws {
        let row = try #require(Self.programs.first { $0.name == name })
        guard installed(row.program) != nil else { return }
        try await Workplace.with { place in
            try place.write("www/file", "from the origin".utf8)
            let origin = try await Nginx.start(in: place)
            let token = try await Self.token(of: "ci", in: place)
            let larder = try await Larder.start(
                in: place, access: Self.access("tokens: \(place.path("tokens"))", user: "ci"))
            let output = try await place.run(
                row.program, row.words + ["\(origin.url)/file"],
                environment: larder.proxy(as: "anybody:\(token)").merging(["no_proxy": ""]) { $1 })
            guard output.status != 77 else { return }
            #expect(output.out == "from the origin", "\(output)")
            #expect(origin.asked("/file").allSatisfy { $0.contains("pa=\"-\"") }, "\(origin.asked)")
        }
    }

    @Test func `--proxy-header sends Bearer, also for a tunnel; a token ends when its line is deleted`() async throws {
        try await Workplace.with { place in
            try place.write("www/file", "from the origin".utf8)
            let origin = try await Nginx.start(in: place)
            let token = try await Self.token(of: "ci", in: place, "--groups", "a,b", "--expires", "2999-01-01")
            let old = try await Self.token(of: "ci", in: place, "--expires", "2000-01-01")
            #expect(!String(decoding: place.bytes("tokens"), as: UTF8.self).contains(token), "the hash is kept")
            let larder = try await Larder.start(
                in: place, access: Self.access("tokens: \(place.path("tokens"))", user: "ci"))
            func ask(_ token: String, _ words: String...) async throws -> Workplace.Reply {
                try await place.curl(
                    words + ["--proxy-header", "Proxy-Authorization: Bearer \(token)", "\(origin.url)/file"],
                    through: larder)
            }
            #expect(try await ask(token).text == "from the origin")
            #expect(try await ask(token, "-p").text == "from the origin")
            let expired = try await ask(old)
            #expect(expired.status == 407, "\(expired)")
            #expect(
                expired.heads.contains(
                    "error=\"invalid_token\", error_description=\"the token is not accepted: it has expired\""),
                "\(expired)")
            #expect(!expired.text.contains(old))
            let deleted = try await place.run(
                Larder.executable, ["passwd", "--token", "--delete", place.path("tokens"), "ci"])
            #expect(deleted.status == 0, "\(deleted)")
            try await eventually("the file is read again") { try await ask(token).status == 407 }
            try place.write("tokens", "nonsense\n".utf8, age: 0)
            try await eventually("the log names the line") { larder.child.errors.contains("tokens: line 1: expected") }
            let log = String(decoding: place.bytes("access.jsonl"), as: UTF8.self) + larder.child.errors
            #expect(log.contains("\"user\":\"ci\"") && !log.contains(token) && !log.contains(old), "\(log)")
        }
    }

    // MARK: signed tokens

    /// An RSA key that openssl makes.
    private struct Key {
        let place: Workplace
        let name: String

        init(_ name: String, in place: Workplace) async throws {
            (self.place, self.name) = (place, name)
            let made = try await place.run(
                "openssl",
                ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", place.path(name)])
            try #require(made.status == 0, "\(made)")
        }

        func jwk() async throws -> String {
            let output = try await place.run("openssl", ["rsa", "-in", place.path(name), "-modulus", "-noout"])
            let digits = Array(output.out.trimmingCharacters(in: .whitespacesAndNewlines).dropFirst("Modulus=".count))
            let modulus = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                UInt8(String(digits[$0...$0 + 1]), radix: 16)
            }
            return
                "{\"kty\":\"RSA\",\"use\":\"sig\",\"kid\":\"\(name)\",\"e\":\"AQAB\",\"n\":\"\(base64URL(modulus))\"}"
        }

        func token(_ user: String) async throws -> String {
            let now = Int(Date().timeIntervalSince1970)
            let header = "{\"alg\":\"RS256\",\"kid\":\"\(name)\"}"
            let claims = "{\"iss\":\"https://issuer.test\",\"aud\":\"larder\",\"sub\":\"\(user)\",\"exp\":\(now + 600)}"
            let input = base64URL(Array(header.utf8)) + "." + base64URL(Array(claims.utf8))
            try place.write("input", input.utf8)
            let signed = try await place.run(
                "openssl",
                ["dgst", "-sha256", "-sign", place.path(name), "-out", place.path("signature"), place.path("input")])
            try #require(signed.status == 0, "\(signed)")
            return input + "." + base64URL(place.bytes("signature"))
        }
    }

    @Test(.enabled(if: installed("openssl") != nil, "package openssl"))
    func `keys come from a URL, change there, and stay while it is away`() async throws {
        try await Workplace.with { place in
            let tls = try await place.certificate()
            try place.write("www/file", "from the origin".utf8)
            let origin = try await Nginx.start(in: place, server: "add_header Cache-Control no-store;")
            let (first, second) = (try await Key("one", in: place), try await Key("two", in: place))
            try place.write("issuer/keys", "{\"keys\":[\(try await first.jwk())]}".utf8)
            let issuer = try await Nginx.start(in: place, name: "issuer-server", root: "issuer", tls: tls)
            let larder = try await Larder.start(
                in: place,
                access: Self.access(
                    "jwt: { jwks: \"https://127.0.0.1:\(issuer.port)/keys\", issuer: \"https://issuer.test\", audience: larder }",
                    user: "ann"),
                more: "tls: { ca_file: \(tls.certificate) }")
            func ask(_ token: String) async throws -> Int {
                try await place.curl(
                    "--proxy-header", "Proxy-Authorization: Bearer \(token)", "\(origin.url)/file", through: larder
                ).status
            }
            let old = try await first.token("ann")
            try await eventually("the keys are fetched; the log: \(larder.child.errors)") { try await ask(old) == 200 }
            #expect(try await ask(try await first.token("bob")) == 403, "the rules are for ann")
            let new = try await second.token("ann")
            #expect(try await ask(new) == 407, "nobody knows its key")
            // The key has been asked for already, and is asked for again after a while.
            try place.write("issuer/keys", "{\"keys\":[\(try await second.jwk())]}".utf8, age: 1)
            try await eventually("the new key is fetched; nginx had \(issuer.asked)") { try await ask(new) == 200 }
            #expect(try await ask(old) == 407, "the old key is gone")
            await issuer.child.stop()
            #expect(try await ask(try await second.token("ann")) == 200, "the keys stay")
        }
    }
}

private func base64URL(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
        .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
}
