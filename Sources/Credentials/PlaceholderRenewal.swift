/// A member of an answer that is a new secret, such as `refresh_token` in the answer of a token endpoint (RFC 6749 §5.1, §6).
package struct PlaceholderRenewal: Sendable, Equatable {
    /// The names that lead to the member of a JSON text. In a form they stand with dots between them.
    package let member: [String]
    /// The credential of which it is the secret from now on.
    package let credential: String

    package init(member: [String], credential: String) {
        self.member = member
        self.credential = credential
    }
}

/// An answer with new secrets, of which the client gets placeholders alone.
package struct RenewedSecrets {
    /// How long such an answer is at most, in bytes. A longer one is not passed on.
    package static let bytesMax = 1 << 20

    /// Why the answer is not passed on.
    package enum Fault: Error, Equatable, Sendable {
        /// A member has a text that is too short for a secret, or that cannot be sent in a field.
        case unusable(member: String)
        /// A placeholder is not as long as the secret, and the length of the answer has been announced.
        case anotherLength(member: String)

        package var text: String {
            switch self {
            case .unusable(let member):
                "\(member) has fewer than \(SecretMask.bytesMin) characters, or some that no field can have"
            case .anotherLength(let member):
                "the placeholder for \(member) is not as long as the secret, and the length has been announced"
            }
        }
    }

    package struct Renewal: Sendable, Equatable {
        package let credential: String
        package let secret: Secret
        fileprivate let range: Range<Int>
        fileprivate let member: String
    }

    package let renewals: [Renewal]
    private let body: [UInt8]
    private let syntax: MemberSyntax

    /// Looks for the members that are listed. There may be none: the answer of an error has none.
    package init(_ body: [UInt8], _ syntax: MemberSyntax, _ listed: [PlaceholderRenewal]) throws(Fault) {
        var renewals: [Renewal] = []
        for member in BodyMember.all(of: body, syntax, listed.map(\.member)) {
            let name = listed[member.name].member.joined(separator: ".")
            let isUsable = member.value.allSatisfy { $0 > 0x20 && $0 < 0x7F }
            guard isUsable, member.value.count >= SecretMask.bytesMin else { throw .unusable(member: name) }
            renewals.append(
                Renewal(
                    credential: listed[member.name].credential, secret: Secret(member.value), range: member.range,
                    member: name))
        }
        self.renewals = renewals
        self.body = body
        self.syntax = syntax
    }

    /// The body with a placeholder in place of each secret.
    ///
    /// - Parameters:
    ///   - placeholders: one for each renewal, in their order.
    ///   - keepingLength: the length of the body has been announced. White space makes up for what a placeholder is shorter.
    package func body(with placeholders: [[UInt8]], keepingLength: Bool) throws(Fault) -> [UInt8] {
        precondition(placeholders.count == renewals.count, "each secret has its placeholder")
        var result: [UInt8] = []
        var position = 0
        for (renewal, placeholder) in zip(renewals, placeholders) {
            result += body[position..<renewal.range.lowerBound]
            let written = syntax.value(placeholder)
            result += written
            let missing = renewal.range.count - written.count
            if keepingLength, missing != 0 {
                // Only between the tokens of JSON may there be white space (RFC 8259 §2).
                guard missing > 0, syntax == .json else { throw .anotherLength(member: renewal.member) }
                result += [UInt8](repeating: 0x20, count: missing)
            }
            position = renewal.range.upperBound
        }
        return result + body[position...]
    }
}
