import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// Debian's nginx as the origin: a prefix of its own, a log of what it was asked.
struct Nginx: Sendable {
    let place: Workplace
    let child: Child
    let port: UInt16
    private let log: String

    static let isInstalled = installed("nginx") != nil

    var url: String { "http://127.0.0.1:\(port)" }

    /// - Parameters:
    ///   - server: more directives of the server block.
    ///   - tls: certificate and key; absent: plain HTTP.
    static func start(
        in place: Workplace, name: String = "nginx", root: String = "www", server: String = "",
        tls: (certificate: String, key: String)? = nil
    ) async throws -> Nginx {
        let listener = try LoopbackListener()
        for folder in [name, "\(name)/logs", root] { try place.makeDirectory(folder) }
        let secure = tls.map { "ssl_certificate \($0.certificate); ssl_certificate_key \($0.key);" } ?? ""
        let temporary = ["client_body", "proxy", "fastcgi"] + (await optionalModules(place))
        try place.write(
            "\(name)/nginx.conf",
            """
            daemon off; worker_processes 1; \(getuid() == 0 ? "user root;" : "")
            pid \(place.path(name))/nginx.pid;
            error_log \(place.path(name))/logs/error.log info;
            events { worker_connections 512; }
            http {
                \(temporary.map { "\($0)_temp_path \(place.path(name))/\($0);" }.joined(separator: " "))
                log_format asked '$request_method $request_uri $status v=$server_protocol c=$connection '
                    'im="$http_if_none_match" ims="$http_if_modified_since" range="$http_range" '
                    'te="$http_transfer_encoding" pa="$http_proxy_authorization" pc="$http_proxy_connection" '
                    'via="$http_via" ae="$http_accept_encoding" ua="$http_user_agent"';
                access_log \(place.path(name))/logs/access.log asked;
                default_type application/octet-stream;
                types { text/html html; text/plain txt; application/zip whl; }
                gzip_proxied any; gzip_vary on; gzip_types text/plain; gzip_min_length 100;
                client_max_body_size 0;
                server {
                    listen 127.0.0.1:\(listener.port) \(tls == nil ? "" : "ssl");
                    server_name localhost;
                    \(secure)
                    root \(place.path(root));
                    \(server)
                }
            }
            """.utf8)
        let child = try await place.start(
            "nginx", ["-p", place.path(name), "-c", "\(place.path(name))/nginx.conf", "-e", "stderr"],
            environment: ["NGINX": "3;"], inherited: listener.fd, lastSignal: "TERM")
        let nginx = Nginx(place: place, child: child, port: listener.port, log: place.path("\(name)/logs/access.log"))
        // The socket listens already; what is to be seen is that nginx lives to take it.
        try await eventually("nginx is up; it said: \(child.errors)") {
            if child.exitStatus != nil { throw Failure(description: "nginx: \(child.errors)") }
            return FileManager.default.fileExists(atPath: place.path("\(name)/nginx.pid"))
        }
        return nginx
    }

    /// Modules that some of Debian's builds lack; where they are, they want a directory that this user may write.
    private static func optionalModules(_ place: Workplace) async -> [String] {
        let version = (try? await place.run("nginx", ["-V"]))?.err ?? ""
        return ["uwsgi", "scgi"].filter { !version.contains("--without-http_\($0)_module") }
    }

    /// What it was asked, a line per request, in the order of the ends of its answers.
    var asked: [String] { textOfFile(log).split(separator: "\n").map(String.init) }

    /// What it was asked about one path.
    func asked(_ path: String) -> [String] { asked.filter { $0.split(separator: " ").dropFirst().first ?? "" == path } }
}
