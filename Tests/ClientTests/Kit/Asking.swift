import Foundation
import Testing

/// A proxy that asks ann for her password, secret, with Digest and Basic, before an origin with one file.
struct Asking {
    let place: Workplace
    let nginx: Nginx
    let larder: Larder

    enum Users: String, CaseIterable { case ofLarder, ofHtdigest, ofHtpasswd }

    /// - Parameters:
    ///   - tls: whether the origin speaks TLS.
    ///   - more: sections of Larder's configuration.
    ///   - listener: more keys of the entry of `listen`, with a comma in front.
    static func with(
        _ users: Users = .ofLarder, tls: Bool = false, more: String = "", listener: String = "",
        _ body: (Asking) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            try await start(users, in: place, tls: tls, more: more, listener: listener, body)
        }
    }

    static func start(
        _ users: Users = .ofLarder, in place: Workplace, tls: Bool = false, more: String = "", listener: String = "",
        _ body: (Asking) async throws -> Void
    ) async throws {
        try place.write("www/file", Array("made for a test\n".utf8))
        let nginx = try await Nginx.start(
            in: place, server: "add_header Cache-Control 'max-age=600'; dav_methods PUT;",
            tls: tls ? try await place.certificate(for: "localhost") : nil)
        let larder = try await Larder.start(
            in: place,
            access: """
                access:
                  authentication:
                    \(try await sections(users, place))
                  rules: [ allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ], user: [ ann ] } ]
                """, more: more, listener: listener)
        try await body(Asking(place: place, nginx: nginx, larder: larder))
        #expect(nginx.asked.allSatisfy { $0.contains("pa=\"-\"") }, "no credential goes to the origin")
    }

    private static func sections(_ users: Users, _ place: Workplace) async throws -> String {
        try place.write("word", "secret\n".utf8)
        switch users {
        case .ofLarder:
            for words in [["--digest", place.path("digest")], [place.path("basic")]] {
                let made = try await place.run(
                    Larder.executable, ["passwd"] + words + ["ann"], input: place.path("word"))
                try #require(made.status == 0, "\(made)")
            }
            return """
                digest: { users: \(place.path("digest")) }
                    basic: { users: \(place.path("basic")) }
                """
        case .ofHtdigest:
            let made = try await place.run(
                "sh",
                [
                    "-c",
                    "printf 'ann:larder:%s\\n' \"$(printf 'ann:larder:secret' | md5sum | cut -c1-32)\" > \(place.path("digest"))",
                ])
            try #require(made.status == 0, "\(made)")
            return "digest: { users: \(place.path("digest")) }"
        case .ofHtpasswd:
            let made = try await place.run("htpasswd", ["-bcB", place.path("basic"), "ann", "secret"])
            try #require(made.status == 0, "\(made)")
            return "basic: { users: \(place.path("basic")) }"
        }
    }

    var url: String { "\(nginx.url)/file" }
    var asked: Int { larder.log.filter { $0.contains("\"status\":407") }.count }
}

extension Larder {
    /// The lines of the access log so far.
    var log: [Substring] {
        String(decoding: FileManager.default.contents(atPath: accessLog) ?? Data(), as: UTF8.self).split(
            separator: "\n")
    }
}
