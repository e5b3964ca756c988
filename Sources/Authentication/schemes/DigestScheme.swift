package import Credentials
import Message
package import Rules

/// What schemes need of the machine that the core has not.
package struct AuthenticationTools: Sendable {
    let hashing: any Hashing
    /// For the nonces of Digest: with a key of this process, or of its fleet.
    let nonceHash: SipHash
    /// What is added to the monotonic clock, so that all nodes of a fleet tell the same time. Nil without a fleet.
    let clockOffset: (@Sendable () -> Duration)?
    let random: @Sendable () -> UInt64

    package init(
        hashing: some Hashing, nonceHash: SipHash, clockOffset: (@Sendable () -> Duration)? = nil,
        random: @escaping @Sendable () -> UInt64
    ) {
        self.hashing = hashing
        self.nonceHash = nonceHash
        self.clockOffset = clockOffset
        self.random = random
    }
}

/// The Digest scheme (RFC 7616): the client proves that it knows its password without sending it, and each proof is for one request.
///
/// With `auth-int` a digest covers the body of the request, which the driver reads before, if it is short. The proof of the proxy
/// (`rspauth`) would have to cover the body of the answer and precede it, so such an answer has none: RFC 7616 §3.5 leaves it to the server.
package struct DigestScheme: AuthenticationScheme {
    private let realm: [UInt8]
    private let users: DigestFile
    private let groups: GroupsFile
    private let nonces: DigestNonces
    private let opaque: [UInt8]
    private let protections: [DigestProtection]
    private let hashing: any Hashing
    /// Those that are offered, the strongest first.
    private let algorithms: [HashAlgorithm]
    /// The users by H(user:realm), for each algorithm that is offered (`userhash`).
    private let hashedUsers: [HashAlgorithm: [[UInt8]: String]]

    package var name: AuthenticationSchemeName { .digest }

    package init(_ settings: DigestSettings, _ users: DigestFile, _ groups: GroupsFile, _ tools: AuthenticationTools) {
        let realm = Array(settings.realm.utf8)
        self.realm = realm
        self.users = users
        self.groups = groups
        hashing = tools.hashing
        protections = settings.protection == .authInt ? [.authentication, .integrity] : [.authentication]
        nonces = DigestNonces(
            tools.nonceHash, lifetime: settings.nonceLifetime, clockOffset: tools.clockOffset, random: tools.random)
        let code = tools.nonceHash.digest(of: realm.span, 0..<realm.count).low
        opaque = hexadecimal((0..<8).map { UInt8(truncatingIfNeeded: code >> UInt64(8 * $0)) })
        var hashedUsers: [HashAlgorithm: [[UInt8]: String]] = [:]
        let offersMD5 =
            switch settings.md5 {
            case .needed: !users.usersOfMD5Alone.isEmpty
            case .yes: true
            case .no: false
            }
        for algorithm in [HashAlgorithm.sha512_256, .sha256, .md5] where users.has(algorithm) {
            guard algorithm != .md5 || offersMD5 else { continue }
            hashedUsers[algorithm] = DigestScheme.hashes(of: users.users, realm, algorithm, tools.hashing)
        }
        self.hashedUsers = hashedUsers
        let usable = [HashAlgorithm.sha512_256, .sha256, .md5].filter { hashedUsers[$0] != nil }
        algorithms = usable.isEmpty ? [.sha256] : usable
    }

    /// Nil if this installation does not compute the hash.
    private static func hashes(
        of users: [String], _ realm: [UInt8], _ algorithm: HashAlgorithm, _ hashing: some Hashing
    ) -> [[UInt8]: String]? {
        var result: [[UInt8]: String] = [:]
        do throws(HashUnavailable) {
            for user in users {
                result[try digestUserHash(Array(user.utf8), realm: realm, algorithm, using: hashing)] = user
            }
        } catch {
            return nil
        }
        return result
    }

    /// A challenge for each algorithm: a client takes the first one that it knows (RFC 7616 §3.7). All have one nonce.
    package func challenges(at now: Duration, after failure: AuthenticationFailure?) -> [[UInt8]] {
        let nonce = nonces.make(at: now)
        let offered = failure == .bodyNotCovered ? [.authentication] : protections
        return algorithms.map {
            digestChallengeText(realm: realm, nonce: nonce, opaque: opaque, $0, offered, isStale: failure == .stale)
        }
    }

    /// Whether these are credentials with `auth-int`, and it is offered.
    func coversBody(_ value: [UInt8]) -> Bool {
        guard protections.contains(.integrity), case .credentials(let credentials) = DigestCredentials.read(value[...])
        else { return false }
        return credentials.protection == .integrity
    }

    package func examine(
        _ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep? {
        guard let value = attempt.credentials else { return nil }
        switch DigestCredentials.read(value[...]) {
        case .otherScheme: return nil
        case .malformed: return .refused(.missing)
        case .credentials(let credentials):
            do throws(HashUnavailable) {
                return try judge(credentials, attempt, &memory)
            } catch {
                return .refused(.missing)
            }
        }
    }

    package func conclude(
        _ question: AuthenticationQuestion, _ answer: AuthenticationAnswer, _ attempt: AuthenticationAttempt,
        _ memory: inout VerifiedCredentials
    ) -> AuthenticationStep {
        preconditionFailure("Digest asks nothing")
    }

    /// Nothing is told apart before the digest has been computed, so that neither answer nor time says whether a user exists.
    private func judge(
        _ credentials: DigestCredentials, _ attempt: AuthenticationAttempt, _ memory: inout VerifiedCredentials
    ) throws(HashUnavailable) -> AuthenticationStep {
        let algorithm = credentials.algorithm.hash
        guard mayBeJudged(credentials), DigestScheme.names(credentials.uri.span, attempt.target.span) else {
            return .refused(.missing)
        }
        if credentials.protection == .integrity, attempt.body == .unknown { return .refused(.bodyNotCovered) }
        let user = user(of: credentials)
        if memory.wait(of: attempt.client, as: user, now: attempt.now) != nil { return .refused(.tooManyFailures) }
        let secret = users.secret(of: user, algorithm)
        let isRight = try credentials.prove(
            secret ?? DigestScheme.secretOfNobody, method: attempt.method, body: attempt.body, using: hashing)
        guard isRight, let secret else {
            memory.failed(attempt.client, as: user, now: attempt.now)
            return .refused(.wrong)
        }
        guard case .valid(let nonce, let isOld) = nonces.read(credentials.nonce, at: attempt.now),
            memory.use(credentials.count, of: nonce, valid: nonces.valid(now: attempt.now))
        else { return .refused(.stale) }
        memory.succeeded(attempt.client, as: user, now: attempt.now)
        let next = isOld ? nonces.make(at: attempt.now) : nil
        let information = try credentials.information(secret, next: next, using: hashing)
        return .known(
            Identity(name: user, scheme: .digest, groups: groups.groups(of: user)),
            reply: information.isEmpty ? nil : .information(information))
    }

    /// Whether the credentials answer a challenge of this scheme.
    private func mayBeJudged(_ credentials: DigestCredentials) -> Bool {
        credentials.realm == realm && algorithms.contains(credentials.algorithm.hash)
            && !credentials.algorithm.isSession && protections.contains(credentials.protection)
            && credentials.opaque ?? opaque == opaque
    }

    /// The name that the client gives, whether there is such a user or not.
    private func user(of credentials: DigestCredentials) -> String {
        switch credentials.user {
        case .name(let name): String(decoding: name, as: UTF8.self)
        case .hashed(let hash):
            hashedUsers[credentials.algorithm.hash]?[hash] ?? String(decoding: hash.prefix(64), as: UTF8.self)
        }
    }

    /// No password has this hash: it has letters that are no digits.
    private static let secretOfNobody = Secret([UInt8](repeating: UInt8(ascii: "x"), count: 64))

    /// Whether `uri` is that of the request (RFC 7616 §3.4.6).
    ///
    /// For a request in absolute-form most clients digest the path with the query, as they would send it to an origin: curl, wget, Chromium
    /// and Python's requests do. Java and Python's urllib digest the absolute form. Both are right. With CONNECT it is the authority.
    ///
    /// - Parameter target: as the parser knows it. A client that sends bytes beyond ASCII digests them as it sends them.
    static func names(_ uri: borrowing Span<UInt8>, _ target: borrowing Span<UInt8>) -> Bool {
        for index in uri.indices where uri[index] > 0x7F {
            guard let encoded = encodingBeyondASCII(uri.indices.map { uri[$0] }) else { return false }
            return names(encoded.span, target)
        }
        if areEqual(uri, 0..<uri.count, target, 0..<target.count) { return true }
        guard let authority = DigestScheme.startOfAuthority(target) else {
            // An authority: hosts compare without regard to case.
            guard target.count == uri.count, target.count > 0, target[0] != UInt8(ascii: "/") else { return false }
            for index in 0..<target.count where asciiLowercased(uri[index]) != asciiLowercased(target[index]) {
                return false
            }
            return true
        }
        var path = authority
        while path < target.count, target[path] != UInt8(ascii: "/"), target[path] != UInt8(ascii: "?") { path += 1 }
        if path < target.count, target[path] == UInt8(ascii: "/") {
            return areEqual(uri, 0..<uri.count, target, path..<target.count)
        }
        // An empty path goes out as "/" (RFC 9112 §3.2.1).
        return uri.count > 0 && uri[0] == UInt8(ascii: "/")
            && areEqual(uri, 1..<uri.count, target, path..<target.count)
    }

    /// What follows the first "://". Nil if there is none.
    private static func startOfAuthority(_ target: borrowing Span<UInt8>) -> Int? {
        for index in 0..<max(0, target.count - 2)
        where target[index] == UInt8(ascii: ":") && target[index + 1] == UInt8(ascii: "/")
            && target[index + 2] == UInt8(ascii: "/")
        {
            return index + 3
        }
        return nil
    }
}

/// Requests that follow a proven one on its connection.
extension DigestScheme {
    /// What the next requests are checked with.
    ///
    /// - Parameters:
    ///   - value: the field value with which `identity` was proven just now.
    /// - Returns: nil if they have to be read in full.
    package func proven<Hash: RunningHash>(
        _ value: ArraySlice<UInt8>, as identity: Identity, now: Duration, _: Hash.Type
    ) -> ProvenDigest<Hash>? {
        guard case .credentials(let credentials) = DigestCredentials.read(value), mayBeJudged(credentials),
            case .valid(let nonce, _) = nonces.read(credentials.nonce, at: now), user(of: credentials) == identity.name,
            let secret = users.secret(of: identity.name, credentials.algorithm.hash),
            let proof = DigestProof<Hash>(value, credentials, secret)
        else { return nil }
        return ProvenDigest(identity: identity, proof, nonce, of: nonces)
    }
}
