package import Message

/// The conditions of one rule, of access or of the cache. All conditions must hold; of the values of a condition, any one.
///
/// An empty list is not a condition: it holds for every request.
package struct RuleConditions: Sendable, Equatable {
    package var hosts: [HostPattern] {
        get { fields.hosts }
        set { fields.hosts = newValue }
    }
    /// Compared with the address that is dialled. In access rules only.
    package var addresses: [AddressRange] {
        get { fields.addresses }
        set { fields.addresses = newValue }
    }
    package var ports: [ClosedRange<UInt16>] {
        get { fields.ports }
        set { fields.ports = newValue }
    }
    /// Upper case.
    package var methods: [String] {
        get { fields.methods }
        set { fields.methods = newValue }
    }
    package var paths: [PathPattern] {
        get { fields.paths }
        set { fields.paths = newValue }
    }
    /// Compared with the `Content-Type` of the response. In cache rules only.
    package var types: [MediaTypePattern] {
        get { fields.types }
        set { fields.types = newValue }
    }
    /// Names of identities.
    package var users: [String] {
        get { fields.users }
        set { fields.users = newValue }
    }
    package var clients: [AddressRange] {
        get { fields.clients }
        set { fields.clients = newValue }
    }
    /// Names of groups of identities.
    package var groups: [String] {
        get { fields.groups }
        set { fields.groups = newValue }
    }
    /// Names of listeners.
    package var listeners: [String] {
        get { fields.listeners }
        set { fields.listeners = newValue }
    }
    /// Compared with the server name in the first bytes of a tunnel. In access rules only.
    package var serverNames: [HostPattern] {
        get { fields.serverNames }
        set { fields.serverNames = newValue }
    }
    /// A tunnel has none.
    package var schemes: [Scheme] {
        get { fields.schemes }
        set { fields.schemes = newValue }
    }
    /// In access rules only.
    package var details: DetailConditions {
        get { fields.details }
        set { fields.details = newValue }
    }
    // Files with values of the conditions above. In access rules only.
    package var hostLists: [HostList] {
        get { fields.hostLists }
        set { fields.hostLists = newValue }
    }
    package var addressLists: [AddressList] {
        get { fields.addressLists }
        set { fields.addressLists = newValue }
    }
    package var clientLists: [AddressList] {
        get { fields.clientLists }
        set { fields.clientLists = newValue }
    }
    package var userLists: [NameList] {
        get { fields.userLists }
        set { fields.userLists = newValue }
    }

    /// Copies share it: a rule is copied for each request that it is compared with, and to retain each of so many arrays costs more than the
    /// comparison. A change replaces it.
    private var shared = Shared(Fields())

    private var fields: Fields {
        _read { yield shared.fields }
        set { shared = Shared(newValue) }
    }

    package init() {}

    package static func == (one: RuleConditions, other: RuleConditions) -> Bool {
        one.shared === other.shared || one.fields == other.fields
    }

    private final class Shared: Sendable {
        let fields: Fields
        init(_ fields: Fields) { self.fields = fields }
    }

    private struct Fields: Sendable, Equatable {
        var hosts: [HostPattern] = []
        var addresses: [AddressRange] = []
        var ports: [ClosedRange<UInt16>] = []
        var methods: [String] = []
        var paths: [PathPattern] = []
        var types: [MediaTypePattern] = []
        var users: [String] = []
        var clients: [AddressRange] = []
        var groups: [String] = []
        var listeners: [String] = []
        var serverNames: [HostPattern] = []
        var schemes: [Scheme] = []
        var details = DetailConditions()
        var hostLists: [HostList] = []
        var addressLists: [AddressList] = []
        var clientLists: [AddressList] = []
        var userLists: [NameList] = []
    }
}

/// Conditions of `RuleConditions`, for messages about what a request lacks. `type` is not among them: it concerns the response.
package struct RuleCondition: OptionSet, Sendable {
    package let rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }
    package static let host = RuleCondition(rawValue: 1 << 0)
    package static let address = RuleCondition(rawValue: 1 << 1)
    package static let port = RuleCondition(rawValue: 1 << 2)
    package static let method = RuleCondition(rawValue: 1 << 3)
    package static let path = RuleCondition(rawValue: 1 << 4)
    package static let scheme = RuleCondition(rawValue: 1 << 5)
    package static let details = RuleCondition(rawValue: 1 << 6)
    /// User and group.
    package static let user = RuleCondition(rawValue: 1 << 7)
    /// Client and listener.
    package static let client = RuleCondition(rawValue: 1 << 8)
    package static let serverName = RuleCondition(rawValue: 1 << 9)

    package static let all: RuleCondition = [
        .host, .address, .port, .method, .path, .scheme, .details, .user, .client,
        .serverName,
    ]

    /// How many conditions there are.
    package var count: Int { rawValue.nonzeroBitCount }
}

/// Whether a rule can name the method: a token (RFC 9110 §5.6.2, §9.1) that is not a word in lower case, as of somebody who means `GET` and writes
/// `get`. Methods are compared as they are sent.
package func isMethodOfRules(_ text: String) -> Bool {
    guard !text.isEmpty, text.utf8.allSatisfy(isTchar) else { return false }
    let isWord = text.utf8.allSatisfy { isAlphanumeric($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
    return !isWord || !text.utf8.contains { (0x61...0x7A).contains($0) }
}

/// Which spellings of a path a condition compares. Origins may treat several spellings as the same path.
package enum PathReading: Sendable {
    /// The bytes as sent: for keys and caching, where spellings are not the same (docs/decisions/0008-paths-as-they-stand.md).
    case asSent
    /// The path must match as sent and in every reading (`PathReadings`), and none may have a segment "..": a path that is allowed must not become
    /// another one at the origin. For what a rule grants.
    case everySpelling
    /// The path must match as sent or in one reading: a path that is denied is denied in every spelling. For what a rule restricts.
    case anySpelling
}

extension RuleConditions {
    /// Whether the result depends on who asks, and not on the request alone.
    package var dependOnClient: Bool { dependOnUser || !clients.isEmpty || !clientLists.isEmpty || !listeners.isEmpty }

    /// Whether the result depends on the identity.
    package var dependOnUser: Bool { !users.isEmpty || !userLists.isEmpty || !groups.isEmpty }

    /// The files with values.
    package var listFiles: [String] {
        hostLists.map(\.file) + addressLists.map(\.file) + clientLists.map(\.file) + userLists.map(\.file)
    }

    /// Whether a condition has a file.
    package var hasListFiles: Bool {
        !hostLists.isEmpty || !addressLists.isEmpty || !clientLists.isEmpty || !userLists.isEmpty
    }

    /// Whether the result depends on more than who asks, method, scheme, host, port and address: no verdict holds for another request.
    package var dependOnRequest: Bool { !paths.isEmpty || !details.isEmpty }

    /// All conditions but `address` and `type`.
    ///
    /// - Parameters:
    ///   - mayHold: the result where nobody has read the details that a condition is about. Nil: true for `anySpelling`, false otherwise.
    ///   - whoeverSends: the conditions `user`, `group`, `client` and `listener` are left out.
    package func holdForRequest(
        _ request: RuleRequest, paths reading: PathReading, unreadDetails mayHold: Bool? = nil,
        whoeverSends: Bool = false
    ) -> Bool {
        holdBesidesDetails(request, whoeverSends: whoeverSends) && (paths.isEmpty || holdForPath(request, reading))
            && details.hold(request, mayHold: mayHold ?? (reading == .anySpelling))
    }

    /// All conditions but `address`, `type`, `path` and the details: whether the rule may concern this request with others of those.
    package func holdBesidesDetails(_ request: RuleRequest, whoeverSends: Bool = false) -> Bool {
        portHolds(request) && methodHolds(request) && schemeHolds(request) && hostHolds(request)
            && (whoeverSends || holdForClient(request)) && serverNameHolds(request)
    }

    /// Host, port and who asks: whether the rule may concern other requests of this client to this host.
    package func holdForHost(of request: RuleRequest) -> Bool {
        portHolds(request) && hostHolds(request) && holdForClient(request)
    }

    /// All conditions but `host` and `type`: whether the rule may concern this request with another host.
    ///
    /// - Parameter address: the address that is dialled. Nil if it is not known; then a condition on the address may hold.
    package func mayHoldForOtherHosts(_ request: RuleRequest, address: IPAddress?) -> Bool {
        portHolds(request) && methodHolds(request) && schemeHolds(request) && holdForClient(request)
            && (paths.isEmpty || holdForPath(request, .asSent)) && details.hold(request, mayHold: false)
            && (!namesAddresses || address.map(names) ?? true)
    }

    /// Whether a host is asked for, and not every one.
    package var namesHosts: Bool { (!hosts.isEmpty || !hostLists.isEmpty) && !hosts.contains(.any) }

    /// User, group, client and listener.
    package func holdForClient(_ request: RuleRequest) -> Bool {
        userHolds(request) && clientHolds(request)
    }

    /// The conditions that do not hold. Those that are not written hold.
    ///
    /// - Parameter address: the address that is dialled. Nil if it is not known; then a condition on the address does not hold.
    package func unmet(by request: RuleRequest, address: IPAddress?, paths reading: PathReading) -> RuleCondition {
        var unmet: RuleCondition = []
        if !hostHolds(request) { unmet.insert(.host) }
        if namesAddresses, !(address.map(names) ?? false) { unmet.insert(.address) }
        if !portHolds(request) { unmet.insert(.port) }
        if !methodHolds(request) { unmet.insert(.method) }
        if !paths.isEmpty, !holdForPath(request, reading) { unmet.insert(.path) }
        if !schemeHolds(request) { unmet.insert(.scheme) }
        if !details.hold(request, mayHold: reading == .anySpelling) { unmet.insert(.details) }
        if !serverNameHolds(request) { unmet.insert(.serverName) }
        if !userHolds(request) { unmet.insert(.user) }
        if !clientHolds(request) { unmet.insert(.client) }
        return unmet
    }

    /// - Parameter address: the address that is dialled. Nil if it is not known yet.
    /// - Returns: nil if the result depends on an address that is not known yet.
    package func hold(_ request: RuleRequest, address: IPAddress?, paths reading: PathReading) -> Bool? {
        guard holdForRequest(request, paths: reading) else { return false }
        if !namesAddresses { return true }
        guard let address else { return nil }
        return names(address)
    }

    /// - Parameter type: the value of the response's `Content-Type`. Nil if it has none, or if there is no response yet.
    package func hold(_ request: RuleRequest, type: ArraySlice<UInt8>?) -> Bool {
        holdForType(type) && holdForRequest(request, paths: .asSent)
    }

    /// - Parameter type: the value of the response's `Content-Type`. Nil if it has none, or if there is no response yet.
    package func holdForType(_ type: ArraySlice<UInt8>?) -> Bool {
        types.isEmpty || type.map { type in types.contains { $0.matches(type) } } ?? false
    }

    /// All conditions but `address` and `type`, at an origin that takes the path for this one.
    ///
    /// - Parameter path: one of `PathReadings.paths`.
    package func holdForRequest(_ request: RuleRequest, readAs path: [UInt8]) -> Bool {
        holdBesidesPath(request) && holdForPath(readAs: path)
    }

    /// All conditions but `address`, `type` and `path`.
    package func holdBesidesPath(_ request: RuleRequest) -> Bool {
        holdBesidesDetails(request) && details.hold(request, mayHold: false)
    }

    /// The condition on the path, at an origin that takes the path for this one.
    package func holdForPath(readAs path: [UInt8]) -> Bool { paths.isEmpty || matches(path) }

    /// The condition on the path, at an origin that takes the path as it was sent.
    package func holdForPathAsSent(_ request: RuleRequest) -> Bool { paths.isEmpty || holdForPath(request, .asSent) }

    /// - Parameter read: the path in a reading, or as sent.
    private func matches(_ read: [UInt8]) -> Bool {
        paths.contains { $0.matches(plain: read[...]) || $0.matches(read[...]) }
    }

    /// Whether a pattern is about parameters. Who writes them into a rule means them.
    package var nameParameters: Bool { paths.contains { $0.description.contains(";") } }

    /// Whether the rule names this very address: in `address`, or as a literal in `host`.
    ///
    /// A network names no IPv4 address that stands in one of its IPv6 addresses: `2000::/3` is not 127.0.0.1 by 6to4.
    package func name(_ address: IPAddress) -> Bool {
        let bits = address.embedded?.bits ?? 0
        return addresses.contains { $0.contains(address) && $0.prefixLength >= bits }
            || hosts.contains(.address(address)) || hostLists.contains { $0.content.names(address) }
            || addressLists.contains {
                $0.content.smallestRange(around: address).map { $0.prefixLength >= bits } ?? false
            }
    }

    /// Whether the result may depend on the address that is dialled, or on a host that is one.
    package var concernAddresses: Bool {
        namesAddresses || !hostLists.isEmpty
            || hosts.contains { if case .address = $0 { true } else { false } }
    }

    /// Whether a condition `address` is written.
    package var namesAddresses: Bool { !addresses.isEmpty || !addressLists.isEmpty }

    package func name(port: UInt16) -> Bool { ports.contains { $0.contains(port) } }

    private func names(_ address: IPAddress) -> Bool {
        addresses.contains { $0.contains(address) } || addressLists.contains { $0.content.contains(address) }
    }

    package func hostHolds(_ request: RuleRequest) -> Bool {
        (hosts.isEmpty && hostLists.isEmpty) || hosts.contains { $0.matches(request.destination) }
            || hostLists.contains { $0.content.contains(request.destination) }
    }

    private func portHolds(_ request: RuleRequest) -> Bool { ports.isEmpty || name(port: request.port) }

    private func methodHolds(_ request: RuleRequest) -> Bool {
        methods.isEmpty || methods.contains(request.methodText)
    }

    private func schemeHolds(_ request: RuleRequest) -> Bool {
        schemes.isEmpty || (!request.isTunnel && schemes.contains(request.scheme))
    }

    private func serverNameHolds(_ request: RuleRequest) -> Bool {
        guard !serverNames.isEmpty else { return true }
        guard case .host(let name) = request.serverName else { return false }
        return serverNames.contains { $0.matches(name) }
    }

    private func userHolds(_ request: RuleRequest) -> Bool {
        guard dependOnUser else { return true }
        guard let identity = request.identity else { return false }
        return
            ((users.isEmpty && userLists.isEmpty) || users.contains(identity.name)
            || userLists.contains { $0.content.contains(identity.name) })
            && (groups.isEmpty || groups.contains { identity.groups.contains($0) })
    }

    /// Client and listener.
    package func clientHolds(_ request: RuleRequest) -> Bool {
        guard listeners.isEmpty || request.listener.map(listeners.contains) ?? false else { return false }
        guard !clients.isEmpty || !clientLists.isEmpty else { return true }
        guard let client = request.client else { return false }
        return clients.contains { $0.contains(client) } || clientLists.contains { $0.content.contains(client) }
    }

    private func holdForPath(_ request: RuleRequest, _ reading: PathReading) -> Bool {
        guard let path = request.path else { return false }
        let asSent = paths.contains { $0.matches(path) }
        guard let readings = request.pathReadings else { return asSent }
        switch reading {
        case .asSent: return asSent
        case .everySpelling:
            guard asSent, !readings.climbs, !readings.isObscure else { return false }
            return readings.all(parametersCount: nameParameters).allSatisfy(matches)
        case .anySpelling: return asSent || readings.isObscure || readings.paths.contains(where: matches)
        }
    }
}
