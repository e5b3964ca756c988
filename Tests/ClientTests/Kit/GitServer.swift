import Foundation

/// A smart-HTTP server: nginx, fcgiwrap and `git http-backend`, as Debian installs them.
struct GitServer {
    let nginx: Nginx
    var url: String { "\(nginx.url)/git/project.git" }

    static let program = "/usr/lib/git-core/git-http-backend"
    static let isInstalled =
        Nginx.isInstalled && installed("git") != nil && installed("fcgiwrap") != nil
        && FileManager.default.isExecutableFile(atPath: program)

    static func start(in place: Workplace) async throws -> GitServer {
        GitServer(nginx: try await Nginx.start(in: place, server: try await backend(in: place)))
    }

    /// Starts what runs git, and makes the directory of the repositories.
    /// - Returns: directives of nginx. A repository is `/git/NAME`.
    static func backend(in place: Workplace) async throws -> String {
        let socket = place.path("fcgi.sock")
        let runner = try await place.start("fcgiwrap", ["-c", "2", "-s", "unix:\(socket)"], lastSignal: "TERM")
        try await eventually("fcgiwrap listens; it said: \(runner.errors)") {
            FileManager.default.fileExists(atPath: socket)
        }
        let repositories = try place.makeDirectory("repositories")
        try place.write(
            "home/.gitconfig",
            """
            [user]
                name = A Tester
                email = tester@example.org
            [init]
                defaultBranch = main
            [safe]
                directory = *
            [gc]
                auto = 0
            """.utf8)
        return """
            location ~ ^/git(/.*)$ {
                fastcgi_pass unix:\(socket);
                fastcgi_param SCRIPT_FILENAME \(program);
                fastcgi_param GIT_HTTP_EXPORT_ALL "";
                fastcgi_param GIT_PROJECT_ROOT \(repositories);
                fastcgi_param GIT_CONFIG_NOSYSTEM 1;
                fastcgi_param HOME \(place.path("home"));
                fastcgi_param PATH_INFO $1;
                fastcgi_param QUERY_STRING $query_string;
                fastcgi_param REQUEST_METHOD $request_method;
                fastcgi_param CONTENT_TYPE $content_type;
                fastcgi_param CONTENT_LENGTH $content_length;
                fastcgi_param GIT_PROTOCOL $http_git_protocol;
            }
            """
    }
}
