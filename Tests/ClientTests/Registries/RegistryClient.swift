import Foundation
import Glibc
import Testing

/// A client of package registries: what a registry of its kind has, and how the client installs from it.
struct RegistryClient: Sendable, CustomTestStringConvertible {
    let name: String
    /// What stands in an entry of `recipes`, without its hosts.
    let recipe: String
    /// The client can be tested if all of these are installed.
    var programs: [String] = []
    /// And if a Python has each of these.
    var modules: [String] = []
    var ways = Way.allCases
    /// Directives of nginx.
    var server = ""
    /// Whether each request goes to the origin, which may answer 304.
    var isValidated = false
    /// Whether it asks for ranges alone. They are passed on until Larder has begun to receive the whole.
    var asksForRanges = false
    var needsRoot = false
    /// The changes of a registry that this client does not get over, and why.
    var limits: [Change: String] = [:]
    /// Writes the registry's files into `www`: an index with this release alone. Returns the paths of the artefacts: what is the same for ever under
    /// its address. The first one is the package's file.
    let publish: @Sendable (ProxiedHost, Release) async throws -> [String]
    /// Installs the release into a new home, by its version or as the newest one.
    let install: @Sendable (ProxiedHost, _ home: Home, Release) async throws -> Workplace.Output

    static let all = [
        pip, uv, bandersnatch, npm, cargo, go, maven, gradle, gem, bundler, composer, skopeo, skopeoWithTokens, podman,
        apt, debootstrap, aptMirror, dnf, gitLFS, aria2, huggingface, hfTransfer, rattler, rattlerWithShards,
    ]

    /// The cookie of a content delivery network, which some recipes drop.
    static let cookie = "add_header Set-Cookie '_cfuvid=secret; path=/'; "

    var isInstalled: Bool {
        programs.allSatisfy { installed($0) != nil } && modules.allSatisfy { python(with: $0) != nil }
            && (!needsRoot || getuid() == 0)
    }
    var testDescription: String { name }

    /// What can happen between two installations.
    enum Change: String, CaseIterable, Sendable {
        /// The index names another version.
        case newVersion = "a new version"
        /// The file of the version is another one, and the index has its digest.
        case replacedFile = "a replaced file"
        case originDown = "the origin is down"
        /// The file breaks off in its middle, and the next time it does not.
        case brokenOff = "a file that broke off"
        /// The file is not what the index says, and the next time it is.
        case wrongBody = "a wrong file"
    }

    /// For clients that alone know the digest of a file, which Larder takes for one that never changes, or not for a week.
    static let limitsOfStoredFiles: [Change: String] = [
        .replacedFile: "Larder serves the stored file", .wrongBody: "Larder has stored the wrong file",
    ]

    /// What the origin says of lifetimes.
    enum Lifetime: String {
        /// None of use. Without a recipe each file would be asked for again.
        case none = "add_header Cache-Control 'max-age=0';"
        case unsaid = ""
    }

    /// Runs an empty registry of this kind, and Larder before it.
    func withRegistry(
        _ way: Way, lifetime: Lifetime = .none, in place: Workplace, _ body: (ProxiedHost) async throws -> Void
    ) async throws {
        try await VerbatimAnswers.with(in: place) { verbatim in
            let server = [lifetime.rawValue, server, verbatim].joined(separator: " ")
            try await body(try await ProxiedHost.start(way, in: place, recipe: recipe, server: server))
        }
    }
}

/// What a registry has of the package.
struct Release: Sendable {
    var version = "1.0.0"
    var content = "as it was first published"

    /// A line of the package. It is found in the home of whoever has installed the package.
    var text: String { "larder-demo \(version) \(content)" }
    /// The line, and enough behind it for a file that takes more than one read, compressed as well.
    var padded: String { "\(text)\n\(Data(noise(40_000 + content.utf8.count)).base64EncodedString())\n" }
}

/// A home directory that nobody has used yet.
struct Home: Sendable {
    /// Its name in the workplace.
    let name: String
    let path: String

    static func make(_ name: String, in place: Workplace) throws -> Home {
        Home(name: name, path: try place.makeDirectory(name))
    }

    /// Whether a client has installed this release here.
    func has(_ release: Release, in place: Workplace) async throws -> Bool {
        try await place.run("grep", ["-rqaF", release.text, path]).status == 0
    }
}

extension ProxiedHost {
    /// What most clients are told: the proxy, whom to trust, and where their home is.
    func environment(home: Home) -> [String: String] {
        var result = proxy
        result["HOME"] = home.path
        result["SSL_CERT_FILE"] = root
        return result
    }
}
