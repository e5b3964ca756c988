package import Credentials
import Kerberos
import Message
package import Origins

/// The log-in of one connection with NTLM or Negotiate (RFC 4559), at an origin or at a next proxy: the machine, and what makes its tokens.
///
/// Its owner is who uses the connection. It sends what a step says, and reports the final responses. It releases the log-in together with the
/// connection, and nothing is called afterwards.
package final class LinkLogIn {
    package enum Step: Equatable {
        /// Send the request with this value of `Authorization` or `Proxy-Authorization`.
        case send([UInt8])
        /// The connection has become one that is logged in, and the response is an ordinary one.
        case accepted
        /// The response is an ordinary one.
        case passOn
        case fail(Failure)
    }

    package struct Failure: Equatable {
        package let cause: ConnectionLogIn.Failure
        /// Why there is no token, or why the peer's proves nothing.
        let token: TokenFailure?
    }

    package typealias Completion = (Step) -> Void

    let scheme: ChallengeScheme
    /// Of the secrets that are proven.
    package let secretNumber: UInt64
    private let makeTokens: () -> ConnectionTokens
    private var machine = ConnectionLogIn()
    private var tokens: ConnectionTokens?
    private var tokensMade = 0
    private var isSpent = false

    /// - Parameter host: of the peer, as the configuration or the request names it.
    package init(
        _ scheme: ChallengeScheme, of rule: CredentialRule, _ secret: SecretShelf.Version, host: String,
        endPointHash: [UInt8]?, desk: TokenDesk
    ) {
        let means = TokenMeans(scheme, of: rule, secret)
        self.scheme = scheme
        secretNumber = secret.number
        // Anew for each log-in of the connection.
        makeTokens = { ConnectionTokens(means, host: host, endPointHash: endPointHash, desk: desk) }
    }

    /// Whether requests go out without a token.
    package var isAccepted: Bool { machine.isAccepted && !isSpent }

    /// Whether nothing of the log-in is outstanding: it was accepted, if only for one request.
    package var isOver: Bool { machine.isAccepted }

    /// Whether the token that was made last says who Larder is. The first message of NTLM names nobody.
    package var namesUser: Bool { tokensMade >= scheme.tokensMin }

    /// The log-in held for the request that carried it. The next one begins anew.
    package func spend() { isSpent = true }

    // Each of these returns the step if it is known at once. If not, it returns nil, and `then` gets the step in a later turn.

    /// The first request of the connection is about to be sent.
    package func begin(then: @escaping Completion) -> Step? { follow(machine.on(.asked), then) }

    /// The response is a 401 or a 407.
    ///
    /// - Parameter persists: whether the connection can carry another request after this response.
    package func challenged(by challenges: [Challenge], persists: Bool, then: @escaping Completion) -> Step? {
        guard let token = scheme.token(in: challenges) else {
            // The peer begins anew, or refuses what it got. On a connection that ends only the latter has a meaning.
            return follow(machine.on(persists || !machine.isAccepted ? .asked : .broke), then)
        }
        return follow(machine.on(persists ? .continued(token) : .broke), then)
    }

    /// The response is another final one.
    ///
    /// - Parameter challenges: the values of the same field as with a challenge. The last token of the peer is one.
    package func answered(with challenges: [Challenge], then: @escaping Completion) -> Step? {
        follow(machine.on(.accepted(token: scheme.token(in: challenges))), then)
    }

    /// The connection has ended.
    package func broke() -> Step { step(machine.on(.broke), nil) }

    private func follow(_ action: ConnectionLogIn.Action, _ then: @escaping Completion) -> Step? {
        switch action {
        case .makeToken(let received):
            makeToken(received, then)
            return nil
        case .accepted(let proof?):
            verify(proof, then)
            return nil
        case .accepted(proof: nil), .send, .passOn, .fail: return step(action, nil)
        }
    }

    private func makeToken(_ received: [UInt8]?, _ then: @escaping Completion) {
        if received == nil {
            tokens = makeTokens()
            tokensMade = 0
        }
        tokensMade += 1
        guard let tokens else { preconditionFailure("a log-in begins with a token of its own") }
        tokens.make(received: received) { [unowned self] result in
            switch result {
            case .success(let token): then(step(machine.on(.made(token)), nil))
            case .failure(let failure): then(step(machine.on(.failed(isRefusal: failure.isRefusal)), failure))
            }
        }
    }

    private func verify(_ proof: [UInt8], _ then: @escaping Completion) {
        guard let tokens else { preconditionFailure("a proof answers a token") }
        tokens.verify(proof) { [unowned self] result in
            switch result {
            case .success: then(.accepted)
            case .failure(let failure): then(step(machine.on(.disproved), failure))
            }
        }
    }

    private func step(_ action: ConnectionLogIn.Action, _ failure: TokenFailure?) -> Step {
        switch action {
        case .send(let token): .send(Array("\(scheme.authScheme) ".utf8) + encodeBase64(token))
        case .accepted: .accepted
        case .passOn: .passOn
        case .fail(let cause): .fail(Failure(cause: cause, token: failure))
        case .makeToken: preconditionFailure("a token is made before there is a step")
        }
    }
}

extension LinkLogIn.Failure: CustomStringConvertible {
    /// For the log: the predicate of a sentence about the log-in.
    package var description: String { token.map { "\(cause): \($0)" } ?? "\(cause)" }
}

extension ChallengeScheme {
    /// The name in `Authorization` (RFC 9110 §11.1).
    fileprivate var authScheme: String {
        switch self {
        case .basic: "Basic"
        case .digest: "Digest"
        case .ntlm: "NTLM"
        case .negotiate: "Negotiate"
        }
    }
}

extension TokenMeans {
    /// What a credential proves itself with in a scheme that it allows.
    init(_ scheme: ChallengeScheme, of rule: CredentialRule, _ secret: SecretShelf.Version) {
        func negotiate(_ source: InitiatorCredential.Source, _ service: String) -> TokenMeans {
            .negotiate(
                NegotiateIdentity(
                    credential: rule.name, secretNumber: secret.number, source: source, service: service))
        }
        switch (rule.means, scheme) {
        case (.password(let user, _, _, let names), .ntlm):
            self = .ntlm(NTLMCredential(user: user, domain: names.domain, password: secret[.password]))
        case (.password(let user, _, _, let names), .negotiate):
            self = negotiate(.password(secret[.password].bytes, principal: user), names.service)
        case (.ticket(let principal, let keytab?, let service), .negotiate):
            self = negotiate(.keytab(file: keytab, principal: principal), service)
        case (.ticket(let principal, nil, let service), .negotiate):
            self = negotiate(.defaultCache(principal: principal), service)
        case (.password, _), (.ticket, _), (.bearer, _), (.oauth1, _), (.sigv4, _), (.placeholder, _):
            preconditionFailure("a credential answers challenges of its own schemes")
        }
    }
}
