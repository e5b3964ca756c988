import JSON
package import Message

/// What a token has to say to be accepted: `access.authentication.bearer.jwt` without the keys.
package struct TokenTerms: Sendable, Equatable {
    /// `iss` has to be this.
    package var issuer = ""
    /// `aud` has to name one of these.
    package var audiences: [String] = []
    package var algorithms = SignatureAlgorithm.usual
    /// How far the clocks of issuer and proxy may be apart.
    package var clockSkew: Duration = .seconds(60)
    /// The claim that has the name of the user.
    package var nameClaim = "sub"
    /// The claim that has the groups. Nil: the user has none.
    package var groupsClaim: String?

    package init() {}

    /// The longest name of a user or a group, in bytes.
    static let nameBytesMax = 256
    static let groupsMax = 256

    /// Checks all claims. The signature is somebody else's concern: without it, what this returns is only what the token pretends.
    package func judge(_ token: JSONWebToken, now: WallTime) throws(TokenFault) -> TokenSubject {
        guard algorithms.contains(token.algorithm) else { throw .algorithm }
        let claims = token.claims
        guard claims["iss"]?.text == issuer else { throw .issuer }
        guard names(of: claims["aud"]).contains(where: audiences.contains) else { throw .audience }
        let skew = clockSkew.components.seconds
        let second = now.secondsSinceEpoch
        guard let expiry = try date(claims["exp"]) else { throw .noExpiry }
        // The time has to be before `exp` (RFC 7519 §4.1.4), and not before `nbf` (§4.1.5).
        guard second < expiry.saturatingAdd(skew) else { throw .expired }
        if let start = try date(claims["nbf"]), second < start.saturatingSubtract(skew) { throw .notYetValid }
        if let issued = try date(claims["iat"]), second < issued.saturatingSubtract(skew) { throw .issuedInFuture }
        guard let name = claims[nameClaim]?.text, isName(name) else { throw .name }
        return TokenSubject(
            name: name, groups: try groups(of: claims),
            expiry: WallTime(secondsSinceEpoch: min(expiry.saturatingAdd(skew), 1 << 40)))
    }

    /// NumericDate (RFC 7519 §2): seconds, which may have a fraction.
    private func date(_ value: JSONValue?) throws(TokenFault) -> Int64? {
        switch value {
        case nil: return nil
        case .integer(let seconds): return seconds
        case .double(let seconds) where seconds.magnitude < 0x1p53: return Int64(seconds)
        default: throw .malformed
        }
    }

    /// `aud` is a string, or a list of them (RFC 7519 §4.1.3).
    private func names(of value: JSONValue?) -> [String] {
        if let one = value?.text { return [one] }
        return value?.elements?.compactMap(\.text) ?? []
    }

    /// A list of strings, or one string with spaces between, as `scope` has (RFC 8693 §4.2).
    ///
    /// A token without the claim has no groups. What cannot be read is an error: a rule that denies something to a group must not miss it.
    private func groups(of claims: JSONValue) throws(TokenFault) -> [String] {
        guard let groupsClaim, let value = claims[groupsClaim] else { return [] }
        let groups: [String]
        if let text = value.text {
            groups = text.split(separator: " ").map(String.init)
        } else if let elements = value.elements {
            groups = elements.compactMap(\.text)
            guard groups.count == elements.count else { throw .groups }
        } else {
            throw .groups
        }
        guard groups.count <= TokenTerms.groupsMax, groups.allSatisfy(isName) else { throw .groups }
        return groups
    }

    private func isName(_ text: String) -> Bool {
        (1...TokenTerms.nameBytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}

/// Whom a token is about.
package struct TokenSubject: Sendable, Equatable {
    package let name: String
    package let groups: [String]
    /// From when on the token is no longer accepted, the clock skew included.
    package let expiry: WallTime
}
