import Message
import Rules

/// Reads the conditions of a rule. `access.rules`, `cache.rules`, `routes`, `origins`, `bandwidth.classes`, `limits.rules` and `credentials` share this grammar.
///
/// - Parameter reader: reads the mapping with the conditions. Nothing else of the mapping is read here.
func readConditions(_ reader: inout MappingReader, of side: RuleSide) -> RuleConditions {
    var conditions = RuleConditions()
    if side == .access {
        readListedConditions(&reader, &conditions)
    } else {
        conditions.hosts = reader.value("host", SettingKind<HostPattern>.hostPattern.list()) ?? []
        conditions.users = reader.value("user", SettingKind<String>.text(255).list()) ?? []
        conditions.clients = reader.value("client", SettingKind<AddressRange>.addressRange.list()) ?? []
        reader.refuse("address", side.noAddress, hint: "use host")
    }
    conditions.ports = reader.value("port", SettingKind<ClosedRange<UInt16>>.portRange.list()) ?? []
    conditions.methods = reader.value("method", SettingKind<String>.method.list()) ?? []
    conditions.schemes = reader.value("scheme", SettingKind<Scheme>.scheme.list()) ?? []
    conditions.paths = reader.value("path", SettingKind<PathPattern>.pathPattern.list()) ?? []
    conditions.groups = reader.value("group", SettingKind<String>.text(255).list()) ?? []
    conditions.listeners = reader.value("listener", SettingKind<String>.text(64).list()) ?? []
    if side == .cache {
        conditions.types = reader.value("type", SettingKind<MediaTypePattern>.mediaType.list()) ?? []
    } else {
        reader.refuse("type", side.noType, hint: side == .access ? "use path, or content_type" : "use path")
    }
    if side == .access {
        conditions.details = readDetails(&reader)
        conditions.serverNames = reader.value("sni", SettingKind<HostPattern>.hostPattern.list()) ?? []
    } else {
        for name in detailNames + ["sni"] {
            reader.refuse(name, "only access rules have \(name)", hint: "use path, host or client")
        }
    }
    return conditions
}

/// Which rules the conditions belong to.
enum RuleSide {
    case access, cache, route, origin, bandwidth, limit, credential

    fileprivate var noAddress: String {
        switch self {
        case .access: ""
        case .cache: "a cache rule has no address: stored responses are served without resolving the host"
        case .route: "a route has no address: a next proxy resolves the host itself"
        case .origin: "an origins rule has no address: it holds before the host is resolved"
        case .bandwidth: "a class of bandwidth has no address: it holds before the host is resolved"
        case .limit: "a limit has no address: it holds before the host is resolved"
        case .credential: "a credential has no address: it belongs to names that an origin proves"
        }
    }

    fileprivate var noType: String {
        switch self {
        case .access: "an access rule has no type: it decides before there is a response"
        case .cache: ""
        case .route: "a route has no type: it is taken before there is a response"
        case .origin: "an origins rule has no type: it holds before there is a response"
        case .bandwidth: "a class of bandwidth has no type: it holds before there is a response"
        case .limit: "a limit has no type: it holds before there is a response"
        case .credential: "a credential has no type: it is sent before there is a response"
        }
    }
}

/// The conditions whose values can stand in a file.
private func readListedConditions(_ reader: inout MappingReader, _ conditions: inout RuleConditions) {
    let hosts = reader.value("host", SettingKind<HostPattern>.hostPattern.listed) ?? []
    conditions.hosts = hosts.compactMap(\.value)
    conditions.hostLists = hosts.compactMap(\.file).map { HostList($0, HostSet()) }
    let addresses = reader.value("address", SettingKind<AddressRange>.addressRange.listed) ?? []
    conditions.addresses = addresses.compactMap(\.value)
    conditions.addressLists = addresses.compactMap(\.file).map { AddressList($0, AddressIndex()) }
    let clients = reader.value("client", SettingKind<AddressRange>.addressRange.listed) ?? []
    conditions.clients = clients.compactMap(\.value)
    conditions.clientLists = clients.compactMap(\.file).map { AddressList($0, AddressIndex()) }
    let users = reader.value("user", SettingKind<String>.text(255).listed) ?? []
    conditions.users = users.compactMap(\.value)
    conditions.userLists = users.compactMap(\.file).map { NameList($0, []) }
}

private let detailNames = ["query", "content_type", "request_size", "upgrade", "credential", "user_agent", "time"]

private func readDetails(_ reader: inout MappingReader) -> DetailConditions {
    var details = DetailConditions()
    details.queries = reader.value("query", SettingKind<String>.queryName.list()) ?? []
    details.contentTypes = reader.value("content_type", SettingKind<MediaTypePattern>.mediaType.list()) ?? []
    details.bodyLength = reader.value("request_size", .bodyLength)
    details.upgrades = reader.value("upgrade", SettingKind<String>.upgradeName.list()) ?? []
    let credentials = reader.value("credential", SettingKind<CredentialCondition>.credentialCondition.list()) ?? []
    details.credentials = credentials.compactMap { if case .presence(let presence) = $0 { presence } else { nil } }
    details.ownCredentials = credentials.compactMap { if case .own(let name) = $0 { name } else { nil } }
    details.userAgents = reader.value("user_agent", SettingKind<TextPattern>.userAgent.list()) ?? []
    details.times = reader.value("time", SettingKind<TimeWindow>.timeWindow.list()) ?? []
    details.zone = reader.value("zone", SettingKind<NamedZone>.timeZone)
    if !reader.has("time") { reader.refuse("zone", "zone needs time", hint: "time: mon-fri 08:00-18:00") }
    return details
}

/// A value of `credential`: `client`, `none`, `own`, or `{ own: NAME }`.
enum CredentialCondition: Sendable, Equatable {
    case presence(DetailConditions.CredentialPresence)
    case own(String)
}

extension SettingKind where Value == CredentialCondition {
    static var credentialCondition: SettingKind {
        let presence = SettingKind<DetailConditions.CredentialPresence>.choice
        return SettingKind(
            allowed: "\(presence.allowed), or { own: NAME }",
            read: { node, problems in
                guard case .mapping = node.value else { return presence.read(node, &problems).map { .presence($0) } }
                guard var reader = MappingReader(node, expected: "{ own: NAME }", problems: &problems) else {
                    return nil
                }
                let name = reader.requiredValue("own", SettingKind<String>.text(64))
                return reader.finish("key", into: &problems) ? name.map { .own($0) } : nil
            },
            render: {
                switch $0 {
                case .presence(let value): presence.render(value)
                case .own(let name): "{ own: \(name) }"
                }
            })
    }
}

/// A value of a condition, or a file with values.
enum ListedValue<Value: Sendable & Equatable>: Sendable, Equatable {
    case value(Value)
    case file(String)

    var value: Value? { if case .value(let value) = self { value } else { nil } }
    var file: String? { if case .file(let file) = self { file } else { nil } }
}

extension SettingKind {
    /// A list of such values and of files with values: `[ a.example, { file: hosts.txt } ]`.
    var listed: SettingKind<[ListedValue<Value>]> {
        SettingKind<ListedValue<Value>>(
            allowed: "\(allowed), or { file: … }",
            read: { node, problems in
                guard case .mapping = node.value else { return read(node, &problems).map { .value($0) } }
                guard var reader = MappingReader(node, expected: "{ file: … }", problems: &problems) else { return nil }
                let file = reader.requiredValue("file", SettingKind<String>.path("a list, one value on each line"))
                return reader.finish("key", into: &problems) ? file.map { .file($0) } : nil
            }, render: { $0.value.map(render) ?? "{ file: \($0.file ?? "") }" }
        ).list()
    }
}
