import Message

/// Where in a request a placeholder is replaced, besides `Authorization`.
package struct PlaceholderPlaces: Sendable, Equatable {
    /// Names of fields.
    package var fields: [String] = []
    /// Names of members of the query.
    package var query: [String] = []
    /// A segment of the path.
    package var path = false
    /// Members of a JSON text, each by the names that lead to it.
    package var json: [[String]] = []
    /// Names of members of a form.
    package var form: [String] = []
    /// Members of answers that are new secrets.
    package var renewals: [PlaceholderRenewal] = []
    /// Requests with other credentials are refused: those of an account of the client's own would be a way out.
    package var isRequired = false
    /// What placeholders begin with. Nil: what the secret begins with.
    package var prefix: String?

    package init() {}

    package var concernBodies: Bool { !json.isEmpty || !form.isEmpty }

    /// Whether no placeholder may stand in a field of that name: servers write it into logs and pages, or it says how the message is read.
    package static func isExcluded(field name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        return excludedNames.contains(name) || excludedPrefixes.contains { name.hasPrefix($0) }
    }

    private static let excludedNames: Set = [
        "user-agent", "referer", "origin", "from", "cookie", "host", "forwarded", "via", "x-request-id", "traceparent",
        "tracestate", "baggage", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect",
        "max-forwards", "range", "cache-control", "pragma", "date", "dnt", "authorization", "proxy-authorization",
        "x-correlation-id", "larder-policy",
    ]
    private static let excludedPrefixes = ["x-forwarded-", "accept", "if-", "sec-", "content-", "proxy-", "x-b3-"]
}

/// A placeholder in a request, where it may be replaced.
package struct PlaceholderUse: Sendable, Equatable {
    package enum Place: Sendable, Equatable {
        /// The whole value of `Authorization` behind its scheme, which is empty or ends in a space.
        case authorization(scheme: [UInt8])
        /// In the user or the password of Basic (RFC 7617).
        case basic(user: [UInt8], password: [UInt8])
        /// In the value of another field, with what is around it.
        case field(name: [UInt8], before: [UInt8], after: [UInt8])
        /// In the target, with what is around it.
        case target(before: [UInt8], after: [UInt8])
    }
    package let placeholder: Placeholder
    package let place: Place

    /// Whether the field of the placeholder has room for a credential of the client's own: what an origin may take for one stands beside it.
    package var holdsMore: Bool {
        switch place {
        case .authorization, .target: false
        // Where the placeholder is the password, the origin learns a name beside it. Where it is the user, clients send a word that means nothing.
        case .basic(let user, let password):
            user == placeholder.text && !Self.emptyPasswords.contains { password.elementsEqual($0.utf8) }
        case .field(_, let before, let after):
            !after.isEmpty || !(before.isEmpty || (before.last == 0x20 && before.dropLast().allSatisfy(isTchar)))
        }
    }

    private static let emptyPasswords = ["", "x", "X", "x-oauth-basic", "api_token"]

    /// What is sent in place of what the client has sent.
    package enum Change: Sendable, Equatable {
        case authorization(Secret)
        case field(name: [UInt8], Secret)
        case target(Secret)
    }

    package func change(to secret: Secret) -> Change {
        switch place {
        case .authorization(let scheme): .authorization(Secret(scheme + secret.bytes))
        case .basic(let user, let password):
            .authorization(Secret(Array("Basic ".utf8) + basic(user, password, secret.bytes)))
        case .field(let name, let before, let after): .field(name: name, Secret(before + secret.bytes + after))
        case .target(let before, let after): .target(Secret(before + percentEncoded(secret.bytes) + after))
        }
    }

    /// The mask for what comes back.
    package func mask(_ secret: Secret, showsPlaceholder: Bool) -> SecretMask {
        var encoded: [(sent: [UInt8], own: [UInt8])] = []
        if case .basic(let user, let password) = place {
            encoded = [
                (basic(user, password, secret.bytes), showsPlaceholder ? basic(user, password, placeholder.text) : [])
            ]
        }
        return SecretMask(secret, standIn: showsPlaceholder ? placeholder.text : nil, encoded: encoded)
    }

    private func basic(_ user: [UInt8], _ password: [UInt8], _ text: [UInt8]) -> [UInt8] {
        let isUser = user == placeholder.text
        return encodeBase64((isUser ? text : user) + [0x3A] + (isUser ? password : text))
    }
}

/// Why a request with a placeholder, or without the one that it should have, is refused.
package enum PlaceholderFault: Error, Equatable, Sendable {
    /// It stands where it is not replaced.
    case misplaced(Placeholder, place: String)
    /// The credential is not for this request: its host, port, method or path, or `http` without TLS.
    case foreignRequest(Placeholder)
    /// There are several.
    case several(Placeholder)
    case ended(Placeholder)
    /// The request has a credential that is no placeholder, where only placeholders are allowed.
    case ownCredential(place: String, credential: String)
    /// The body could hold such a credential unseen.
    case unreadableBody(BodyReadings.Obstacle, credential: String)

    /// For the client and for the log. It shows no placeholder.
    package var text: String {
        switch self {
        case .misplaced(let one, let place):
            "the placeholder of the credential \(one.credential) stands in \(place), where it is not replaced"
        case .foreignRequest(let one):
            "the placeholder of the credential \(one.credential) was sent to where that credential does not belong"
        case .several(let one):
            "the request contains the placeholder of the credential \(one.credential) more than once"
        case .ended(let one):
            "the placeholder of the credential \(one.credential) \(one.isRevoked ? "was revoked" : "has expired")"
        case .ownCredential(let place, let credential):
            "\(place) holds a credential of the client's own, and only placeholders of the credential \(credential) are allowed here"
        case .unreadableBody(let obstacle, let credential):
            "the body cannot be examined, and only placeholders of the credential \(credential) are allowed in it: \(obstacle.text)"
        }
    }
}
