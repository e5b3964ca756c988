import Message

/// What rules compare of a request beside its target and who sends it. Read from the head only where a rule asks for it.
package struct RequestDetails: Sendable, Equatable {
    /// The values of `User-Agent`; a request should have one.
    package var userAgents: [ArraySlice<UInt8>] = []
    /// The values of `Content-Type`; a request should have one.
    package var contentTypes: [ArraySlice<UInt8>] = []
    /// The protocols of `Upgrade` (RFC 9110 §7.8), without their versions.
    package var upgrades: [ArraySlice<UInt8>] = []
    /// `Connection` has `upgrade`: without it, `Upgrade` has no meaning.
    package var connectionUpgrades = false
    /// The length of the body in bytes; 0 without a body. Nil: it is not known before the body has ended.
    package var bodyLength: UInt64?
    /// The request has `Authorization`.
    package var hasAuthorization = false
    /// The names of the credentials of its own that Larder would send with the request.
    package var ownCredentials: [String] = []
    /// When the request is decided about.
    package var time: RuleTime?

    package init() {}
}

/// The conditions on the details of a request. In access rules only: a verdict that depends on them holds for one request.
///
/// An allow rule holds only where they hold for certain; a deny rule holds where they may hold.
package struct DetailConditions: Sendable, Equatable {
    /// Names of query parameters, or names and values: `service=git-upload-pack`.
    package var queries: [String] = []
    package var userAgents: [TextPattern] = []
    /// Names of protocols in lower case; `*` is any.
    package var upgrades: [String] = []
    package var contentTypes: [MediaTypePattern] = []
    /// The length of the body in bytes.
    package var bodyLength: ClosedRange<UInt64>?
    package var credentials: [CredentialPresence] = []
    /// Names of Larder's own credentials: one of them is to be sent. Another value of the condition that `credentials` is.
    package var ownCredentials: [String] = []
    package var times: [TimeWindow] = []
    /// Where the local times of `times` are. Nil: where this machine is.
    package var zone: NamedZone?

    package init() {}

    /// Who brings a credential for the origin.
    package enum CredentialPresence: String, CaseIterable, Sendable {
        /// The request has `Authorization`.
        case client
        /// It has none.
        case none
        /// Larder sends a credential of its own.
        case own
    }

    /// Written out: comparing with an empty value costs 900 instructions, and each rule is asked for each request.
    package var isEmpty: Bool { !lookInside && userAgents.isEmpty && times.isEmpty && zone == nil }

    /// Whether only a look at the bytes of a request can tell. A tunnel hides it.
    package var lookInside: Bool {
        !queries.isEmpty || !upgrades.isEmpty || !contentTypes.isEmpty || bodyLength != nil || !credentials.isEmpty
            || !ownCredentials.isEmpty
    }

    /// - Parameter mayHold: true for a deny rule, false for an allow rule.
    func hold(_ request: RuleRequest, mayHold: Bool) -> Bool {
        if isEmpty { return true }
        if request.isTunnel, lookInside { return false }
        if !queries.isEmpty, !queryHolds(request.query, mayHold) { return false }
        // What nobody has read may be anything.
        guard let details = request.details else { return mayHold || onlyQueries }
        return agentHolds(details, mayHold) && upgradeHolds(details, mayHold) && typeHolds(details, mayHold)
            && lengthHolds(details, mayHold) && credentialHolds(details, mayHold) && timeHolds(details, mayHold)
    }

    private var onlyQueries: Bool {
        var others = self
        others.queries = []
        return others.isEmpty
    }

    private func queryHolds(_ query: ArraySlice<UInt8>?, _ mayHold: Bool) -> Bool {
        guard let query else { return false }
        return queries.contains { own in
            let parts = own.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                let names = mayHold ? possibleNames(inQuery: query) : plainNames(inQuery: query)
                return names.contains { equals($0, own, ignoringCase: mayHold) }
            }
            let (name, value) = (String(parts[0]), String(parts[1]))
            let possible = possibleParameters(inQuery: query).filter { equals($0.name, name, ignoringCase: true) }
            if mayHold { return possible.contains { equals($0.value, value, ignoringCase: true) } }
            // An origin may take the first of several, or the last.
            return !possible.isEmpty && possible.allSatisfy { equals($0.value, value, ignoringCase: false) }
                && plainNames(inQuery: query).contains { equals($0, name, ignoringCase: false) }
        }
    }

    private func agentHolds(_ details: RequestDetails, _ mayHold: Bool) -> Bool {
        userAgents.isEmpty
            || all(details.userAgents, orAny: mayHold) { agent in userAgents.contains { $0.matches(agent) } }
    }

    private func upgradeHolds(_ details: RequestDetails, _ mayHold: Bool) -> Bool {
        guard !upgrades.isEmpty else { return true }
        guard mayHold || details.connectionUpgrades else { return false }
        return all(details.upgrades, orAny: mayHold) { offered in
            upgrades.contains { $0 == "*" || equals(offered, $0, ignoringCase: true) }
        }
    }

    private func typeHolds(_ details: RequestDetails, _ mayHold: Bool) -> Bool {
        contentTypes.isEmpty
            || all(details.contentTypes, orAny: mayHold) { type in contentTypes.contains { $0.matches(type) } }
    }

    private func lengthHolds(_ details: RequestDetails, _ mayHold: Bool) -> Bool {
        guard let bodyLength else { return true }
        return details.bodyLength.map(bodyLength.contains) ?? mayHold
    }

    private func credentialHolds(_ details: RequestDetails, _ mayHold: Bool) -> Bool {
        if credentials.isEmpty && ownCredentials.isEmpty { return true }
        if credentials.contains(details.hasAuthorization ? .client : .none) { return true }
        guard !details.ownCredentials.isEmpty else { return false }
        return credentials.contains(.own)
            || all(details.ownCredentials, orAny: mayHold) { ownCredentials.contains($0) }
    }

    private func timeHolds(_ details: RequestDetails, _ mayHold: Bool) -> Bool {
        guard !times.isEmpty else { return true }
        guard var time = details.time else { return mayHold }
        if let zone {
            guard let data = zone.data else { return mayHold }
            time.localOffset = data.offset(at: time.seconds)
        }
        return times.contains { $0.contains(time) }
    }
}

/// A field that should stand once can stand several times: for certain, all of its values match, and there is one; perhaps, any does.
private func all<Value>(_ values: [Value], orAny: Bool, _ matches: (Value) -> Bool) -> Bool {
    orAny ? values.contains(where: matches) : !values.isEmpty && values.allSatisfy(matches)
}

private func equals(_ bytes: ArraySlice<UInt8>, _ text: String, ignoringCase: Bool) -> Bool {
    ignoringCase ? equalsIgnoringCase(bytes, text.utf8) : bytes.elementsEqual(text.utf8)
}

/// The names of the parameters of a query about which no origin has a doubt: they stand between `&` and `=`, or the end, without an encoding, and
/// no `;` is near, which some origins take for `&`.
func plainNames(inQuery query: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    query.split(separator: UInt8(ascii: "&")).compactMap { part in
        let name = part.prefix { $0 != UInt8(ascii: "=") }
        return name.isEmpty || part.contains(UInt8(ascii: ";")) || name.contains(where: { "%+".utf8.contains($0) })
            ? nil : name
    }
}

/// All that an origin could take for the name of a parameter: behind `&` or `;`, as sent, and decoded once and twice, with `+` for a space, and
/// cut off at `[` and at NUL, where some languages end a name.
func possibleNames(inQuery query: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    query.split { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: ";") }.flatMap { part -> [ArraySlice<UInt8>] in
        let name = part.prefix { $0 != UInt8(ascii: "=") }
        let once = queryDecoded(name)
        let twice = queryDecoded(once[...])
        return [name, once[...], twice[...]].flatMap { [$0, $0.prefix { $0 != UInt8(ascii: "[") && $0 != 0 }] }
    }
}

/// The names of `possibleNames`, each with the values that an origin could read: as sent, and decoded once and twice.
func possibleParameters(
    inQuery query: ArraySlice<UInt8>
) -> [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)] {
    var found: [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)] = []
    for part in query.split(whereSeparator: { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: ";") }) {
        let value = part.drop { $0 != UInt8(ascii: "=") }.dropFirst()
        let once = queryDecoded(value)
        let twice = queryDecoded(once[...])
        for name in possibleNames(inQuery: part) {
            for reading in [value, once[...], twice[...]] {
                found.append((name, reading))
                found.append((name, reading.prefix { $0 != 0 }))
            }
        }
    }
    return found
}

private func queryDecoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    percentDecoded(bytes.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }, replacingBackslashes: false)
}
