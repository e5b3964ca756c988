import Foundation
import ProgramUnderTest
import Testing

private let openssl: ConditionTrait = .enabled(if: installed("openssl") != nil, "package openssl")

@Suite("curl", .enabled(if: installed("curl") != nil && Nginx.isInstalled, "packages curl, nginx-light"))
struct CurlTests {
    @Test func `curl -v twice shows a hit`() async throws {
        try await withFile { place, nginx, larder in
            let words = ["-q", "-v", "-m", "20", "\(nginx.url)/file"]
            let first = try await place.run("curl", words, environment: larder.proxy)
            let second = try await place.run("curl", words, environment: larder.proxy)
            #expect(first.out == fileText && second.out == fileText)
            #expect(first.err.contains("< Cache-Status: larder; fwd=uri-miss"), "\(first)")
            #expect(second.err.contains("< Cache-Status: larder; hit"), "\(second)")
            #expect(second.err.contains("< Via: 1.1 larder"), "\(second)")
            #expect(second.err.contains("< Age: "), "\(second)")
            #expect(nginx.asked("/file").count == 1)
        }
    }

    @Test func `-0 speaks HTTP/1.0 and the connection ends`() async throws {
        try await withFile { place, nginx, larder in
            for round in 1...2 {
                let reply = try await place.curl("-0", "\(nginx.url)/file", through: larder)
                #expect(reply.status == 200 && reply.text == fileText, "round \(round): \(reply)")
                #expect(reply.isHit == (round == 2))
                #expect(reply.fields["transfer-encoding"] == nil)
                #expect(reply.fields["connection"] != "keep-alive", "\(reply)")
            }
        }
    }

    @Test func `-0 gets a chunked response without chunks`() async throws {
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n")
        } _: { origin in
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                let reply = try await place.curl("-0", "\(origin.url)/", through: larder)
                #expect(reply.text == "abcdef" && reply.fields["transfer-encoding"] == nil, "\(reply)")
            }
        }
    }

    @Test func `-r gets parts, of what is stored and of what is not`() async throws {
        try await withFile { place, nginx, larder in
            let before = try await place.curl("-r", "0-4", "\(nginx.url)/file", through: larder)
            #expect(before.status == 206 && before.text == fileText.prefix(5), "\(before)")
            _ = try await place.curl("\(nginx.url)/file", through: larder)
            let asked = nginx.asked.count
            let size = fileText.utf8.count
            let rows: [(range: String, text: Substring, said: String)] = [
                ("0-0", fileText.prefix(1), "bytes 0-0/\(size)"),
                ("2-5", fileText.dropFirst(2).prefix(4), "bytes 2-5/\(size)"),
                ("-3", fileText.suffix(3), "bytes \(size - 3)-\(size - 1)/\(size)"),
                ("4-", fileText.dropFirst(4), "bytes 4-\(size - 1)/\(size)"),
            ]
            for row in rows {
                let reply = try await place.curl("-r", row.range, "\(nginx.url)/file", through: larder)
                #expect(reply.status == 206 && reply.text == row.text && reply.isHit, "\(row.range): \(reply)")
                #expect(reply.fields["content-range"] == row.said)
            }
            let beyond = try await place.curl("-r", "\(size)-", "\(nginx.url)/file", through: larder)
            #expect(beyond.status == 416 && beyond.fields["content-range"] == "bytes */\(size)", "\(beyond)")
            #expect(nginx.asked.count == asked)
        }
    }

    @Test func `-C - resumes a download that was cut off`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            let larder = try await Larder.start(in: place)
            let content = noise(300_000)
            try place.write("www/big", content)
            for isStored in [false, true] {
                if isStored { _ = try await place.curl("\(nginx.url)/big", through: larder) }
                try place.write("part-\(isStored)", content.prefix(123_456))
                let output = try await place.run(
                    "curl",
                    [
                        "-q", "-sS", "-x", larder.url, "-C", "-", "-o", place.path("part-\(isStored)"),
                        "\(nginx.url)/big",
                    ])
                #expect(output.status == 0, "\(output)")
                #expect(place.bytes("part-\(isStored)") == content, "stored: \(isStored)")
            }
        }
    }

    @Test(arguments: [false, true])
    func `-T uploads, chunked or with a length`(isChunked: Bool) async throws {
        let received = Received()
        try await ScriptedOrigin.with { head, connection in
            received.take(head, connection)
            connection.send("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok")
        } _: { origin in
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                let content = noise(200_000)
                let file = try place.write("upload", content)
                let way = isChunked ? "Transfer-Encoding: chunked" : "X-With: a length"
                let reply = try await place.curl(
                    "-T", file, "-H", way, "-H", "Expect:", "\(origin.url)/up", through: larder)
                #expect(reply.status == 201 && reply.text == "ok", "\(reply)")
                #expect(received.body == content)
                #expect(received.isChunked == isChunked)
            }
        }
    }

    @Test func `Expect: 100-continue is the origin's to answer`() async throws {
        let received = Received()
        try await ScriptedOrigin.with { head, connection in
            // The body comes only after this: who sends it earlier would be seen by the order of the heads.
            connection.send("HTTP/1.1 100 Continue\r\n\r\n")
            received.take(head, connection)
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        } _: { origin in
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                let file = try place.write("upload", noise(2_000_000))
                let reply = try await place.curl(
                    "-T", file, "-H", "Expect: 100-continue", "--expect100-timeout", "30", "\(origin.url)/up",
                    through: larder)
                #expect(reply.status == 200 && reply.heads.hasPrefix("HTTP/1.1 100 Continue\r\n"), "\(reply)")
                #expect(received.head.contains("Expect: 100-continue"))
                #expect(received.body.count == 2_000_000)
            }
        }
    }

    @Test func `Expect: 100-continue refused: nothing is uploaded`() async throws {
        try await ScriptedOrigin.with { _, connection in
            connection.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!")
        } _: { origin in
            try await Workplace.with { place in
                let larder = try await Larder.start(in: place)
                let file = try place.write("upload", noise(1_000_000))
                let reply = try await place.curl(
                    "-T", file, "-H", "Expect: 100-continue", "--expect100-timeout", "30", "-w",
                    "%{stderr}sent=%{size_upload}", "\(origin.url)/up", through: larder)
                #expect(reply.status == 413 && reply.text == "no!", "\(reply)")
                #expect(reply.errors.hasSuffix("sent=0"), "\(reply)")
            }
        }
    }

    @Test func `-I gets the head alone, with the length the body would have`() async throws {
        try await withFile { place, nginx, larder in
            for isStored in [false, true] {
                if isStored { _ = try await place.curl("\(nginx.url)/file", through: larder) }
                let reply = try await place.curl("-I", "\(nginx.url)/file", through: larder)
                #expect(reply.status == 200 && reply.exit == 0, "\(reply)")
                #expect(reply.fields["content-length"] == "\(fileText.utf8.count)", "\(reply)")
                #expect(reply.isHit == isStored, "\(reply)")
            }
        }
    }

    @Test func `--compressed and plain are served from one stored copy`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place, server: "gzip on;")
            let text = String(repeating: "all work and no play\n", count: 200)
            try place.write("www/text.txt", text.utf8)
            let larder = try await Larder.start(in: place)
            for round in 1...2 {
                let squeezed = try await place.curl("--compressed", "\(nginx.url)/text.txt", through: larder)
                #expect(squeezed.fields["content-encoding"] == "gzip" && squeezed.text == text, "\(squeezed)")
                let plain = try await place.curl("\(nginx.url)/text.txt", through: larder)
                #expect(plain.fields["content-encoding"] == nil && plain.text == text, "\(plain)")
                #expect(squeezed.isHit == (round == 2) && plain.isHit, "\(squeezed)\(plain)")
            }
            #expect(nginx.asked.count == 1)
        }
    }

    @Test func `many URLs travel on one connection`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            for number in 1...20 { try place.write("www/f\(number)", "\(number)\n".utf8) }
            let larder = try await Larder.start(in: place)
            let output = try await place.run("curl", ["-q", "-sS", "-x", larder.url, "\(nginx.url)/f[1-20]"])
            #expect(output.out == (1...20).map { "\($0)\n" }.joined(), "\(output)")
            #expect(try await larder.statistic("clients", "accepted") == 1)
            #expect(Set(nginx.asked.compactMap { $0.split(separator: " ").first { $0.hasPrefix("c=") } }).count == 1)
        }
    }

    @Test func `-Z downloads in parallel, each file once`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            let contents = (1...16).map { noise(50_000 + $0) }
            for (number, content) in contents.enumerated() { try place.write("www/f\(number)", content) }
            let larder = try await Larder.start(in: place)
            for round in 1...2 {
                let output = try await place.run(
                    "curl",
                    ["-q", "-sS", "-Z", "-x", larder.url, "-o", place.path("\(round)-#1"), "\(nginx.url)/f[0-15]"])
                #expect(output.status == 0, "\(output)")
                for (number, content) in contents.enumerated() {
                    #expect(place.bytes("\(round)-\(number)") == content)
                }
            }
            #expect(nginx.asked.count == 16)
        }
    }

    @Test func `--http2 falls back to HTTP/1.1`() async throws {
        try await withFile { place, nginx, larder in
            let reply = try await place.curl("--http2", "\(nginx.url)/file", through: larder)
            #expect(reply.status == 200 && reply.text == fileText && reply.heads.hasPrefix("HTTP/1.1 200"), "\(reply)")
            #expect(nginx.asked("/file").count == 1)
        }
    }

    @Test func `--proxy-user opens the door, and the origin never hears of it`() async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/file", fileText.utf8)
            let larder = try await Larder.startWithUsers(in: place)
            let url = "\(nginx.url)/file"
            let stranger = try await place.curl(url, through: larder)
            #expect(stranger.status == 407, "\(stranger)")
            #expect(
                stranger.fields["proxy-authenticate"]?.contains("Basic realm=\"the larder\"") == true, "\(stranger)")
            let liar = try await place.curl("--proxy-user", "ali:abracadabra", url, through: larder)
            #expect(liar.status == 407, "\(liar)")
            let nobody = try await place.curl("--proxy-user", "baba:sesame", url, through: larder)
            #expect(nobody.status == 407, "\(nobody)")
            for words in [["--proxy-basic"], ["--proxy-anyauth"]] {
                let friend = try await place.curl(
                    words[0], "--proxy-user", "ali:sesame", url, through: larder)
                #expect(friend.status == 200 && friend.text == fileText, "\(words): \(friend)")
            }
            #expect(nginx.asked.allSatisfy { $0.contains("pa=\"-\"") && $0.contains("pc=\"-\"") }, "\(nginx.asked)")
            #expect(textOfFile(larder.accessLog).contains("sesame") == false)
        }
    }

    // MARK: denials

    @Test func `a denial says why, for a request and for a tunnel`() async throws {
        try await withFile { place, nginx, larder in
            let words = ["-q", "-sv", "-m", "20", "https://169.254.169.254/"]
            let tunnel = try await place.run("curl", words, environment: larder.proxy)
            let status = "< HTTP/1.1 403 Forbidden: no rule allows CONNECT to 169.254.169.254:443"
            #expect(tunnel.err.contains(status), "\(tunnel)")
            #expect(tunnel.err.contains("< Larder-Deny: reason=address-not-allowed; hint="), "\(tunnel)")
            let reply = try await place.curl(
                "-H", "Accept: application/problem+json", "http://169.254.169.254/", through: larder)
            #expect(reply.fields["content-type"] == "application/problem+json", "\(reply)")
            #expect(reply.text.contains("\"reason\":\"address-not-allowed\""), "\(reply)")
        }
    }

    // MARK: https

    @Test(openssl) func `https through CONNECT reaches a TLS server on a port that a rule opens`() async throws {
        try await withTLSFile { place, secure, certificate in
            let larder = try await Larder.start(
                in: place,
                access: "access: { rules: [ allow: { address: [ 127.0.0.1 ], port: [ \(secure.port) ] } ] }")
            let url = "https://localhost:\(secure.port)/file"
            let reply = try await place.curl("--cacert", certificate, url, through: larder)
            #expect(reply.exit == 0 && reply.status == 200 && reply.text == fileText, "\(reply)")
            #expect(reply.heads.contains("HTTP/1.1 200"), "the answer to CONNECT")
            let accepted = try await place.curl(url, through: larder)
            #expect(accepted.exit == 60, "a certificate that the client does not trust stays its own business")
            #expect(try await larder.statistic("tunnels", "opened") == 2)
        }
    }

    @Test func `-p tunnels plain HTTP too, and hides it from the cache`() async throws {
        try await withFile { place, nginx, larder in
            let content = noise(5_000_000)
            try place.write("www/large", content)
            for _ in 1...2 {
                let reply = try await place.curl("-p", "\(nginx.url)/large", through: larder)
                #expect(reply.exit == 0 && reply.body == content, "\(reply)")
                #expect(reply.fields["cache-status"] == nil && reply.fields["via"] == nil, "\(reply)")
            }
            #expect(nginx.asked("/large").count == 2)
        }
    }

    @Test(openssl, arguments: ["--proxy-basic", "--proxy-anyauth"])
    func `--proxy-user goes with CONNECT, at once or after 407, and no further`(way: String) async throws {
        try await withTLSFile { place, secure, certificate in
            let larder = try await Larder.startWithUsers(in: place)
            let words = [way, "--cacert", certificate, "https://localhost:\(secure.port)/file"]
            let stranger = try await place.curl(words[0], words[1], words[2], words[3], through: larder)
            #expect(stranger.exit == 56 && stranger.status == 407, "\(stranger)")
            let friend = try await place.curl(
                "--proxy-user", "ali:sesame", words[0], words[1], words[2], words[3], through: larder)
            #expect(friend.exit == 0 && friend.status == 200 && friend.text == fileText, "\(friend)")
            #expect(secure.asked.allSatisfy { $0.contains("pa=\"-\"") }, "\(secure.asked)")
        }
    }

    @Test(openssl) func `https to a port that no rule opens is refused with a reason`() async throws {
        try await withTLSFile { place, secure, certificate in
            let larder = try await Larder.start(
                in: place, access: "access: { rules: [ allow: { address: [ 127.0.0.1 ] } ] }")
            let reply = try await place.curl(
                "--cacert", certificate, "https://localhost:\(secure.port)/file", through: larder)
            #expect(reply.exit == 56 && reply.status == 403, "\(reply)")
            #expect(reply.fields["proxy-status"]?.contains("CONNECT to port \(secure.port)") == true, "\(reply)")
        }
    }

    // MARK: -

    private let fileText = "some words of a file\n"

    private func withFile(_ body: (Workplace, Nginx, Larder) async throws -> Void) async throws {
        try await Workplace.with { place in
            let nginx = try await Nginx.start(in: place)
            try place.write("www/file", fileText.utf8)
            try await body(place, nginx, try await Larder.start(in: place))
        }
    }

    private func withTLSFile(_ body: (Workplace, Nginx, String) async throws -> Void) async throws {
        try await Workplace.with { place in
            let pair = try await place.certificate()
            let secure = try await Nginx.start(in: place, tls: pair)
            try place.write("www/file", fileText.utf8)
            try await body(place, secure, pair.certificate)
        }
    }
}
