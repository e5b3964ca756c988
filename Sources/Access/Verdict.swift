import Rules

/// What the rules say about one request.
package enum Verdict: Sendable, Equatable {
    /// - Parameter rule: the number of the rule that allows it. Nil if no rule matched, or if there are none.
    case allow(rule: Int?)
    case deny(Denial)
    /// The verdict depends on the address: resolve the host and ask again.
    case needsAddress
    /// CONNECT: the verdict depends on the server name in the tunnel's first bytes. Read them, send nothing on, and ask again.
    case needsServerName
}

/// Why the rules refuse a request. The response shows `text` and `hint`; `Refusal` (Transaction) maps `reason` to the refusal that is
/// logged and counted, so several reasons share one name there.
package struct Denial: Error, Sendable, Equatable, CustomStringConvertible {
    /// The number of the rule, from 1 in the order of the file. Nil: no rule denied it.
    package let rule: Int?
    package let reason: DenialReason
    /// One sentence for people. It names the destination that was requested, and never a user or a password.
    package let text: String
    /// The page to which a rule sends clients. Nil: the answer is a page of Larder.
    package let page: String?
    /// What the request lacks, if the rules deny everything that they do not allow. Nil if more than one thing may be missing.
    package let shortfall: Shortfall?
    /// Whether credentials of the client may change it.
    package let asksForCredentials: Bool
    /// 403 (RFC 9110 §15.5.4), or 407 (§15.5.8).
    package var status: UInt16 { asksForCredentials ? 407 : 403 }

    package init(
        rule: Int? = nil, reason: DenialReason, text: String, page: String? = nil, shortfall: Shortfall? = nil,
        asksForCredentials: Bool = false
    ) {
        self.asksForCredentials = asksForCredentials
        self.rule = rule
        self.reason = reason
        self.text = text
        self.page = page
        self.shortfall = shortfall
    }

    /// The reason as exactly as the client may know it: `reason` of `Larder-Deny`, and `denial` in the log.
    package var exactReason: DenialReason { shortfall?.reason ?? reason }

    /// The same for a client that has no way to send credentials with this request.
    package var withoutCredentials: Denial {
        Denial(rule: rule, reason: reason, text: text, page: page, shortfall: shortfall)
    }

    /// What the client can do about it.
    package var hint: String { shortfall?.text ?? "\(exactReason.hint)" }

    package var description: String { text }
}

/// The kinds of denial. The raw value is the name in `Larder-Deny`, the access log, the counters, `larder explain` and the manual.
package enum DenialReason: String, CaseIterable, Sendable {
    /// A `deny` rule matched.
    case rule
    /// No rule matched, and the default is deny.
    case noRule = "no-rule"
    // What `Shortfall` finds in place of `noRule`, or of a rule that denies everything.
    case hostNotAllowed = "host-not-allowed"
    case addressNotAllowed = "address-not-allowed"
    case portNotAllowed = "port-not-allowed"
    case methodNotAllowed = "method-not-allowed"
    case pathNotAllowed = "path-not-allowed"
    case requestNotAllowed = "request-not-allowed"
    case userNotAllowed = "user-not-allowed"
    case clientNotAllowed = "client-not-allowed"
    /// The address is not public, and no rule opens it.
    case privateDestination = "private-destination"
    /// The address is that of Larder's admin server.
    case adminServer = "admin-server"
    /// The address is one on which Larder itself accepts clients.
    case ownListener = "own-listener"
    /// The address is that of a next proxy of `routes`, and no rule names it.
    case nextProxy = "next-proxy"
    /// CONNECT to a port that is neither in `access.connect_ports` nor named by a rule that allows it.
    case connectPort = "connect-port"
    /// The client is not in `access.clients`.
    case client
    /// An `authenticate` rule matched, and the client has not said who it is. The answer is 407 where the client can answer it.
    case notAuthenticated = "not-authenticated"
    /// A tunnel to a host of `intercept.hosts` that Larder cannot open, while rules ask for what is inside.
    case notOpened = "not-opened"
    /// A placeholder of `credentials` stands where it is not replaced, or a credential of the client's own stands in its place.
    case credential

    /// - Parameter conditions: of an allow rule, which do not hold. Nil if there are none.
    init?(unmet conditions: RuleCondition) {
        let table: [(RuleCondition, DenialReason)] = [
            (.host, .hostNotAllowed), (.address, .addressNotAllowed), (.port, .portNotAllowed),
            (.method, .methodNotAllowed), (.path, .pathNotAllowed),
            ([.scheme, .details, .serverName], .requestNotAllowed),
            (.user, .userNotAllowed), (.client, .clientNotAllowed),
        ]
        guard let row = table.first(where: { !conditions.isDisjoint(with: $0.0) }) else { return nil }
        self = row.1
    }

    /// Everything about one case.
    private struct Row {
        let meaning: StaticString
        let hint: StaticString

        init(_ meaning: StaticString, _ hint: StaticString) {
            self.meaning = meaning
            self.hint = hint
        }
    }

    /// The table of all denials. The response and the manual take their texts from it.
    private var row: Row {
        switch self {
        case .rule:
            Row("A deny rule matched.", "Ask the administrator of the proxy whether this request can be allowed.")
        case .noRule:
            Row(
                "No rule matched, and the default is to deny.",
                "Ask the administrator of the proxy for a rule that allows this request.")
        case .hostNotAllowed:
            Row(
                "No rule allows the host.", "Ask the administrator of the proxy for a rule that allows this host.")
        case .addressNotAllowed:
            Row(
                "No rule allows the address that the host has.",
                "Ask the administrator of the proxy for a rule that allows this address.")
        case .portNotAllowed:
            Row("A rule allows the host, but not this port.", "Use a port that the rule allows.")
        case .methodNotAllowed:
            Row("A rule allows the host, but not this method.", "Use a method that the rule allows.")
        case .pathNotAllowed:
            Row(
                "A rule allows the host, but not this path.",
                "Ask the administrator of the proxy for a rule that allows this path.")
        case .requestNotAllowed:
            Row(
                "A rule allows the host, but not a request like this one: its query, fields, size, scheme or time.",
                "Ask the administrator of the proxy for a rule that allows this request.")
        case .userNotAllowed:
            Row(
                "No rule allows this user anything.",
                "Log in to the proxy as another user, or ask its administrator for a rule for this one.")
        case .clientNotAllowed:
            Row(
                "No rule allows the address of this client anything.",
                "Ask the administrator of the proxy for a rule for the address of this client.")
        case .privateDestination:
            Row(
                "The address to connect to is not public, and no rule opens it.",
                "Ask the administrator of the proxy for a rule that names this address.")
        case .adminServer:
            Row(
                "The address is that of Larder's admin server.",
                "Connect to the admin server directly, without the proxy.")
        case .ownListener:
            Row(
                "The address is one on which Larder itself accepts clients.",
                "Connect to the proxy directly, without itself in between.")
        case .nextProxy:
            Row(
                "The address is that of a next proxy, and no rule names it.",
                "Ask the administrator of the proxy for a rule that names this address.")
        case .connectPort:
            Row(
                "Tunnels to this port are closed.",
                "Use a port that is open for tunnels, or ask the administrator of the proxy to open this one.")
        case .client:
            Row(
                "The client is not among the clients of the proxy.",
                "Ask the administrator of the proxy to add the address of this client.")
        case .notAuthenticated:
            Row(
                "An authenticate rule matched, and the client has not said who it is.",
                "Log in to the proxy; for a tunnel, with the CONNECT.")
        case .notOpened:
            Row(
                "The rules look at what is in this tunnel, and Larder cannot open it.",
                "Ask the administrator of the proxy to let its authority certify this host.")
        case .credential:
            Row(
                "A placeholder stands where it is not replaced, or another credential stands in its place.",
                "Send the placeholder to its own host, in the place that is meant for it, and no other credential.")
        }
    }

    /// For the manual and the help of the counter.
    package var meaning: StaticString { row.meaning }

    /// What the client can do, in one sentence.
    package var hint: StaticString { row.hint }
}
