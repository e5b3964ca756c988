import Authentication
import Credentials
import Message
import Rules
import Testing
import Tokens

@Suite("what proves who a client is for longer than one request")
struct KeptProofTests {
    private static let token = "larder_0123456789abcdefghij"
    private static func digest(_ token: String) -> [UInt8] {
        (try? OpenSSLHashing().hash(.sha256, Array(token.utf8))) ?? []
    }

    private static func users(_ text: String) -> HtpasswdFile { HtpasswdFile.parse(Array(text.utf8)).file }
    private static let hash = "$2b$04$abcdefghijklmnopqrstuuVxUy0xIbdpRdDDdMOaWH0x8kZkGyGlS"
    private static let otherHash = "$2b$04$zbcdefghijklmnopqrstuuVxUy0xIbdpRdDDdMOaWH0x8kZkGyGlS"

    private static func settings() -> AuthenticationSettings {
        var settings = AuthenticationSettings()
        settings.basic.usersFile = "users"
        settings.digest.usersFile = "digests"
        settings.bearer.tokensFile = "tokens"
        settings.negotiate.keytab = "keytab"
        return settings
    }

    private static func material() -> AuthenticationMaterial {
        var material = AuthenticationMaterial()
        material.users = users("ann:\(hash)\nbob:\(otherHash)\n")
        material.groups = GroupsFile.parse(Array("ops: ann\n".utf8)).file
        material.digestUsers =
            DigestFile.parse(Array("ann:larder:0123456789abcdef0123456789abcdef\n".utf8), realm: "larder").file
        material.tokens = tokens(expiry: 2000)
        return material
    }

    private static func tokens(expiry: Int64?) -> TokenFile {
        let entry = TokenFile.Entry(
            name: "ci", groups: ["build"], expiry: expiry.map { WallTime(secondsSinceEpoch: $0) })
        return TokenFile.parse(Array(TokenFile.line(entry, digest: digest(token)).utf8)).file
    }

    private static func proof(
        _ name: String, _ scheme: AuthenticationSchemeName, by credentials: String? = nil, expiry: Duration? = nil,
        end: Expiry? = nil
    ) -> KeptProof {
        KeptProof(
            Identity(name: name, scheme: scheme, expiry: expiry, end: end), by: credentials.map { Secret($0) },
            settings(),
            material(), using: OpenSSLHashing())
    }

    /// Who the client is after a change. `ended`: nobody; `unknown`: that has to be found out.
    private static func standing(
        _ proof: KeptProof, second: Int = 100, wall: Int64 = 1000, hasChanged: Bool = true,
        _ change: (inout AuthenticationSettings, inout AuthenticationMaterial) -> Void = { _, _ in }
    ) -> String {
        var (proof, settings, material) = (proof, settings(), material())
        change(&settings, &material)
        let standing = proof.standing(
            settings, material, hasChanged: hasChanged, now: .seconds(second),
            wallTime: WallTime(secondsSinceEpoch: wall))
        switch standing {
        case .holds(let identity): return ([identity.name] + identity.groups).joined(separator: " ")
        case .unknown: return "unknown"
        case .ended: return "ended"
        }
    }

    @Test func `a password holds as long as its hash is in the file, without being hashed again`() {
        // Credentials that were right are remembered until then; the tunnel lasts longer.
        let proof = Self.proof("ann", .basic, by: "Basic YW5uOmE=", expiry: .seconds(60))
        #expect(Self.standing(proof) == "ann ops")
        #expect(Self.standing(proof, hasChanged: false) == "ann ops")
        #expect(
            Self.standing(proof) { $1.users = Self.users("ann:\(Self.hash)\neve:\(Self.otherHash)\n") } == "ann ops")
        #expect(Self.standing(proof) { $1.groups = GroupsFile() } == "ann")
        #expect(Self.standing(proof) { $1.users = Self.users("bob:\(Self.otherHash)\n") } == "ended")
        #expect(Self.standing(proof) { $1.users = Self.users("ann:\(Self.otherHash)\n") } == "ended")
        #expect(Self.standing(proof) { settings, _ in settings.basic.usersFile = nil } == "ended")
    }

    @Test func `a digest holds as long as the hashes of its user are the same`() {
        let proof = Self.proof("ann", .digest)
        #expect(Self.standing(proof) == "ann ops")
        #expect(Self.standing(proof) { $1.digestUsers = DigestFile() } == "ended")
        #expect(
            Self.standing(proof) {
                $1.digestUsers =
                    DigestFile.parse(
                        Array("ann:larder:ffffffffffffffffffffffffffffffff\n".utf8), realm: "larder"
                    ).file
            } == "ended")
        #expect(Self.standing(Self.proof("nobody", .digest)) == "ended")
    }

    @Test(arguments: [
        "Bearer \(token)", "Basic \(String(decoding: encodeBase64(Array("x:\(token)".utf8)), as: UTF8.self))",
    ])
    func `a token holds as long as it is in the file, and until it expires`(_ credentials: String) {
        let proof = Self.proof("ci", .bearer, by: credentials, expiry: .seconds(90))
        #expect(Self.standing(proof) == "ci build")
        #expect(Self.standing(proof, wall: 2000) == "ended")
        #expect(Self.standing(proof, wall: 2000) { $1.tokens = Self.tokens(expiry: nil) } == "ci build")
        #expect(Self.standing(proof) { $1.tokens = Self.tokens(expiry: 900) } == "ended")
        #expect(Self.standing(proof) { $1.tokens = TokenFile() } == "ended")
    }

    @Test func `a token that expires while nothing changes is noticed`() {
        var proof = Self.proof("ci", .bearer, by: "Bearer \(Self.token)", expiry: .seconds(90))
        func standing(_ second: Int) -> KeptProof.Standing {
            proof.standing(
                Self.settings(), Self.material(), hasChanged: false, now: .seconds(second),
                wallTime: WallTime(secondsSinceEpoch: 1900 + Int64(second)))
        }
        // It is good for 3600 s; a connection looks it up again sooner.
        guard case .holds = standing(89), case .holds(let identity) = standing(90) else {
            Issue.record()
            return
        }
        #expect(identity.expiry == .seconds(100))
        #expect(standing(100) == .ended)
    }

    @Test func `a signed token and a user of a directory are examined again when they are remembered no more`() {
        for (name, scheme, credentials) in [
            ("ann", AuthenticationSchemeName.bearer, "Bearer a.b.c"), ("carl", .basic, "Basic Y2FybDph"),
        ] {
            let proof = Self.proof(name, scheme, by: credentials, expiry: .seconds(60))
            #expect(Self.standing(proof, second: 59, hasChanged: false) == name)
            #expect(Self.standing(proof, second: 60, hasChanged: false) == "unknown")
            #expect(Self.standing(proof, second: 59) == "unknown")
            #expect(
                Self.standing(proof) { settings, _ in
                    (settings.basic.usersFile, settings.bearer.tokensFile) = (nil, nil)
                } == "ended")
            var renewed = proof
            renewed.renew(Identity(name: name, scheme: scheme, expiry: .seconds(200)))
            #expect(Self.standing(renewed, hasChanged: false) == name)
        }
    }

    /// Dated for 2000 when the clock showed 1000, 100 s after the start.
    private static let end = Expiry(
        at: WallTime(secondsSinceEpoch: 2000),
        seen: Moment(uptime: .seconds(100), wallTime: WallTime(secondsSinceEpoch: 1000)))

    @Test func `a token of the file ends when it would have, though the clock was set back`() {
        var proof = Self.proof("ci", .bearer, by: "Bearer \(Self.token)", expiry: .seconds(1100), end: Self.end)
        #expect(Self.standing(proof, second: 1099, wall: 0) == "ci build")
        #expect(Self.standing(proof, second: 1100, wall: 0, hasChanged: false) == "ended")
        // To look at it on the way, at the set clock, changes nothing.
        let now = WallTime(secondsSinceEpoch: 0)
        guard
            case .holds(let identity) = proof.standing(
                Self.settings(), Self.material(), hasChanged: true, now: .seconds(200), wallTime: now)
        else {
            Issue.record()
            return
        }
        #expect(identity.expiry == .seconds(1100))
        #expect(Self.standing(proof, second: 1100, wall: 0, hasChanged: false) == "ended")
        // A line with another end is seen for the first time.
        #expect(Self.standing(proof, second: 1100, wall: 0) { $1.tokens = Self.tokens(expiry: 2001) } == "ci build")
    }

    @Test func `a signed token ends when it would have, though the clock was set back`() {
        var proof = Self.proof("ann", .bearer, by: "Bearer a.b.c", expiry: .seconds(600), end: Self.end)
        #expect(Self.standing(proof, second: 600, wall: 0, hasChanged: false) == "unknown")
        #expect(Self.standing(proof, second: 1100, wall: 0) == "ended")
        #expect(Self.standing(proof, second: 200, wall: 2000) == "ended")
        // It was examined again at second 600, when the clock showed 0: by that it is good for 2000 s from then.
        let again = Expiry(
            at: WallTime(secondsSinceEpoch: 2000),
            seen: Moment(uptime: .seconds(600), wallTime: WallTime(secondsSinceEpoch: 0)))
        proof.renew(Identity(name: "ann", scheme: .bearer, expiry: .seconds(2600), end: again))
        #expect(Self.standing(proof, second: 1099, wall: 499, hasChanged: false) == "ann")
        #expect(Self.standing(proof, second: 1100, wall: 500, hasChanged: false) == "ended")
    }

    @Test func `a ticket of Kerberos holds until it expires, across reloads of the same settings`() {
        let proof = Self.proof("ann@R", .negotiate, expiry: .seconds(500))
        #expect(Self.standing(proof) == "ann@R")
        #expect(Self.standing(proof, second: 500, hasChanged: false) == "ended")
        #expect(Self.standing(proof) { settings, _ in settings.negotiate.keytab = "other" } == "ended")
    }

    @Test func `a certificate holds as long as an entry names its owner`() throws {
        var settings = Self.settings()
        let pattern = try #require(NamePattern("build-*"))
        settings.certificates = CertificateMap([.init(.cn, pattern, user: "{cn}", groups: ["a"])])
        let start = Moment(uptime: .zero, wallTime: WallTime(secondsSinceEpoch: 1000))
        let end = Expiry(at: WallTime(secondsSinceEpoch: 1050), seen: start)
        var proof = try #require(KeptProof(ClientCertificate(commonName: "build-7"), until: end, settings))
        func standing(_ second: Int = 0, clock: Int64 = 1000) -> KeptProof.Standing {
            proof.standing(
                settings, AuthenticationMaterial(), hasChanged: true, now: .seconds(second),
                wallTime: WallTime(secondsSinceEpoch: clock))
        }
        guard case .holds(let identity) = standing() else {
            Issue.record()
            return
        }
        #expect(identity.name == "build-7" && identity.groups == ["a"] && identity.scope == .connection)
        #expect(standing(50) == .ended)
        // The clock was set forward by a day: by what it says now, the certificate has expired.
        #expect(standing(1, clock: 87_401) == .ended)
        settings.certificates = CertificateMap([.init(.cn, pattern, user: "builder", groups: [])])
        guard case .holds(let renamed) = standing() else {
            Issue.record()
            return
        }
        #expect(renamed.name == "builder")
        settings.certificates = CertificateMap()
        #expect(standing() == .ended)
        #expect(KeptProof(ClientCertificate(commonName: "other"), until: nil, settings) == nil)
    }
}
