import Foundation
import ProgramUnderTest
import Testing

@Suite(
    "Clients that log in to the proxy",
    .enabled(if: installed("curl") != nil && Nginx.isInstalled, "packages curl, nginx-light"))
struct ProxyAuthenticationTests {
    static let ways: [[String]] = [
        ["--proxy-digest"], ["--proxy-anyauth"], ["--proxy-basic"], ["--proxy-digest", "-p"],
        ["--proxy-anyauth", "-p"],
        ["--proxy-basic", "-p"], ["--proxy-digest", "-0"],
    ]
    @Test(arguments: ways) func `curl logs in, for requests and for tunnels`(_ words: [String]) async throws {
        try await Asking.with { s in
            let name = ["-U", "ann:secret"]
            let right = try await s.place.curl(words + name + [s.url], through: s.larder)
            #expect(right.status == 200 && right.text == "made for a test\n", "\(right)")
            let answered = right.heads.contains("Proxy-Authentication-Info: qop=auth, rspauth=")
            #expect(answered == !words.contains("--proxy-basic"), "\(right)")
            let wrong = try await s.place.curl(words + ["-U", "ann:guess", s.url], through: s.larder)
            #expect(wrong.status == 407, "\(wrong)")
        }
    }

    @Test func `curl needs one connection for many requests, each of which is asked`() async throws {
        try await Asking.with { s in
            let urls = (0..<10).flatMap { ["-o", "/dev/null", "\(s.url)?\($0)"] }
            let output = try await s.place.run(
                "curl",
                [
                    "-q", "-sS", "-x", s.larder.url, "--proxy-digest", "-U", "ann:secret", "-w",
                    "%{http_code} %{num_connects}\\n",
                ] + urls)
            #expect(output.out == "200 1\n" + String(repeating: "200 0\n", count: 9), "\(output)")
        }
    }

    @Test func `passwd --digest sets, replaces and deletes the lines of one user and realm`() async throws {
        try await Workplace.with { place in
            let word = try place.write("word", "secret\n".utf8)
            let file = place.path("digest")
            func passwd(_ words: [String]) async throws -> Workplace.Output {
                try await place.run(Larder.executable, ["passwd", "--digest", file] + words, input: word)
            }
            for words in [["ann"], ["bob"], ["ann", "--realm", "other"], ["ann"]] {
                let made = try await passwd(words)
                #expect(made.status == 0 && made.out == "set the password of \(words[0]) in \(file)\n", "\(made)")
            }
            let lines = String(decoding: place.bytes("digest"), as: UTF8.self).split(separator: "\n")
            let heads = lines.map { $0.split(separator: ":").prefix(2).joined(separator: ":") }
            #expect(heads == ["ann:larder", "ann:larder", "bob:larder", "bob:larder", "ann:other", "ann:other"])
            #expect(lines.contains("ann:larder:829a1d865cd6c8803ec8a238a130f103"))
            #expect(try await passwd(["ann", "--delete"]).status == 0)
            #expect(try await passwd(["ann", "--delete"]).err.contains("has no user ann of the realm larder"))
            #expect(String(decoding: place.bytes("digest"), as: UTF8.self).split(separator: "\n").count == 4)
        }
    }

    @Test func `an upload that is asked for a password goes on, on its connection`() async throws {
        try await Asking.with { s in
            let content = noise(300_000)
            let file = try s.place.write("upload", content)
            for words in [["--proxy-digest"], ["--proxy-anyauth"], ["--proxy-anyauth", "-H", "Expect:"]] {
                let reply = try await s.place.curl(
                    words + ["-U", "ann:secret", "-T", file, "\(s.nginx.url)/uploaded"], through: s.larder)
                #expect(reply.status == 201 || reply.status == 204, "\(words): \(reply)")
                #expect(s.place.bytes("www/uploaded") == content)
            }
        }
    }

    static let files: [(content: String, status: Int32, said: String)] = [
        ("ann:larder:secret\n", 2, "digest:line 1: the hash does not have the length of its algorithm"),
        ("ann:larder:829a1d865cd6c8803ec8a238a130f103\n", 0, "user ann has an MD5 hash alone"),
        ("ann:other:829a1d865cd6c8803ec8a238a130f103\n", 0, "no user of the realm larder"),
    ]
    @Test(arguments: files) func `check reads the files of users, and shows nothing of them`(
        _ row: (content: String, status: Int32, said: String)
    ) async throws {
        try await Workplace.with { place in
            let users = try place.write("digest", row.content.utf8)
            let file = try place.write(
                "larder.yaml", "access: { authentication: { digest: { users: \(users) } } }\n".utf8)
            let output = try await place.run(Larder.executable, ["check", "-c", file])
            #expect(output.status == row.status && output.err.contains(row.said), "\(output)")
            #expect(!output.err.contains("secret") && !output.err.contains("829a"))
        }
    }

    @Test func `a file of htdigest is understood, with MD5`() async throws {
        try await Asking.with(.ofHtdigest) { s in
            let reply = try await s.place.curl("--proxy-digest", "-U", "ann:secret", s.url, through: s.larder)
            #expect(reply.status == 200 && reply.heads.contains("algorithm=MD5"), "\(reply)")
            #expect(s.larder.child.errors.contains("user ann has an MD5 hash alone"), "\(s.larder.child.errors)")
        }
    }

    @Test(.enabled(if: installed("htpasswd") != nil, "package apache2-utils"))
    func `a file of htpasswd is understood, and a change of it counts without a reload`() async throws {
        try await Asking.with(.ofHtpasswd) { s in
            func status(_ password: String) async throws -> Int {
                try await s.place.curl("-U", "ann:\(password)", s.url, through: s.larder).status
            }
            #expect(try await status("secret") == 200)
            // A file that is broken changes nothing.
            let right = s.place.bytes("basic")
            try s.place.write("basic", "nonsense\n".utf8)
            try await eventually("the log says that it is broken") {
                s.larder.child.errors.contains("expected name:hash; what was read before stays in use")
            }
            #expect(try await status("secret") == 200)
            try s.place.write("basic", right)
            let made = try await s.place.run("htpasswd", ["-bB", s.place.path("basic"), "ann", "another"])
            try #require(made.status == 0, "\(made)")
            try await eventually("the change was read: \(s.larder.child.errors)") {
                s.larder.child.errors.contains("access.authentication: a file has changed and was read")
            }
            #expect(try await status("another") == 200)
            #expect(try await status("secret") == 407)
        }
    }

    @Test(.enabled(if: installed("wget") != nil, "package wget")) func `wget logs in with Basic`() async throws {
        try await Asking.with { s in
            let output = try await s.place.run(
                "wget", ["--no-config", "-nv", "-t", "1", "-O", "-", s.url],
                environment: s.larder.proxy(as: "ann:secret"))
            #expect(output.status == 0 && output.out == "made for a test\n", "\(output)")
        }
    }

    @Test(.enabled(if: installed("python3") != nil, "package python3"))
    func `urllib of Python logs in with Digest where MD5 is the first that is offered`() async throws {
        try await Asking.with(.ofHtdigest) { s in
            let script = """
                import sys, urllib.request
                proxy, url = sys.argv[1:]
                users = urllib.request.HTTPPasswordMgrWithDefaultRealm()
                users.add_password(None, url, "ann", "secret")
                opener = urllib.request.build_opener(
                    urllib.request.ProxyHandler({"http": proxy}), urllib.request.ProxyDigestAuthHandler(users))
                for _ in range(3):
                    print(opener.open(url, timeout=20).read().decode(), end="")
                """
            let output = try await s.place.run("python3", ["-c", script, s.larder.url, s.url])
            #expect(output.out == String(repeating: "made for a test\n", count: 3), "\(output)")
        }
    }

    @Test(.enabled(if: installed("python3") != nil, "package python3"))
    func `urllib of Python logs in with Basic, whatever else is offered`() async throws {
        try await Asking.with { s in
            let script = """
                import sys, urllib.request
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": sys.argv[1]}))
                print(opener.open(sys.argv[2], timeout=20).read().decode(), end="")
                """
            let output = try await s.place.run("python3", ["-c", script, s.larder.url(as: "ann:secret"), s.url])
            #expect(output.out == "made for a test\n", "\(output)")
        }
    }

    /// JDKs do not send Basic for a tunnel (`jdk.http.auth.tunneling.disabledSchemes`), so Digest is what they have.
    @Test(
        .enabled(
            if: installed("javac") != nil && installed("openssl") != nil, "packages default-jdk-headless, openssl"),
        arguments: [false, true])
    func `a JDK as it is logs in with Digest, with SHA-256, for requests and for tunnels`(_ tls: Bool) async throws {
        try await Asking.with(tls: tls) { s in
            try s.place.write("java/Client.java", Self.java.utf8)
            let made = try await s.place.run(
                "javac", [s.place.path("java/Client.java")], within: .seconds(120))
            try #require(made.status == 0, "\(made)")
            let url = tls ? "https://127.0.0.1:\(s.nginx.port)/file" : s.url
            let output = try await s.place.run(
                "java", ["-cp", s.place.path("java"), "Client", "\(s.larder.port)", url], within: .seconds(120))
            #expect(output.out == "digest\n" + String(repeating: "made for a test\n", count: 3), "\(output)")
        }
    }

    private static let java = """
        import java.io.*;
        import java.net.*;
        import java.security.cert.X509Certificate;
        import javax.net.ssl.*;
        public class Client {
            public static void main(String[] words) throws Exception {
                Authenticator.setDefault(new Authenticator() {
                    protected PasswordAuthentication getPasswordAuthentication() {
                        System.out.println(getRequestingScheme());
                        return new PasswordAuthentication("ann", "secret".toCharArray());
                    }
                });
                SSLContext context = SSLContext.getInstance("TLS");
                context.init(null, new TrustManager[] { new X509TrustManager() {
                    public void checkClientTrusted(X509Certificate[] chain, String type) {}
                    public void checkServerTrusted(X509Certificate[] chain, String type) {}
                    public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
                } }, null);
                HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
                HttpsURLConnection.setDefaultHostnameVerifier((name, session) -> true);
                Proxy proxy = new Proxy(
                    Proxy.Type.HTTP, new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])));
                for (int round = 0; round < 3; round++) {
                    URLConnection connection = new URL(words[1]).openConnection(proxy);
                    try (InputStream in = connection.getInputStream()) {
                        System.out.print(new String(in.readAllBytes()));
                    }
                }
            }
        }
        """
}
