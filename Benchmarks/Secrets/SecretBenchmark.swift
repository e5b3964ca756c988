import Authentication
import Credentials
import Glibc
import Message
import Passwords
import Rules
import TLS
import Tokens

/// Judges wrong credentials again and again, so that Benchmarks/Secrets/run.sh can count the instructions of one judgement.
///
/// `SecretBenchmark` lists the cases: a family and what is wrong on each line. `SecretBenchmark FAMILY CASE COUNT` runs one.
@main
struct SecretBenchmark {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let family = families.first(where: { $0.name == arguments[1] }),
            let index = family.cases.firstIndex(of: arguments[2]), let count = Int(arguments[3])
        else {
            for family in families { for name in family.cases { print(family.name, name) } }
            exit(arguments.count == 1 ? 0 : 2)
        }
        family.judge(index, count)
    }

    private struct Family: Sendable {
        let name: String
        let cases: [String]
        /// Makes the credentials of a case, and has them judged so many times.
        let judge: @Sendable (_ index: Int, _ count: Int) -> Void
    }

    private static let families: [Family] = [
        Family(name: "digest", cases: ["first-digit", "last-digit", "unknown-user"]) { index, count in
            var play = Play()
            let user = index == 2 ? "eve" : "ann"
            let sent = play.digest(user, wrongAt: index == 0 ? 0 : 63)
            for _ in 0..<count { play.examine(sent, expecting: .refused(.wrong)) }
        },
        Family(name: "digest-short", cases: ["first-digit", "last-digit"]) { index, count in
            var play = Play()
            let proven = play.proven()
            var fields = Fields()
            fields.append(.proxyAuthorization, text(play.digest("ann", wrongAt: index == 0 ? 0 : 63)))
            fields.append(.age, "GET")
            fields.append(.date, "http://example.org/a")
            let lines = fields.section.lines
            for _ in 0..<count {
                let claim = proven.claim(
                    in: fields.section, method: lines[1].valueRange, target: lines[2].valueRange, fields.bytes.span,
                    now: Play.now)
                precondition(claim == nil, "a wrong digest proves nothing")
            }
        },
        Family(name: "nonce", cases: ["first-digit", "last-digit"]) { index, count in
            let nonces = DigestNonces(SipHash(key: (1, 2)), lifetime: .seconds(300)) { 7 }
            var nonce = nonces.make(at: Play.now)
            // The code is the second half.
            spoil(&nonce, at: index == 0 ? 32 : 63)
            for _ in 0..<count { precondition(nonces.read(nonce, at: Play.now) == .stale, "a wrong nonce is valid") }
        },
        Family(name: "token", cases: ["first-letter", "last-letter", "all-letters"]) { index, count in
            var play = Play()
            var token = Play.token
            if index == 2 { token = token.map { $0 == UInt8(ascii: "x") ? $0 : UInt8(ascii: "x") } }
            if index < 2 { spoil(&token, at: index == 0 ? 0 : token.count - 1) }
            let sent = Array("Bearer ".utf8) + token
            for _ in 0..<count { play.examine(sent, expecting: .refused(.token(.unknown))) }
        },
        // A round takes 50 ms, and a hundred times that where instructions are counted.
        Family(name: "password", cases: ["first-letter", "last-letter", "unknown-user"]) { index, count in
            let stored = "$2b$10$saltsaltsaltsaltsalteePKr5u5yKpnqTLgeDMfKJ3k0ajtRsEZC"
            var password = Array("correct horse".utf8)
            spoil(&password, at: index == 0 ? 0 : password.count - 1)
            for _ in 0..<max(1, count / 1000) {
                precondition(
                    !verify(password: password, hash: index == 2 ? hashOfNobody : stored), "a wrong password is right")
            }
        },
    ]
}

/// The authenticator and what workers remember.
private struct Play {
    static let now = Duration.seconds(100)
    static let token = Array("larder_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG".utf8)
    private let scheme: DigestScheme
    private let bearer: Authenticator
    private var memory: VerifiedCredentials

    init() {
        let secret = hexadecimal(Digest.sha256(Array("ann:larder:secret".utf8)))
        let users = DigestFile.parse(Array("ann:larder:SHA-256:".utf8) + secret, realm: "larder").file
        let tools = AuthenticationTools(hashing: OpenSSL(), nonceHash: SipHash(key: (1, 2)), random: { 7 })
        scheme = DigestScheme(DigestSettings(), users, GroupsFile(), tools)
        var settings = AuthenticationSettings()
        settings.bearer.tokensFile = "tokens"
        var material = AuthenticationMaterial()
        material.tokens =
            TokenFile.parse(Array("builder:".utf8) + hexadecimal(Digest.sha256(Play.token))).file
        guard let made = Authenticator(settings, material, tools) else { preconditionFailure("a scheme is offered") }
        bearer = made
        var bounds = FailureCounts.Bounds()
        bounds.perSourceMax = .max
        bounds.perNameMax = .max
        memory = VerifiedCredentials(attempts: OwnAttempts(Attempts(FailureCounts(bounds)))) { $0 }
    }

    /// The credentials of a user with the right password.
    ///
    /// - Parameter place: the digit of the response that is wrong. Nil: none.
    mutating func digest(_ user: String, wrongAt place: Int?) -> [UInt8] {
        guard let challenge = scheme.challenges(at: Play.now, after: nil).first,
            let read = parseChallenges([challenge[...]]).first.flatMap({ DigestChallenge($0) }),
            var session = try? DigestSession(read, user: user, password: Secret("secret")),
            let sent = try? session.authorization(
                for: DigestRequest(method: Array("GET".utf8), uri: Array("/a".utf8)), clientNonce: Array("c".utf8),
                using: OpenSSL())
        else { preconditionFailure("the challenge can be answered") }
        guard let place else { return sent.value }
        let name = Array("response=\"".utf8)
        guard let range = sent.value.firstRange(of: name) else { preconditionFailure("there is a response") }
        var value = sent.value
        spoil(&value, at: range.upperBound + place)
        return value
    }

    mutating func proven() -> ProvenDigest<RunningOpenSSL> {
        let sent = digest("ann", wrongAt: nil)
        let identity = Identity(name: "ann", scheme: .digest)
        guard let proven = scheme.proven(sent[...], as: identity, now: Play.now, RunningOpenSSL.self) else {
            preconditionFailure("the digest is right")
        }
        return proven
    }

    mutating func examine(_ credentials: [UInt8], expecting expected: AuthenticationStep) {
        let attempt = AuthenticationAttempt(
            credentials: credentials, method: Array("GET".utf8), target: Array("http://example.org/a".utf8),
            client: nil,
            now: Play.now)
        if case .refused(.wrong) = expected {
            precondition(scheme.examine(attempt, &memory) == expected, "wrong credentials are refused")
        } else {
            guard case .refused(.token(.unknown)) = bearer.examine(attempt, &memory) else {
                preconditionFailure("a wrong token is refused")
            }
        }
    }
}

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// Puts another digit or letter in the place of one.
private func spoil(_ bytes: inout [UInt8], at index: Int) {
    bytes[index] = bytes[index] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
}

private final class OwnAttempts: SharedAttempts, @unchecked Sendable {  // of one thread
    private var attempts: Attempts
    init(_ attempts: Attempts) { self.attempts = attempts }
    func withAttempts<Result>(_ body: (inout Attempts) -> Result) -> Result { body(&attempts) }
}

private struct OpenSSL: Hashing {
    func hash(_ algorithm: HashAlgorithm, _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        guard algorithm == .sha256 else { throw HashUnavailable(algorithm) }
        return Digest.sha256(bytes)
    }

    func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) throws(HashUnavailable) -> [UInt8] {
        throw HashUnavailable(algorithm)
    }
}

private struct RunningOpenSSL: RunningHash {
    private var state: HashState

    init?(_ algorithm: HashAlgorithm) {
        guard algorithm == .sha256, let state = HashState(.sha256) else { return nil }
        self.state = state
    }

    mutating func add(_ bytes: borrowing Span<UInt8>) { state.add(bytes) }
    mutating func finish(into hash: inout HashBytes) { state.finish(into: &hash) }
}
