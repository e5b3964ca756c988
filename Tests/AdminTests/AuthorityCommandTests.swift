import Admin
import EventLoop
import Glibc
import Message
import Rules
import TLS
import Testing

import Provisioning
@testable import larder
import JSON

/// A directory in which authorities are made. It is removed with the object.
private final class Place: Sendable {
    let path = "/tmp/larder-ca-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
    init() { _ = unsafe mkdir(path, 0o700) }
    deinit { _ = runProgram("/bin/rm", ["-rf", path]) }

    /// Runs `larder ca` on the directory `name`, with the built-in configuration.
    func ca(_ words: String..., in name: String = "ca") -> Output { run(["ca"] + words, in: name) }

    func run(_ words: [String], in name: String = "ca") -> Output {
        let (out, err) = (Locked<[String]>([]), Locked<[String]>([]))
        let console = Console(
            print: { line in out.withLock { $0.append(line) } }, error: { line in err.withLock { $0.append(line) } })
        let status = larder.run(words + ["--out", "\(path)/\(name)", "--config", "/dev/null"], console)
        return Output(
            status: status, out: out.withLock { $0.joined(separator: "\n") },
            err: err.withLock { $0.joined(separator: "\n") })
    }

    struct Output {
        var status: Int32
        var out, err: String
    }

    func directory(_ name: String = "ca") -> AuthorityDirectory { AuthorityDirectory("\(path)/\(name)") }

    func mode(_ name: String) -> mode_t? {
        var status = stat()
        return unsafe stat("\(path)/\(name)", &status) == 0 ? status.st_mode & 0o7777 : nil
    }

    func authority(_ name: String = "ca") throws -> CertificateAuthority {
        let directory = directory(name)
        return try CertificateAuthority(
            certificateFile: directory.intermediate, keyFile: directory.key, at: Int64(time(nil)))
    }
}

@Suite("larder ca")
struct AuthorityCommandTests {
    static let wrong: [(words: [String], says: String)] = [
        (["ca"], "ca needs one of create, show, rotate, issue, install"),
        (["ca", "crate"], "unknown word after ca: \"crate\""),
        (["ca", "show", "x"], "ca show takes no \"x\""),
        (["ca", "show", "--host", "a.test"], "ca show takes no --host"),
        (["ca", "create"], "which hosts may the authority certify?"),
        (["ca", "create", "--host", "a b"], "\"a b\" is not a host"),
        (["ca", "create", "--host", "*"], "the host \"*\" needs an authority that may certify every name"),
        (["ca", "create", "--host", "a.test", "--unconstrained"], "--unconstrained and --host contradict each other"),
        (["ca", "create", "--host", "a.test", "--days", "0"], "--days takes a number from 1 to 3650"),
        (["ca", "create", "--host", "a.test", "--node", "../x"], "\"../x\" cannot be the name of a node"),
        (["ca", "create", "--host", "a.test", "--node", "next"], "\"next\" cannot be the name of a node"),
        (["ca", "create", "--host", "a.test", "--node", "a", "--node", "a"], "a node is named twice"),
        (["ca", "issue"], "issue needs --node NAME"),
        (["ca", "issue", "--node", "a"], "issue needs --root-key FILE"),
        (["ca", "rotate", "--finish", "--undo"], "--finish and --undo contradict each other"),
    ]
    @Test(arguments: wrong) func `a mistake is reported with status 2, and nothing is made`(
        _ row: (words: [String], says: String)
    ) {
        let place = Place()
        let result = place.run(row.words)
        #expect(result.status == 2)
        #expect(result.err.hasPrefix("larder: \(row.says)"), "\(result.err)")
        #expect(place.mode("ca") == nil)
    }

    @Test func `create makes a constrained authority that can sign at once`() throws {
        let place = Place()
        let made = place.ca("create", "--host", "*.example.org", "--host", "b.test", "--host", "192.0.2.1")
        #expect(made.status == 0, "\(made.err)")
        #expect(place.mode("ca") == 0o700)
        #expect(place.mode("ca/intermediate.key") == 0o600)
        #expect(place.mode("ca/intermediate.pem") == 0o644)
        #expect(place.mode("ca/root.key") == nil)
        let authority = try place.authority()
        #expect(authority.permits(.dns("a.example.org")) && authority.permits(.address([192, 0, 2, 1])))
        #expect(!authority.permits(.dns("a.test")) && !authority.permits(.address([192, 0, 2, 2])))
        #expect(authority.roots.count == 1 && authority.remarks.isEmpty)
        #expect(authority.roots[0].constraints == authority.issuerDescription.constraints)
        #expect(authority.daysLeft(at: Int64(time(nil))) >= 396)
        #expect(made.out.contains("sha256       \(authority.roots[0].fingerprint)"))
        #expect(
            made.out.contains(
                "ca: { certificate: \(place.path)/ca/intermediate.pem, key: \(place.path)/ca/intermediate.key }"))
        #expect(made.out.contains("hosts: [ \"*.example.org\", \"b.test\", \"192.0.2.1\" ]"))
    }

    @Test func `create overwrites nothing, and leaves nothing half made`() throws {
        let place = Place()
        #expect(place.ca("create", "--host", "a.test").status == 0)
        let before = try readFile(place.directory().key)
        let again = place.ca("create", "--host", "a.test")
        #expect(again.status == 1)
        #expect(again.err.contains("nothing was overwritten; larder ca rotate replaces an authority"), "\(again.err)")
        #expect(try readFile(place.directory().key) == before)

        try replaceFile("\(place.path)/taken", with: [])
        #expect(place.ca("create", "--host", "a.test", "--keep-root-key", "\(place.path)/taken", in: "b").status == 1)
        #expect(place.mode("b/root.pem") == nil && place.mode("b/intermediate.key") == nil)
        #expect(try readFile("\(place.path)/taken") == [])

        // The last file cannot be written.
        let nowhere = "\(place.path)/nowhere/root.key"
        #expect(place.ca("create", "--host", "a.test", "--keep-root-key", nowhere, in: "c").status == 1)
        #expect(place.mode("c/root.pem") == nil && place.mode("c/intermediate.key") == nil)
    }

    @Test func `create refuses a directory that others may write to`() throws {
        let place = Place()
        #expect(unsafe mkdir("\(place.path)/ca", 0o777) == 0 && chmod("\(place.path)/ca", 0o777) == 0)
        let made = place.ca("create", "--host", "a.test")
        #expect(made.status == 1)
        #expect(made.err.contains("others than this user may write to \(place.path)/ca"), "\(made.err)")
    }

    @Test func `--unconstrained permits everything`() throws {
        let place = Place()
        #expect(place.ca("create", "--unconstrained").out.contains("every name (no constraints)"))
        #expect(try place.authority().permits(.dns("a.test")))
    }

    @Test func `hosts and files come from the configuration, which need not name the authority yet`() throws {
        let place = Place()
        let file = "\(place.path)/larder.yaml"
        let hosts = "hosts: [ \"*.a.test\" ] }\nrecipes: [ { use: npm, hosts: [ b.test ] } ]\n"
        try replaceFile(file, with: Array("intercept: { \(hosts)".utf8))
        func ca(_ words: String...) -> Int32 {
            larder.run(["ca"] + words + ["--config", file], Console(print: { _ in }, error: { _ in }))
        }
        #expect(ca("create", "--out", "\(place.path)/ca") == 0)
        let authority = try place.authority()
        #expect(
            authority.issuerDescription.constraints?.permittedNames == ["a.test", "b.test", "check.larder.internal"])

        let files = "ca: { certificate: \(place.path)/ca/intermediate.pem, key: \(place.path)/ca/intermediate.key }"
        try replaceFile(file, with: Array("intercept: { \(files), \(hosts)".utf8))
        #expect(ca("show") == 0 && ca("rotate") == 0 && place.mode("ca/next/root.pem") == 0o644)
        try replaceFile(file, with: Array("intercept: { hosts: [ \"a b\" ] }\n".utf8))
        #expect(ca("create", "--host", "a.test", "--out", "\(place.path)/other") == 2)
    }

    @Test func `rotate does not overwrite an authority that others made`() throws {
        let place = Place()
        #expect(place.ca("create", "--unconstrained").status == 0)
        let key = try readFile(place.directory().key)
        try replaceFile(place.directory().intermediate, with: Array(othersCertificate.utf8))
        let result = place.ca("rotate")
        #expect(result.status == 1 && result.err.contains("was not made by larder ca create"), "\(result.err)")
        #expect(try readFile(place.directory().key) == key)
    }

    @Test func `show tells fingerprints and constraints`() throws {
        let place = Place()
        #expect(place.ca("show").err.contains("larder ca create makes an authority"))
        #expect(place.ca("create", "--host", "a.test", "--days", "20").status == 0)
        let authority = try place.authority()
        let shown = place.ca("show")
        #expect(shown.status == 0)
        #expect(shown.out.contains("sha256       \(authority.roots[0].fingerprint)"))
        #expect(shown.out.contains("may certify  a.test and below, check.larder.internal and below; no addresses"))
        #expect(shown.err == "larder: warning: the authority ends soon; run larder ca rotate")
        let json = try JSONValue(parsing: Array(place.ca("show", "--json").out.utf8))
        #expect(json["roots"]?.elements?.first?["sha256"] == .string(authority.roots[0].fingerprint))
        #expect(
            json["issuer"]?["constraints"]?["permitted_names"]
                == .array([.string("a.test"), .string("check.larder.internal")]))
        #expect(json["next"] == .null)
    }

    @Test func `rotate hands out both roots first, and signs with the new one after --finish`() throws {
        let place = Place()
        #expect(place.ca("create", "--host", "a.test").status == 0)
        let old = try place.authority()
        #expect(place.ca("rotate", "--host", "b.test").status == 0)
        let during = try place.authority()
        #expect(during.issuerDescription == old.issuerDescription && !during.isSame(as: old))
        #expect(during.roots.count == 2 && during.roots[0] == old.roots[0])
        #expect(!during.permits(.dns("b.test")) && during.permits(.dns("a.test")))
        #expect(place.ca("rotate").err.contains("a rotation is under way"))

        #expect(place.ca("rotate", "--finish").status == 0)
        let new = try place.authority()
        #expect(new.issuerDescription != old.issuerDescription)
        #expect(new.permits(.dns("b.test")) && new.permits(.dns("a.test")))
        #expect(new.roots == [during.roots[1], old.roots[0]])
        #expect(CertificateDescription.all(inPEM: try readFile(place.directory().root)) == [new.roots[0]])
        #expect(CertificateDescription.all(inPEM: try readFile(place.directory().previousRoot)) == [old.roots[0]])
        #expect(place.mode("ca/next") == nil && place.mode("ca/intermediate.key") == 0o600)
        #expect(place.ca("rotate", "--finish").status == 1)
    }

    /// The files are replaced one by one, and `next` is removed last.
    @Test func `an interrupted --finish is completed by another`() throws {
        let place = Place()
        #expect(place.ca("create", "--host", "a.test").status == 0)
        let old = try place.authority()
        #expect(place.ca("rotate").status == 0)
        let next = place.directory().next
        try replaceFile(place.directory().key, with: readFile(next.key))
        #expect(throws: AuthorityError.self) { try place.authority() }
        #expect(place.ca("rotate", "--finish").status == 0)
        let new = try place.authority()
        #expect(new.roots.count == 2 && new.roots[1] == old.roots[0])
        #expect(CertificateDescription.all(inPEM: try readFile(place.directory().previousRoot)) == [old.roots[0]])
    }

    @Test func `rotate --undo leaves the old authority as it was`() throws {
        let place = Place()
        #expect(place.ca("create", "--host", "a.test").status == 0)
        let before = try readFile(place.directory().intermediate)
        #expect(place.ca("rotate").status == 0)
        #expect(try readFile(place.directory().intermediate) != before)
        #expect(place.ca("rotate", "--undo").status == 0)
        #expect(try readFile(place.directory().intermediate) == before)
        #expect(place.mode("ca/next") == nil)
    }

    @Test func `an unconstrained authority stays so, unless hosts are named`() throws {
        let place = Place()
        #expect(place.ca("create", "--unconstrained").status == 0)
        #expect(place.ca("rotate").status == 0)
        #expect(try place.authority("ca/next").permits(.dns("a.test")))
        #expect(place.ca("rotate", "--undo").status == 0)
        #expect(place.ca("rotate", "--host", "b.test").status == 0)
        #expect(try !place.authority("ca/next").permits(.dns("a.test")))
    }

    @Test func `each node gets an intermediate of its own from one root`() throws {
        let place = Place()
        let key = "\(place.path)/root.key"
        let made = place.ca("create", "--host", "a.test", "--node", "one", "--node", "two", "--keep-root-key", key)
        #expect(made.status == 0, "\(made.err)")
        #expect(place.mode("root.key") == 0o600 && place.mode("ca/intermediate.pem") == nil)
        #expect(place.ca("issue", "--node", "three", "--root-key", key).status == 0)
        let nodes = try ["one", "two", "three"].map { try place.authority("ca/\($0)") }
        #expect(Set(nodes.map(\.issuerDescription.fingerprint)).count == 3)
        #expect(Set(nodes.map { $0.roots[0].fingerprint }).count == 1)
        #expect(nodes.allSatisfy { $0.permits(.dns("a.test")) && !$0.permits(.dns("b.test")) })
        #expect(place.ca("issue", "--node", "one", "--root-key", key).status == 1)
        #expect(place.ca("issue", "--node", "four", "--root-key", "\(place.path)/ca/one/intermediate.key").status == 1)
        #expect(place.mode("ca/four/intermediate.pem") == nil)
    }

    static let scopes: [(hosts: [String], names: [String], addresses: Int)] = [
        (["a.test"], ["a.test"], 0), (["*.a.test", "a.test"], ["a.test"], 0),
        (["x.a.test", "*.a.test"], ["a.test"], 0),
        (["a.test", "xa.test"], ["a.test", "xa.test"], 0), (["A.Test."], ["a.test"], 0),
        (["::1", "192.0.2.1", "192.0.2.1"], ["invalid"], 2),
    ]
    @Test(arguments: scopes) func `constraints follow from hosts`(
        _ row: (hosts: [String], names: [String], addresses: Int)
    ) throws {
        let scope = AuthorityScope(try row.hosts.map { try #require(HostPattern($0)) })
        #expect(scope.constraints.permittedNames == row.names)
        #expect(scope.constraints.usableAddresses.count == row.addresses)
        #expect(scope.constraints.excludedAddresses.count == (row.addresses == 0 ? 2 : 0))
        var kept = AuthorityScope([])
        kept.add(scope.constraints)
        #expect(kept.constraints == scope.constraints)
    }

    @Test func `the store of a distribution is found by its directory and its program`() throws {
        let place = Place()
        #expect(SystemStore.find(below: place.path) == nil)
        makeDirectories("\(place.path)/usr/local/share/ca-certificates", mode: 0o755)
        #expect(SystemStore.find(below: place.path) == nil)
        makeDirectories("\(place.path)/usr/sbin", mode: 0o755)
        try replaceFile("\(place.path)/usr/sbin/update-ca-certificates", with: [])
        let debian = try #require(SystemStore.find(below: place.path))
        #expect(debian.file(0) == "\(place.path)/usr/local/share/ca-certificates/larder.crt")
        #expect(debian.file(1) == "\(place.path)/usr/local/share/ca-certificates/larder-2.crt")
        #expect(debian.program == "\(place.path)/usr/sbin/update-ca-certificates")
        #expect(debian.files.isEmpty)
        try replaceFile(debian.file(1), with: [])
        #expect(debian.files == [debian.file(1)])
        makeDirectories("\(place.path)/etc/pki/ca-trust/source/anchors", mode: 0o755)
        try replaceFile("\(place.path)/usr/sbin/update-ca-trust", with: [])
        #expect(SystemStore.find(below: place.path)?.suffix == ".pem")
    }
}

/// Self-signed, by `O=Others`, without its key.
private let othersCertificate = """
    -----BEGIN CERTIFICATE-----
    MIIBnTCCAUOgAwIBAgIUdC31bPakjvr6lG704DiMTfsmuaYwCgYIKoZIzj0EAwIw
    IzEQMA4GA1UEAwwHT3VyIG93bjEPMA0GA1UECgwGT3RoZXJzMCAXDTI2MTEyMzAx
    MjA0M1oYDzIxMjYxMDMwMDEyMDQzWjAjMRAwDgYDVQQDDAdPdXIgb3duMQ8wDQYD
    VQQKDAZPdGhlcnMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQNQ2j/TFBA1fw+
    Q5ckkH+Cx+STF/W/hD/4dfeSqUf1lUgsZxlqvEY8ElUY7H05DALyDbi9AekIX1Op
    +HljXxBJo1MwUTAdBgNVHQ4EFgQUKSh8L5DGeudB47+oYJVY1gNUxuwwHwYDVR0j
    BBgwFoAUKSh8L5DGeudB47+oYJVY1gNUxuwwDwYDVR0TAQH/BAUwAwEB/zAKBggq
    hkjOPQQDAgNIADBFAiEA1zqokB/638bUh30DdPFwrmNpmY1d+apUjToApDsUpKMC
    ICCcjUt3smFXk6B04U2w3B3VzADq4lP22pCP7u6y+g4r
    -----END CERTIFICATE-----
    """
