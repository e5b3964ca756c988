package import Message

/// The conditions of one rule, of access or of the cache. All conditions must hold; of the values of a condition, any one.
///
/// An empty list is not a condition: it holds for every request.
package struct RuleConditions: Sendable, Equatable {
    package var hosts: [HostPattern] = []
    /// Compared with the address that is dialled. In access rules only.
    package var addresses: [AddressRange] = []
    package var ports: [ClosedRange<UInt16>] = []
    /// Upper case.
    package var methods: [String] = []
    package var paths: [PathPattern] = []
    /// Compared with the `Content-Type` of the response. In cache rules only.
    package var types: [MediaTypePattern] = []
    /// Names of identities.
    package var users: [String] = []
    package var clients: [AddressRange] = []
    package init() {}
}

/// One condition of `RuleConditions`, for messages about what a request lacks. `type` is not among them: it concerns the response.
package enum RuleCondition: CaseIterable, Sendable { case host, address, port, method, path, user, client }

/// Which spellings of a path a condition compares. Origins may treat several spellings as the same path.
package enum PathReading: Sendable {
    /// The bytes as sent: for keys and caching, where spellings are not the same (docs/decisions/0008-paths-as-they-stand.md).
    case asSent
    /// The path must match both as sent and as an origin might read it: a path that is allowed must not become another one there.
    case everySpelling
    /// The path must match in one of the two: a path that is denied is denied in every spelling.
    case anySpelling
}

extension RuleConditions {
    /// Whether the result depends on who asks, and not on the request alone.
    package var dependOnClient: Bool { !users.isEmpty || !clients.isEmpty }

    /// All conditions but `address` and `type`.
    package func holdForRequest(_ request: RuleRequest, paths reading: PathReading) -> Bool {
        holdBesidesPath(request) && (paths.isEmpty || holdForPath(request, reading))
    }

    /// All conditions but `address`, `type` and `path`: whether the rule may concern this request with another path.
    package func holdBesidesPath(_ request: RuleRequest) -> Bool {
        portHolds(request) && methodHolds(request) && hostHolds(request) && userHolds(request) && clientHolds(request)
    }

    /// Host, port and who asks: whether the rule may concern other requests of this client to this host.
    package func holdForHost(of request: RuleRequest) -> Bool {
        portHolds(request) && hostHolds(request) && userHolds(request) && clientHolds(request)
    }

    /// The conditions that do not hold. Those that are not written hold.
    ///
    /// - Parameter address: the address that is dialled. Nil if it is not known; then a condition on the address does not hold.
    package func unmet(by request: RuleRequest, address: IPAddress?, paths reading: PathReading) -> Set<RuleCondition> {
        Set(
            RuleCondition.allCases.filter { condition in
                switch condition {
                case .host: !hostHolds(request)
                case .address: !(addresses.isEmpty || address.map(names) ?? false)
                case .port: !portHolds(request)
                case .method: !methodHolds(request)
                case .path: !(paths.isEmpty || holdForPath(request, reading))
                case .user: !userHolds(request)
                case .client: !clientHolds(request)
                }
            })
    }

    /// - Parameter address: the address that is dialled. Nil if it is not known yet.
    /// - Returns: nil if the result depends on an address that is not known yet.
    package func hold(_ request: RuleRequest, address: IPAddress?, paths reading: PathReading) -> Bool? {
        guard holdForRequest(request, paths: reading) else { return false }
        if addresses.isEmpty { return true }
        return address.map(names)
    }

    /// - Parameter type: the value of the response's `Content-Type`. Nil if it has none, or if there is no response yet.
    package func hold(_ request: RuleRequest, type: ArraySlice<UInt8>?) -> Bool {
        (types.isEmpty || type.map { type in types.contains { $0.matches(type) } } ?? false)
            && holdForRequest(request, paths: .asSent)
    }

    /// Whether the rule names this very address: in `address`, or as a literal in `host`.
    ///
    /// A network names no IPv4 address that stands in one of its IPv6 addresses: `2000::/3` is not 127.0.0.1 by 6to4.
    package func name(_ address: IPAddress) -> Bool {
        let bits = address.embedded?.bits ?? 0
        return addresses.contains { $0.contains(address) && $0.prefixLength >= bits }
            || hosts.contains(.address(address))
    }

    /// Whether the result may depend on the address that is dialled, or on a host that is one.
    package var concernAddresses: Bool {
        !addresses.isEmpty || hosts.contains { if case .address = $0 { true } else { false } }
    }

    package func name(port: UInt16) -> Bool { ports.contains { $0.contains(port) } }

    private func names(_ address: IPAddress) -> Bool { addresses.contains { $0.contains(address) } }

    private func hostHolds(_ request: RuleRequest) -> Bool {
        hosts.isEmpty || hosts.contains { $0.matches(request.destination) }
    }

    private func portHolds(_ request: RuleRequest) -> Bool { ports.isEmpty || name(port: request.port) }

    private func methodHolds(_ request: RuleRequest) -> Bool {
        methods.isEmpty || methods.contains(request.methodText)
    }

    private func userHolds(_ request: RuleRequest) -> Bool {
        users.isEmpty || request.identity.map { users.contains($0.name) } ?? false
    }

    private func clientHolds(_ request: RuleRequest) -> Bool {
        clients.isEmpty || request.client.map { client in clients.contains { $0.contains(client) } } ?? false
    }

    private func holdForPath(_ request: RuleRequest, _ reading: PathReading) -> Bool {
        guard let path = request.path else { return false }
        let asSent = paths.contains { $0.matches(path) }
        if reading == .asSent || asSent == (reading == .anySpelling) || !isAmbiguousPath(path) { return asSent }
        let plain = plainPath(path)
        return paths.contains { $0.matches(plain: plain[...]) }
    }
}

extension RuleConditions: CustomStringConvertible {
    /// The conditions in the words and in the order of the manual.
    package var parts: [(name: String, values: [String])] {
        let all: [(name: String, values: [String])] = [
            ("host", hosts.map { "\($0)" }), ("address", addresses.map { "\($0)" }), ("port", ports.map(Self.text)),
            ("method", methods), ("path", paths.map { "\($0)" }), ("type", types.map { "\($0)" }), ("user", users),
            ("client", clients.map { "\($0)" }),
        ]
        return all.filter { !$0.values.isEmpty }
    }

    /// `host *.example.org; port 80, 443`; `everything` without any condition.
    package var description: String {
        let named = parts.map { "\($0.name) \($0.values.joined(separator: ", "))" }
        return named.isEmpty ? "everything" : named.joined(separator: "; ")
    }

    package var isEverything: Bool { parts.isEmpty }

    /// `443`, or `8000-8099`.
    package static func text(_ ports: ClosedRange<UInt16>) -> String {
        ports.count == 1 ? "\(ports.lowerBound)" : "\(ports.lowerBound)-\(ports.upperBound)"
    }
}
