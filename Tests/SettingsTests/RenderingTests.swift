import Access
import Caching
import Foundation
import Message
import Releases
import Settings
import Testing

@Suite("Rendering: documents agree with the declarations")
struct RenderingTests {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    static let files: [(path: String, text: String)] = [
        ("conf/larder.yaml", renderSampleFile()), ("docs/configuration.md", renderManual()),
    ]

    @Test(arguments: files) func `LARDER_RENDER=1 writes the files that this compares`(_ path: String, _ text: String)
        throws
    {
        let file = Self.root.appending(path: path)
        if ProcessInfo.processInfo.environment["LARDER_RENDER"] == "1" {
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == text)
    }

    @Test func `the sample file has the defaults`() throws {
        let (configuration, errors, warnings) = try load(renderSampleFile())
        #expect(configuration == Configuration())
        #expect(errors == [] && warnings == [])
    }

    /// What is a comment for want of a default must be right as well.
    @Test func `the sample file is valid with its examples uncommented`() throws {
        let lines = renderSampleFile().split(separator: "\n", omittingEmptySubsequences: false)
        let keys = [
            "token", "object_size_max", "path", "size", "pinned", "policy_clients", "types", "zones", "clients",
            "authentication",
            "basic",
            "realm", "users", "remember", "weak_hashes", "digest", "md5", "nonce_lifetime", "groups", "negotiate",
            "keytab", "principal", "strip_realm", "bearer", "tokens", "jwt", "jwks", "issuer", "audience", "algorithms",
            "clock_skew", "directory", "urls", "start_tls", "plain_text", "bind_dn", "password_file", "base", "filter",
            "attribute", "timeout", "lifetime", "name", "refresh", "keep", "rules", "recipes", "routes", "origins",
            "cookie_jars",
            "credentials",
            "default", "ca_file", "bandwidth", "total", "client", "classes",
        ]
        let uncommented = lines.map { line -> String in
            let indent = line.prefix { $0 == " " }
            let text = line.dropFirst(indent.count)
            // Another section has a key `directory`, with a value that is a default.
            let isOther = text != "# directory:" && text.hasPrefix("# directory:")
            let isExample =
                !isOther && keys.contains { text.hasPrefix("# \($0):") } || text.hasPrefix("#   - ")
            return isExample ? String(indent + text.dropFirst(2)) : String(line)
        }
        let configuration = try loaded(uncommented.joined(separator: "\n"))
        #expect(configuration.access.rules.count == 3)
        #expect(configuration.access.authentication.isRequired)
        #expect(configuration.recipes.map(\.name) == ["npm", "debian"])
        #expect(
            configuration.routes.count == 3 && configuration.credentials.count == 2 && configuration.origins.count == 6)
        #expect(configuration.cookieJars.count == 1)
        #expect(configuration.bandwidth.total != nil && configuration.bandwidth.client != nil)
        #expect(configuration.bandwidth.classes.map(\.name) == ["nightly", "models"])
        #expect(configuration.cache.writtenObjectSizeMax == 32 << 20)
        #expect(
            configuration.cache.zones.map(\.name) == ["packages", "layers"] && configuration.cache.rules.count == 3)
        #expect(
            configuration.cache.policyClients.count == 1 && configuration.cache.compression.writtenTypes?.count == 2)
        #expect(configuration.admin.tokenFile != nil && configuration.tls.caFile != nil)
        #expect(configuration.access.namedClients != nil && configuration.access.writtenDefault == .deny)
    }

    @Test(arguments: [
        "build-fleet", "safe-egress", "lab", "package-mirror", "ci-sandbox", "disk-fleet", "fleet", "next-proxies",
        "shared-lab", "listeners",
        "packages-read", "source-read", "model-api",
    ])
    func `an example is valid, without a warning`(
        _ name: String
    ) throws {
        let file = Self.root.appending(path: "conf/examples/\(name).yaml")
        let (configuration, errors, warnings) = try load(String(contentsOf: file, encoding: .utf8))
        #expect(configuration != nil)
        #expect(errors == [] && warnings == [])
    }

    @Test func `policies.md has a line for every policy, member and key of a rule`() throws {
        let text = try String(contentsOf: Self.root.appending(path: "docs/policies.md"), encoding: .utf8)
        var changes = HandlingChanges()
        changes.use = []
        changes.storage = .session
        changes.admission = .all
        changes.ttl = .zero
        changes.ttlMax = .zero
        changes.ttlDefault = .zero
        changes.isImmutable = true
        changes.respectsCacheControl = true
        changes.negativeTTL = .zero
        changes.failureStatuses = []
        changes.objectSizeMax = 0
        changes.storesCookies = true
        changes.droppedCookies = []
        changes.authorization = .public
        changes.digest = DigestRule(source: .path, algorithm: .sha256)
        changes.release = .file
        changes.minimumAge = MinimumAge(age: .zero)
        changes.ranges = .whole
        changes.ifMatch = .stored
        changes.compression = .once
        #expect(changes.parts.count == Mirror(reflecting: changes).children.count)
        for name in changes.parts.map(\.name) + CachePolicyWord.allCases.map(\.rawValue) + [
            "match", "zone", "key", "note",
        ] {
            #expect(text.contains("\n| `\(name)` |"), "\(name)")
        }
    }
}
