import Foundation
import ProgramUnderTest
import Testing

/// curl, Larder, and a server that computes each signature again, with botocore and oauthlib.
@Suite(
    "Signed requests: botocore and oauthlib", .enabled(if: hasSigners, "packages python3-botocore, python3-oauthlib"))
struct SignedRequestTests {
    struct Row: Sendable, CustomTestStringConvertible {
        /// Of the credential.
        let keys: String
        let method: String
        let target: String
        var words: [String] = []
        /// Of the body that arrives.
        var length = 0
        var testDescription: String { "\(method) \(target), \(keys)" }
    }
    private static let s3 = "scheme: sigv4, access_key: access-id, secret_key: access-secret, region: eu-central-1"
    private static let oauth = "scheme: oauth1, client_key: \"client key\", client_secret: \"client secret&\""
    static let rows = [
        Row(keys: s3, method: "GET", target: "/aws/an%20object%2B/with//slashes/../and?b=2&a=x%2Fy&c"),
        Row(keys: s3, method: "HEAD", target: "/aws/a"), Row(keys: s3, method: "DELETE", target: "/aws/a?versionId=1"),
        Row(keys: "\(s3), session_token: \"session/token==\"", method: "GET", target: "/aws/~user-_.file"),
        Row(
            keys: s3, method: "PUT", target: "/aws/upload",
            words: [
                "-H", "Content-Type: text/plain", "-H", "x-amz-meta-note:  two   spaces ", "--data-binary", "@upload",
            ],
            length: 100_000),
        Row(keys: "\(s3), service: execute-api", method: "GET", target: "/aws/a%20b?z=1&a="),
        Row(
            keys: "\(s3), service: execute-api", method: "POST", target: "/aws/a?b",
            words: ["-H", "Content-Type: application/json", "--data-binary", "@upload"], length: 100_000),
        Row(
            keys: "\(s3), service: execute-api", method: "POST", target: "/aws/a",
            words: ["-H", "Transfer-Encoding: chunked", "--data-binary", "@upload"], length: 100_000),
        Row(
            keys: oauth, method: "POST", target: "/oauth?c2&a3=2+q",
            words: ["--data-raw", "b5=%3D%253D&a3=a&c%40=&a2=r%20b&u=%C3%A4+x"], length: 42),
        Row(keys: oauth, method: "GET", target: "/oauth/a%20b?c=d%2Fe&c=a+b&x"),
        Row(keys: "\(oauth), realm: photos, signature: hmac-sha256", method: "DELETE", target: "/oauth"),
        Row(
            keys: "\(oauth), token: the token, token_secret: token secret", method: "PUT", target: "/oauth?a=1",
            words: ["-H", "Content-Type: application/json", "--data-binary", "@upload"], length: 100_000),
    ]

    @Test(arguments: rows) func `the server finds the signature right`(_ row: Row) async throws {
        try await Workplace.with { place in
            let tls = try await place.certificate()
            let port = try await SignatureServer.start(in: place, tls: tls)
            let made = try await place.run(
                Larder.executable, ["ca", "create", "--out", place.path("ca"), "--host", "localhost"])
            try #require(made.status == 0, "\(made)")
            let larder = try await Larder.start(
                in: place,
                access: "access: { rules: [ allow: { host: localhost, address: 127.0.0.1, port: 1-65535 } ] }",
                more: """
                    tls: { ca_file: \(tls.certificate) }
                    intercept:
                      ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                      hosts: [ localhost ]
                    credentials: [ { name: signer, match: { host: localhost }, \(row.keys) } ]
                    """)
            try place.write("upload", [UInt8](repeating: 0x61, count: 100_000))
            let method = row.method == "HEAD" ? ["-I"] : ["-X", row.method]
            let words = method + row.words.map { $0 == "@upload" ? "@\(place.path("upload"))" : $0 }
            let url = "https://localhost:\(port)\(row.target)"
            let reply = try await place.curl(
                ["--path-as-is", "--cacert", place.path("ca/root.pem")] + words + [url], through: larder)
            #expect(reply.status == 200, "\(reply) \(larder.child.errors)")
            if row.method != "HEAD" { #expect(reply.text == "signed, with \(row.length) bytes", "\(reply)") }
            guard row.method == "GET" else { return }
            let again = try await place.curl(
                ["--path-as-is", "--cacert", place.path("ca/root.pem"), url], through: larder)
            #expect(again.cacheStatus.contains("hit"), "\(again)")
        }
    }

    @Test func `over http the body of an object is signed, too`() async throws {
        try await Workplace.with { place in
            let port = try await SignatureServer.start(in: place, tls: nil)
            let larder = try await Larder.start(
                in: place,
                access: "access: { rules: [ allow: { host: localhost, address: 127.0.0.1, port: 1-65535 } ] }",
                more: "credentials: [ { name: signer, match: { host: localhost }, plain_http: yes, \(Self.s3) } ]")
            try place.write("upload", [UInt8](repeating: 0x61, count: 1 << 20))
            let words = ["-X", "PUT", "--data-binary", "@\(place.path("upload"))", "http://localhost:\(port)/aws/a"]
            let reply = try await place.curl(words, through: larder)
            #expect(reply.status == 200 && reply.text == "signed, with \(1 << 20) bytes", "\(reply)")
        }
    }

    @Test func `what a signature would have to cover and Larder does not keep is refused here`() async throws {
        try await Workplace.with { place in
            let larder = try await Larder.start(
                in: place,
                access: "access: { rules: [ allow: { host: localhost, address: 127.0.0.1, port: 1-65535 } ] }",
                more: "credentials: [ { name: signer, match: { host: localhost }, plain_http: yes, \(Self.oauth) } ]")
            try place.write("upload", [UInt8](repeating: 0x61, count: 1 << 20 + 1))
            let reply = try await place.curl(
                "-d", "@\(place.path("upload"))", "http://localhost:9/oauth", through: larder)
            #expect(reply.status == 502 && reply.cacheStatus.contains("detail=credential-unavailable"), "\(reply)")
            #expect(larder.child.errors.contains("no body of more than 1048576 bytes"), "\(larder.child.errors)")
        }
    }
}

private let hasSigners =
    FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/botocore/auth.py")
    && FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/oauthlib/oauth1")

private enum SignatureServer {
    /// Returns its port.
    static func start(in place: Workplace, tls: (certificate: String, key: String)?) async throws -> UInt16 {
        let program = try place.write("signatures.py", source.utf8)
        // Debian's own Python: another one may not find Debian's packages.
        let child = try await place.start("/usr/bin/python3", [program] + (tls.map { [$0.certificate, $0.key] } ?? []))
        return try await eventually("the server says its port; it said: \(child.errors)") {
            () async throws -> UInt16? in
            if child.exitStatus != nil { throw Failure(description: "the signature server: \(child.errors)") }
            return child.output.split(separator: "\n").first.flatMap { UInt16($0) }
        }
    }

    private static let source = #"""
        """Serves what is signed, and refuses what is not: /aws by botocore's computation, /oauth by oauthlib's."""
        import hashlib, http.server, re, ssl, sys
        from botocore.auth import S3SigV4Auth, SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        from oauthlib.common import Request
        from oauthlib.oauth1.rfc5849 import signature

        TLS = sys.argv[1:3]


        def aws(handler, body):
            value = handler.headers["Authorization"] or ""
            found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)", value)
            if not found:
                return "not signed"
            key, day, region, service, _ = found[1].split("/")
            if key != "access-id":
                return "an unknown key"
            names = found[2].split(";")
            missing = {"host", "x-amz-date"} - set(names)
            if missing:
                return "not covered: %s" % missing
            request = AWSRequest(
                handler.command, "https://%s%s" % (handler.headers["Host"], handler.path),
                headers={name: handler.headers[name] for name in names}, data=body)
            request.context["timestamp"] = handler.headers["X-Amz-Date"]
            digest = handler.headers["X-Amz-Content-SHA256"]
            if digest == "UNSIGNED-PAYLOAD" and not TLS:
                return "a body that nothing protects"
            if digest and digest != "UNSIGNED-PAYLOAD" and digest != hashlib.sha256(body).hexdigest():
                return "another body"
            kind = S3SigV4Auth if service == "s3" else SigV4Auth
            signer = kind(Credentials("access-id", "access-secret"), service, region)
            text = signer.string_to_sign(request, signer.canonical_request(request))
            return None if signer.signature(text, request) == found[3] else "another signature: " + text


        def oauth(handler, body):
            uri = "https://%s%s" % (handler.headers["Host"], handler.path)
            is_form = handler.headers.get_content_type() == "application/x-www-form-urlencoded"
            parameters = signature.collect_parameters(
                uri_query=handler.path.partition("?")[2], body=body.decode() if is_form else [], headers={"Authorization": handler.headers["Authorization"] or ""},
                exclude_oauth_signature=False)
            request = Request(uri, handler.command)
            request.signature = dict(parameters).get("oauth_signature", "")
            request.params = [pair for pair in parameters if pair[0] != "oauth_signature"]
            verify = {"HMAC-SHA1": signature.verify_hmac_sha1, "HMAC-SHA256": signature.verify_hmac_sha256}.get(
                dict(parameters).get("oauth_signature_method"))
            if not verify:
                return "not signed"
            owner = "token secret" if "oauth_token" in dict(parameters) else ""
            return None if verify(request, "client secret&", owner) else "another signature"


        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self):
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                error = (oauth if self.path.startswith("/oauth") else aws)(self, body)
                content = (error or "signed, with %d bytes" % len(body)).encode()
                self.send_response(200 if not error else 401 if self.path.startswith("/oauth") else 403)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "max-age=600")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do

            def log_message(self, *words):
                pass


        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if TLS:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*TLS)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        print(server.server_address[1], flush=True)
        server.serve_forever()
        """#
}
