import Message

/// The value of `Larder-Deny`, which every 403 of Larder's own has: why, for programs and for people.
///
/// A dictionary of structured fields (RFC 9651 §3.2) with the member `reason`, a token. What belongs to it are its parameters: `rule`,
/// the number of the rule that denied the request; `nearest`, that of the allow rule that comes nearest; `hint`, what the client can do.
struct DenyField {
    let reason: String
    let rule: Int?
    let nearestRule: Int?
    let hint: String

    func append(to bytes: inout [UInt8]) {
        precondition(isStructuredToken(reason.utf8), "reasons are tokens")
        bytes.append("reason=")
        bytes.append(contentsOf: reason.utf8)
        append("; rule=", rule, to: &bytes)
        append("; nearest=", nearestRule, to: &bytes)
        bytes.append("; hint=")
        appendStructuredString(hint.utf8, to: &bytes)
    }

    private func append(_ name: StaticString, _ number: Int?, to bytes: inout [UInt8]) {
        guard let number else { return }
        bytes.append(name)
        HeadWriter.append(decimal: number, to: &bytes)
    }
}
