/// What the rules say about one request.
package enum Verdict: Sendable, Equatable {
    /// - Parameter rule: the number of the rule that allows it. Nil if no rule matched, or if there are none.
    case allow(rule: Int?)
    case deny(Denial)
    /// The verdict depends on the address: resolve the host and ask again.
    case needsAddress
}

/// Why the rules refuse a request. The response shows `text`; `Refusal` (Transaction) maps `reason` to the refusal that is logged and
/// counted, so several reasons share one name there.
package struct Denial: Error, Sendable, Equatable, CustomStringConvertible {
    /// The number of the rule, from 1 in the order of the file. Nil: no rule denied it.
    package let rule: Int?
    package let reason: DenialReason
    /// One sentence for people. It names the destination that was requested, and never a user or a password.
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

/// The kinds of denial. The raw value is the name in `larder explain` and in the manual; the log and the counters name the `Refusal`.
package enum DenialReason: String, CaseIterable, Sendable {
    /// A `deny` rule matched.
    case rule
    /// No rule matched, and the default is deny.
    case noRule = "no-rule"
    /// The address is not public, and no rule opens it.
    case privateDestination = "private-destination"
    /// CONNECT to a port that is neither in `access.connect_ports` nor named by a rule that allows it.
    case connectPort = "connect-port"
    /// The client is not in `access.clients`.
    case client
    /// A tunnel to a host of `intercept.hosts` that Larder cannot open, while rules ask for what is inside.
    case notOpened = "not-opened"
    /// A placeholder of `credentials` stands where it is not replaced, or a credential of the client's own stands in its place.
    case credential
}
