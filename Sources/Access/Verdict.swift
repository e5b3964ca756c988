/// What the rules say about one request.
package enum Verdict: Sendable, Equatable {
    /// - Parameter rule: the number of the rule that said so; nil where none did.
    case allow(rule: Int?)
    case deny(Denial)
    /// A rule with an `address` condition decides, and the host is a name: ask again with its address.
    case needsAddress
}

/// Why a request is refused: the same value feeds the response, the log and the counters.
package struct Denial: Error, Sendable, Equatable, CustomStringConvertible {
    /// The rule, counted from 1 in the order of the file; nil where it was no rule.
    package let rule: Int?
    package let reason: DenialReason
    /// One sentence for people. It names the destination as asked for, never a user or a password.
    package let text: String
    /// 403 (RFC 9110 §15.5.4).
    package var status: UInt16 { 403 }

    package init(rule: Int? = nil, reason: DenialReason, text: String) {
        self.rule = rule
        self.reason = reason
        self.text = text
    }

    package var description: String { text }
}

/// The kinds of refusal; the raw value is the name in logs and counters.
package enum DenialReason: String, CaseIterable, Sendable {
    /// A `deny` rule matched.
    case rule
    /// There are rules, none matched, and the default is deny.
    case noRule = "no-rule"
    /// The address that would be dialled is not public and no rule opens it.
    case privateDestination = "private-destination"
    /// CONNECT to a port that is neither in `access.connect_ports` nor named by a rule that allows it.
    case connectPort = "connect-port"
    /// The client is not in `access.clients`.
    case client
}
