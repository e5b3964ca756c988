import Caching
import Foundation
import Message
import Rules
import Settings
import Testing
import YAML

import Provisioning
@testable import larder

/// What a recipe makes of a path.
enum Treatment: Equatable {
    case immutable
    /// Fresh for so many seconds at most, whatever the origin says; less if the origin says so.
    case atMost(Int64)
    /// Fresh for so many seconds, whatever the origin says.
    case exactly(Int64)
    case revalidated, neverStored

    init?(_ handling: CacheHandling) {
        if handling.use.contains(.noWrite) {
            self = .neverStored
        } else if handling.use.contains(.revalidateAlways) {
            self = .revalidated
        } else if handling.isImmutable {
            self = .immutable
        } else if let ttl = handling.ttl {
            self = .exactly(ttl.count)
        } else if let bound = handling.ttlMax ?? handling.ttlDefault {
            self = .atMost(bound.count)
        } else {
            return nil
        }
    }
}

/// One row: a recipe, a path as a client sends it, and what becomes of it.
struct Row: CustomTestStringConvertible, Sendable {
    let recipe: String
    let path: String
    let treatment: Treatment
    var testDescription: String { "\(recipe) \(path)" }
}

func rows(_ recipe: String, _ rows: [(String, Treatment)]) -> [Row] {
    rows.map { Row(recipe: recipe, path: $0.0, treatment: $0.1) }
}

func rules(_ text: String) throws -> CacheRules {
    let root = configurationNode(try #require(try parseYAML(Array(text.utf8))))
    let loaded = loadConfiguration(root, file: "test.yaml", recipes: RecipeBook.all)
    #expect(loaded.errors == [])
    return try #require(loaded.configuration).cacheRules
}

func handling(of path: String, host: String = "packages.example.org", _ rules: CacheRules) throws -> CacheHandling {
    let destination = try #require(DestinationHost(Array(host.utf8)))
    return rules.handling(
        of: RuleRequest(
            client: nil, method: .get, destination: destination, port: 80, isTunnel: false,
            pathAndQuery: ArraySlice(path.utf8)))
}

@Suite("Recipes: the table of paths")
struct RecipeTableTests {
    @Test(arguments: RecipeRows.all) func `a path is treated as the ecosystem wants`(_ row: Row) throws {
        let rules = try rules("recipes: [ { use: \(row.recipe), hosts: packages.example.org } ]")
        let handling = try handling(of: row.path, rules)
        #expect(Treatment(handling) == row.treatment)
        #expect(handling.rule.map { rules.rules[$0 - 1].recipe } == row.recipe)
    }

    @Test(arguments: RecipeBook.all.map(\.name)) func `every recipe has rows`(_ name: String) {
        #expect(RecipeRows.all.count { $0.recipe == name } >= 8)
    }

    /// A rule that no row reaches may be wrong.
    @Test(arguments: RecipeBook.all.map(\.name)) func `every rule of a recipe decides about some row`(_ name: String)
        throws
    {
        let rules = try rules("recipes: [ { use: \(name), hosts: packages.example.org } ]")
        let reached = try RecipeRows.all.filter { $0.recipe == name }.map { try handling(of: $0.path, rules).rule }
        let idle = rules.rules.filter { !reached.contains($0.number) }.map { $0.note ?? "?" }
        #expect(idle == [])
    }
}

@Suite("Recipes: the files")
struct RecipeFileTests {
    @Test func `every file is built in`() throws {
        let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/Provisioning/recipes/data")
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
        #expect(names == RecipeBook.files.map { "\($0.name).yaml" })
        for file in RecipeBook.files {
            #expect(try Array(Data(contentsOf: directory.appending(path: "\(file.name).yaml"))) == file.bytes)
        }
    }

    @Test(arguments: RecipeBook.files.map(\.name)) func `a file has no error`(_ name: String) throws {
        let file = try #require(RecipeBook.files.first { $0.name == name })
        #expect(RecipeBook.read(file.bytes, name: name).errors == [])
    }

    /// Recipes know shapes. Hosts are the configuration's.
    @Test(arguments: RecipeBook.files.map(\.name)) func `no file names a host`(_ name: String) throws {
        let file = try #require(RecipeBook.files.first { $0.name == name })
        let text = String(decoding: file.bytes, as: UTF8.self)
        for end in [".org", ".com", ".io", ".net", ".dev", "http:", "https:"] { #expect(!text.contains(end)) }
    }
}

@Suite("Recipes in a configuration")
struct RecipeUseTests {
    static let digested: [(recipe: String, path: String, digest: String)] = [
        ("debian", "/debian/dists/sid/main/by-hash/SHA256/\(hex64)", "sha256:\(hex64)"),
        ("rpm", "/fedora/repodata/\(hex64)-primary.xml.zst", "sha256:\(hex64)"),
        ("composer", "/p/acme/tool$\(hex64).json", "sha256:\(hex64)"),
        ("python", "/packages/ab/cd/\(hex60)/six-1.0.tar.gz", "blake2b-256:abcd\(hex60)"),
    ]
    @Test(arguments: digested) func `the hosts of one use share what has its digest in its address`(
        _ row: (recipe: String, path: String, digest: String)
    ) throws {
        let use = "use: \(row.recipe), hosts: [ \"*.mirror.example.org\", b.example ]"
        for (extra, host, isShared) in [
            ("", "a.mirror.example.org", true), ("", "b.example", true), (", authorization: public", "b.example", true),
            (", authorization: validate", "b.example", false),
        ] {
            let rules = try rules("recipes: [ { \(use)\(extra) } ]")
            let uri = Array("https://\(host)\(row.path)".utf8)
            let key = rules.digestKey(of: uri, try handling(of: row.path, host: host, rules))
            let expected = isShared ? "https://mirror.example.org/\(row.digest)#digest" : nil
            #expect(key.map { String(decoding: $0.bytes, as: UTF8.self) } == expected, "\(extra)")
        }
    }

    /// The digest in their address is that of the file that they are about.
    @Test(arguments: ["whl.metadata", "tar.gz.asc", "whl.provenance"])
    func `what is beside a Python file is not proven by its address`(_ suffix: String) throws {
        let rules = try rules("recipes: [ { use: python, hosts: a.example.org } ]")
        let handling = try handling(
            of: "/packages/ab/cd/\(hex60)/six-1.0.\(suffix)", host: "a.example.org", rules)
        #expect(handling.isImmutable && !handling.provesBodies)
    }

    @Test func `rules of the configuration come first, and a host can serve several ecosystems`() throws {
        let rules = try rules(
            """
            cache:
              zones: [ { name: packages, memory: 8MiB } ]
              rules: [ { match: { host: a.example.org, path: "*/-/own.tgz" }, policy: no-write } ]
            recipes:
              - { use: npm, hosts: a.example.org, zone: packages }
              - { use: go, hosts: [ a.example.org, "*.b.example.org" ] }
            """)
        func decided(_ path: String, _ host: String = "a.example.org") throws -> (Treatment?, Int, String?) {
            let handling = try handling(of: path, host: host, rules)
            return (Treatment(handling), handling.zone, handling.rule.flatMap { rules.rules[$0 - 1].recipe })
        }
        #expect(try decided("/x/-/own.tgz") == (.neverStored, 0, nil))
        #expect(try decided("/x/-/x-1.tgz") == (.immutable, 1, "npm"))
        #expect(try decided("/m/@v/v1.0.0.zip") == (.immutable, 0, "go"))
        #expect(try decided("/a/b/c/d/e") == (.revalidated, 1, "npm"))
        #expect(try decided("/m/@v/v1.0.0.zip", "x.b.example.org") == (.immutable, 0, "go"))
        #expect(try decided("/m/@v/v1.0.0.zip", "b.example.org") == (nil, 0, nil))
        #expect(try decided("/x/-/x-1.tgz", "x.b.example.org") == (.revalidated, 0, "go"))
    }

    @Test func `a host that is busy has failed, unless the configuration says otherwise`() throws {
        let own = try rules("recipes: [ { use: npm, hosts: packages.example.org } ]")
        let other = try rules("recipes: [ { use: npm, hosts: packages.example.org, failure_statuses: [ 403 ] } ]")
        let none = try rules("recipes: [ { use: npm, hosts: packages.example.org, failure_statuses: [] } ]")
        for path in ["/x", "/x/-/x-1.tgz", "/a/b/c", "/a/b/"] {
            #expect(try handling(of: path, own).failureStatuses == .tooManyRequests)
            #expect(try handling(of: path, other).failureStatuses == .forbidden)
            #expect(try handling(of: path, none).failureStatuses == [])
        }
    }

    /// npm's rule for documents below a path would match the other's paths as well.
    @Test(arguments: ["npm, hosts", "python, hosts"])
    func `an npm registry below a path takes nothing from others on its host`(
        _ first: String
    ) throws {
        let second = first.hasPrefix("npm") ? "python, hosts" : "npm, hosts"
        let rules = try rules(
            "recipes: [ \([first, second].map { "{ use: \($0): packages.example.org, min_age: 3d }" }.joined(separator: ", ")) ]"
        )
        func recipe(_ path: String) throws -> String? {
            try handling(of: path, rules).rule.flatMap { rules.rules[$0 - 1].recipe }
        }
        for path in ["/pypi/simple/six/", "/pypi/simple/six", "/ann/dev/+simple/six/", "/x/files/six-1.0.whl"] {
            #expect(try recipe(path) == "python", "\(path)")
        }
        for path in ["/npm/left-pad", "/npm/@acme%2ftool", "/npm/@acme/tool", "/npm/left-pad/-/left-pad-1.tgz"] {
            #expect(try recipe(path) == "npm", "\(path)")
        }
    }

    /// `/x/-/../private` is not what its bytes say.
    @Test func `a path that an origin may read in another way must match in both readings`() throws {
        let rules = try rules("recipes: [ { use: npm, hosts: packages.example.org } ]")
        for path in ["/x/-/../../y/x.tgz", "/x/-/%2e%2e/x.tgz", "/x/%2D/x.tgz", "/x\\-\\x.tgz"] {
            #expect(Treatment(try handling(of: path, rules)) != .immutable, "\(path)")
        }
        #expect(Treatment(try handling(of: "/@a%2fb/-/b-1.tgz", rules)) == .immutable)
        #expect(Treatment(try handling(of: "/@a%2Fb", rules)) == .atMost(300))
    }
}

@Suite("Recipes: several for one host")
struct SharedHostTests {
    private static let names = ["maven", "rpm", "conda", "composer", "nuget", "alpine", "npm", "python", "cargo"]

    /// In whatever order the recipes are named, the index is one.
    static let indexes: [(path: String, recipe: String)] = [
        ("/repository/rpm/repodata/repomd.xml", "rpm"), ("/repository/conda/linux-64/repodata.json", "conda"),
        ("/repository/composer/packages.json", "composer"), ("/repository/nuget/v3/index.json", "nuget"),
        ("/repository/alpine/v3/main/x86_64/APKINDEX.tar.gz", "alpine"),
        ("/repository/maven/org/a/b/maven-metadata.xml", "maven"), ("/archetype-catalog.xml", "maven"),
        ("/repository/pypi/simple/six/", "python"), ("/packages.json", "composer"), ("/index.json", "nuget"),
        ("/config.json", "cargo"), ("/se/rd/serde", "cargo"), ("/left-pad", "npm"),
    ]
    @Test(arguments: indexes) func `the more special rule decides, in whatever order`(
        _ row: (path: String, recipe: String)
    ) throws {
        for names in [Self.names, Self.names.reversed()] {
            let uses = names.map { "{ use: \($0), hosts: repo.example.org }" }.joined(separator: ", ")
            let rules = try rules("recipes: [ \(uses) ]")
            let handling = try handling(of: row.path, host: "repo.example.org", rules)
            #expect(handling.rule.map { rules.rules[$0 - 1].recipe } == row.recipe)
            #expect(!handling.isImmutable)
        }
    }

    @Test func `within a recipe, and for private packages, the order stays`() throws {
        let text = "recipes: [ { use: npm, hosts: a.example }, { use: maven, hosts: a.example, private: \"@acme/*\" } ]"
        let rules = try rules(text).rules
        for recipe in RecipeBook.all where ["npm", "maven"].contains(recipe.name) {
            let notes = rules.filter { $0.recipe == recipe.name }.compactMap(\.note)
            #expect(notes.filter { recipe.rules.compactMap(\.note).contains($0) } == recipe.rules.compactMap(\.note))
        }
        #expect(rules[0].note == "private packages")
    }

    /// The settings of a use are those of all its rules, and make none of them more special.
    @Test func `a use that is stored for each credential comes no earlier`() throws {
        let rules = try rules(
            "recipes: [ { use: npm, hosts: a.example, authorization: per-credential }, { use: cargo, hosts: a.example } ]"
        )
        let handling = try handling(of: "/config.json", host: "a.example", rules)
        #expect(handling.rule.map { rules.rules[$0 - 1].recipe } == "cargo")
    }

    private func warnings(_ text: String) throws -> [String] {
        let root = configurationNode(try #require(try parseYAML(Array(text.utf8))))
        return loadConfiguration(root, file: "test.yaml", recipes: RecipeBook.all).warnings.map { "\($0)" }
    }

    @Test func `two recipes with rules for one path of a host are told of`() throws {
        let found = try warnings(
            "recipes: [ { use: npm, hosts: a.example }, { use: cargo, hosts: [ b.example, a.example ] } ]")
        #expect(found.count == 1)
        #expect(
            found.first?.contains("the recipes npm and cargo both have rules for paths of a.example, such as /") == true
        )
        #expect(try warnings("recipes: [ { use: npm, hosts: a.example }, { use: cargo, hosts: b.example } ]").isEmpty)
        #expect(try warnings("recipes: [ { use: maven, hosts: a.example }, { use: rpm, hosts: a.example } ]").isEmpty)
    }
}

@Suite("Recipes: pages in place of packages")
struct PageTests {
    static let packages: [(recipe: String, path: String)] = [
        ("maven", "/maven2/org/a/b/1.0/b-1.0.jar"), ("cargo", "/crates/serde/serde-1.0.0.crate"),
        ("rubygems", "/gems/rake-13.0.0.gem"), ("python", "/packages/ab/cd/\(hex60)/six-1.16.0-py2.py3-none-any.whl"),
        ("python", "/whl/cpu/torch-2.0-cp311-linux_x86_64.whl"), ("nuget", "/v3/a/1.0.0/a.1.0.0.nupkg"),
        ("conda", "/conda-forge/linux-64/six-1.0-py_0.conda"), ("go", "/example.org/m/@v/v1.2.3.zip"),
        ("alpine", "/alpine/v3.20/main/x86_64/busybox-1.36.1-r29.apk"), ("npm", "/left-pad/-/left-pad-1.3.0.tgz"),
        ("debian", "/debian/pool/main/a/a_1_all.deb"), ("rpm", "/fedora/a.rpm"),
    ]
    @Test(arguments: packages) func `a page in place of a package is not stored`(
        _ row: (recipe: String, path: String)
    ) throws {
        let rules = try rules("recipes: [ { use: \(row.recipe), hosts: packages.example.org } ]")
        let handling = try handling(of: row.path, rules)
        func decision(_ type: String) -> Storability {
            var fields = Fields()
            fields.append(.contentType, Array(type.utf8))
            fields.append(.cacheControl, Array("max-age=60".utf8))
            let request = CacheRequest(method: .get, fields: Fields())
            return storability(
                of: request, status: 200, fields: fields, policy: CachePolicy(), handling: handling,
                now: WallTime(secondsSinceEpoch: 1_000_000))
        }
        #expect(decision("text/html; charset=utf-8") == .doNotStore(.page))
        #expect(decision("Application/XHTML+xml") == .doNotStore(.page))
        #expect(decision("application/octet-stream") == .store)
    }

    static let others: [(recipe: String, path: String)] = [
        ("python", "/simple/six/"), ("npm", "/left-pad"), ("huggingface", "/a/resolve/\(hex40)/index.html"),
        ("github", "/a/b/\(hex40)/docs/page.html"),
    ]
    @Test(arguments: others) func `a page where one may be is stored`(_ row: (recipe: String, path: String)) throws {
        let rules = try rules("recipes: [ { use: \(row.recipe), hosts: packages.example.org } ]")
        #expect(try !handling(of: row.path, rules).isForFile)
    }
}
