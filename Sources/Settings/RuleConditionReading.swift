import Rules

/// Reads the conditions of a rule. `access.rules`, `cache.rules`, `routes`, `origins`, `bandwidth.classes`, `limits.rules` and `credentials` share this grammar.
///
/// - Parameter reader: reads the mapping with the conditions. Nothing else of the mapping is read here.
func readConditions(_ reader: inout MappingReader, of side: RuleSide) -> RuleConditions {
    var conditions = RuleConditions()
    conditions.hosts = reader.value("host", SettingKind<HostPattern>.hostPattern.list()) ?? []
    switch side {
    case .access: conditions.addresses = reader.value("address", SettingKind<AddressRange>.addressRange.list()) ?? []
    case .cache:
        reader.refuse(
            "address", "a cache rule has no address: stored responses are served without resolving the host",
            hint: "use host")
    case .route:
        reader.refuse("address", "a route has no address: a next proxy resolves the host itself", hint: "use host")
    case .origin:
        reader.refuse(
            "address", "an origins rule has no address: it holds before the host is resolved", hint: "use host")
    case .bandwidth:
        reader.refuse(
            "address", "a class of bandwidth has no address: it holds before the host is resolved", hint: "use host")
    case .limit:
        reader.refuse("address", "a limit has no address: it holds before the host is resolved", hint: "use host")
    case .credential:
        reader.refuse(
            "address", "a credential has no address: it belongs to names that an origin proves", hint: "use host")
    }
    conditions.ports = reader.value("port", SettingKind<ClosedRange<UInt16>>.portRange.list()) ?? []
    conditions.methods = reader.value("method", SettingKind<String>.method.list()) ?? []
    conditions.paths = reader.value("path", SettingKind<PathPattern>.pathPattern.list()) ?? []
    switch side {
    case .access:
        reader.refuse("type", "an access rule has no type: it decides before there is a response", hint: "use path")
    case .route: reader.refuse("type", "a route has no type: it is taken before there is a response", hint: "use path")
    case .origin:
        reader.refuse("type", "an origins rule has no type: it holds before there is a response", hint: "use path")
    case .bandwidth:
        reader.refuse("type", "a class of bandwidth has no type: it holds before there is a response", hint: "use path")
    case .limit:
        reader.refuse("type", "a limit has no type: it holds before there is a response", hint: "use path")
    case .credential:
        reader.refuse("type", "a credential has no type: it is sent before there is a response", hint: "use path")
    case .cache: conditions.types = reader.value("type", SettingKind<MediaTypePattern>.mediaType.list()) ?? []
    }
    conditions.users = reader.value("user", SettingKind<String>.text(255).list()) ?? []
    conditions.clients = reader.value("client", SettingKind<AddressRange>.addressRange.list()) ?? []
    return conditions
}

/// Which rules the conditions belong to.
enum RuleSide { case access, cache, route, origin, bandwidth, limit, credential }
