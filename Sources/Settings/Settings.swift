import Access
import Message
import Rules

/// Every setting of Larder, in the order of the sample file and the manual.
///
/// Parser, bounds, hints, `conf/larder.yaml` and `docs/configuration.md` come from these declarations. To add a setting: give it a
/// place with its default in `Configuration`, and a line here.
enum Settings {
    /// A part of the file, with its settings.
    struct Section: Sendable {
        /// Empty for settings that stand by themselves.
        let key: String
        let meaning: String
        let settings: [any SettingDeclaration]
    }

    static let sections = [general, admin, cache, access, log, timeouts, tls, dns, limits]
    static let all = sections.flatMap(\.settings)

    private static let general = Section(
        key: "", meaning: "Where and how Larder runs.",
        settings: [
            Setting(
                "listen", \.listen, SettingKind<ListenAddress>.listener.list(), reload: .restart,
                "Where clients connect. A listener beyond loopback needs access.clients or access.authentication.",
                written: ["listen:", "  - address: 127.0.0.1:3128"]),
            Setting(
                "workers", \.workers, .workers(1...1024), reload: .restart,
                "Worker threads; auto is one per core this process may run on."),
        ])

    private static let admin = Section(
        key: "admin",
        meaning: "The listener for people and programs that watch Larder; never reachable through the proxy.",
        settings: [
            Setting(
                "admin.address", \.admin.address, SettingKind<ListenAddress>.tcpAddress.or("off"), reload: .restart,
                "Dashboard, /stats, /metrics and /health."),
            Setting(
                "admin.socket", \.admin.socket, SettingKind<String>.socketPath.or("off"), reload: .restart,
                "The Unix socket that the command line talks to. Whoever may write to it may purge."),
            Setting(
                "admin.token", \.admin.tokenFile, SettingKind<String>.path("a file").orLeftOut, reload: .restart,
                "File whose first line is the token that allows changes over TCP (Authorization: Bearer).",
                example: ["token: /etc/larder/admin.token"], defaultMeaning: "no changes over TCP"),
        ])

    private static let cache = Section(
        key: "cache", meaning: "What is kept, and how long (RFC 9111).",
        settings: [
            Setting(
                "cache.memory", \.cache.memory, .size(1 << 20...16 << 40), reload: .restart,
                "Bytes of stored responses held in memory, heads and bookkeeping included."),
            Setting(
                "cache.disk.path", \.cache.writtenDiskPath, SettingKind<String>.path("a directory").orLeftOut,
                reload: .restart,
                "Directory of the disk tier. Larder needs it for itself, on a file system with room for all of size. A zone may have another.",
                example: ["path: /var/lib/larder"],
                defaultMeaning:
                    "/var/lib/larder; without write access to it $XDG_STATE_HOME/larder, or else ~/.local/state/larder"),
            Setting(
                "cache.disk.size", \.cache.writtenDiskSize, SettingKind<UInt64>.diskSize.orLeftOut, reload: .live,
                "Most bytes that all files of the disk tier take together. With 0 Larder stores responses in memory only, and forgets them "
                    + "when it stops. Turning the disk tier on or off takes a restart.",
                example: ["size: 10GiB"], defaultMeaning: "10 % of the free space, 10GiB at most"),
            Setting(
                "cache.disk.pinned", \.cache.writtenDiskPinned, SettingKind<UInt64>.size(0...1 << 50).orLeftOut,
                reload: .live, "How many of them may be taken by what is pinned.", example: ["pinned: 5GiB"],
                defaultMeaning: "half of the size"),
            Setting(
                "cache.disk.sync", \.cache.diskSync, .duration(.milliseconds(100) ... .hours(1)), reload: .live,
                "How much of what was stored last a power cut may cost, in all zones. What is served is whole whatever is lost."
            ),
            Setting(
                "cache.collapse", \.cache.collapse, .flag, reload: .live,
                "Whether requests for what is already on its way join that transfer (RFC 9111 §4)."),
            Setting(
                "cache.object_size_max", \.cache.writtenObjectSizeMax,
                SettingKind<UInt64>.size(0...1 << 50).orLeftOut, reload: .live,
                "Largest body that is stored; larger ones pass through.", example: ["object_size_max: 32MiB"],
                defaultMeaning: "an eighth of cache.memory, or of cache.disk.size where that is larger"),
            Setting(
                "cache.heuristic_lifetime_max", \.cache.heuristicLifetimeMax, .duration(.zero ... .days(365)),
                reload: .live,
                "Longest freshness lifetime the heuristic of RFC 9111 §4.2.2 may give; 0 turns the heuristic off."),
            Setting(
                "cache.negative_ttl", \.cache.negativeTTL, .seconds(.zero ... .days(1)), reload: .live,
                "How long a 404 or 410 is fresh for which the origin says nothing; 0 leaves it to the heuristic."),
            Setting(
                "cache.targeted_fields", \.cache.targetedFields, .flag, reload: .live,
                "Whether Larder-Cache-Control and CDN-Cache-Control take the place of Cache-Control (RFC 9213)."),
            Setting(
                "cache.policy_clients", \.cache.policyClients, SettingKind<AddressRange>.addressRange.list(),
                reload: .live, "Clients whose Larder-Policy field is heeded.",
                example: ["policy_clients: [ 127.0.0.1 ]"], defaultMeaning: "nobody's"),
            Setting(
                "cache.compression.types", \.cache.compression.writtenTypes,
                SettingKind<MediaTypePattern>.mediaType.list().orLeftOut, reload: .live,
                "Content types that are compressed where a rule says compress.",
                example: ["types: [ \"text/*\", application/json ]"],
                defaultMeaning: "text, JSON, XML, JavaScript, WebAssembly and SVG"),
            Setting(
                "cache.compression.size_min", \.cache.compression.sizeMin, .size(0...1 << 30), reload: .live,
                "Smallest body that is compressed."),
            Setting(
                "cache.zones", \.cache.writtenZones, .zones, reload: .live,
                "Caches of their own beside the default one, each with its budget; rules send requests there.",
                example: [
                    "zones:",
                    "  - { name: packages, memory: 64MiB, object_size_max: 16MiB, policy: stale-on-error }",
                    "  - { name: layers, memory: 64MiB, disk: { path: /srv/layers, size: 100GiB, pinned: 20GiB } }",
                ], defaultMeaning: "the default zone alone"),
            Setting(
                "cache.rules", \.cache.rules, .rules, reload: .live,
                "What becomes of which requests. First match wins; within a match all conditions must hold, within a list any.",
                example: [
                    "rules:",
                    "  - { match: { host: \"*.example.org\", path: /pool/* }, zone: packages, policy: cache-first }",
                    "  - { match: { host: example.com }, key: { drop: [ \"utm_*\", fbclid ], sort: yes } }",
                    "  - { match: { type: text/html }, ttl: 1m, policy: [ stale-on-error ] }",
                ], defaultMeaning: "no rules"),
        ])

    private static let access = Section(
        key: "access", meaning: "Who may use the proxy, and what it may reach for them.",
        settings: [
            Setting(
                "access.clients", \.access.namedClients, SettingKind<AddressRange>.addressRange.list().orLeftOut,
                reload: .live, "Addresses and ranges of those who may use the proxy at all.",
                example: ["clients: [ 127.0.0.0/8, \"::1\" ]"],
                defaultMeaning: "loopback; with authentication, everybody who authenticates"),
            Setting(
                "access.private_destinations", \.access.privateDestinations, .choice, reload: .live,
                "Whether addresses that are not public may be dialled. A rule that names an address opens just that one. "
                    + "Metadata services of clouds stay closed even with allow, unless a rule names them."),
            Setting(
                "access.connect_ports", \.access.connectPorts,
                SettingKind<ClosedRange<UInt16>>.portRange.list(isEmptyAllowed: true), reload: .live,
                "Ports that CONNECT may name without a rule that names them."),
            Setting(
                "access.authentication.basic.realm", \.access.basicRealm, .text(128), reload: .live,
                "What clients are asked a name and a password for (RFC 7617).", example: ["realm: larder"]),
            Setting(
                "access.authentication.basic.users", \.access.basicUsersFile,
                SettingKind<String>.path("an htpasswd file").orLeftOut, reload: .live,
                "File of names and hashed passwords, one name:hash per line; larder passwd makes it.",
                example: ["users: /etc/larder/users.htpasswd"], defaultMeaning: "no authentication"),
            Setting(
                "access.authentication.basic.remember", \.access.basicRemember, .duration(.zero ... .hours(1)),
                reload: .live, "How long a verified password is taken without hashing it again.",
                example: ["remember: 1m"]),
            Setting(
                "access.rules", \.access.rules, .rules, reload: .live,
                "First match wins; within a rule all conditions must hold, within a list any.",
                example: [
                    "rules:",
                    "  - allow: { host: [ \"*.example.com\", example.org ], port: [ 80, 443 ], method: [ GET, HEAD, CONNECT ] }",
                    "  - allow: { address: [ 127.0.0.1 ], port: [ 8080 ] }",
                    "  - deny:  { reason: \"not on the list\" }",
                ], defaultMeaning: "no rules"),
            Setting(
                "access.default", \.access.writtenDefault, SettingKind<AccessSettings.DefaultEffect>.choice.orLeftOut,
                reload: .live, "What happens where no rule matches.", example: ["default: deny"],
                defaultMeaning: "deny where there are rules, allow where there is none"),
        ])

    private static let log = Section(
        key: "log", meaning: "What is written down.",
        settings: [
            Setting(
                "log.access", \.log.access, .logTarget, reload: .restart, "One JSON line per request, secrets scrubbed."
            ),
            Setting("log.level", \.log.level, .choice, reload: .live, "The least important message that is logged."),
        ])

    private static let timeouts = Section(
        key: "timeouts", meaning: "How long Larder waits.",
        settings: [
            Setting(
                "timeouts.client_head", \.timeouts.clientHead, .duration(.seconds(1) ... .hours(1)), reload: .live,
                "From the first byte of a request head to its last."),
            Setting(
                "timeouts.client_idle", \.timeouts.clientIdle, .duration(.seconds(1) ... .hours(24)), reload: .live,
                "Between two requests of a client connection."),
            Setting(
                "timeouts.connect", \.timeouts.connect, .duration(.milliseconds(100) ... .minutes(10)), reload: .live,
                "To a connection with an origin, all its addresses tried, TLS included."),
            Setting(
                "timeouts.first_byte", \.timeouts.firstByte, .duration(.milliseconds(100) ... .hours(24)),
                reload: .live,
                "From the last byte of a request to the first of its response."),
            Setting(
                "timeouts.idle", \.timeouts.idle, .duration(.milliseconds(100) ... .hours(24)), reload: .live,
                "Between two pieces of a body, from an origin or to a client."),
            Setting(
                "timeouts.collapse", \.timeouts.collapse, .duration(.milliseconds(100) ... .hours(1)), reload: .live,
                "For the head of a response that another request fetches already; then the request goes on its own."),
            Setting(
                "timeouts.origin_keep_alive", \.timeouts.originKeepAlive, .duration(.zero ... .hours(24)),
                reload: .live,
                "For which an idle origin connection is kept; an origin's own Keep-Alive: timeout is heeded where shorter."
            ),
            Setting(
                "timeouts.tunnel_idle", \.timeouts.tunnelIdle, .duration(.seconds(1) ... .days(7)), reload: .live,
                "In which no byte passes a tunnel in either direction."),
            Setting(
                "timeouts.drain", \.timeouts.drain, .duration(.zero ... .hours(24)), reload: .live,
                "For requests under way to end when Larder is told to stop."),
        ])

    private static let tls = Section(
        key: "tls", meaning: "TLS to origins; certificates are always verified.",
        settings: [
            Setting(
                "tls.ca_file", \.tls.caFile, SettingKind<String>.path("a PEM file").orLeftOut, reload: .restart,
                "Certificate authorities to trust in place of the system's.",
                example: ["ca_file: /etc/ssl/certs/ca-certificates.crt"], defaultMeaning: "the system's"),
            Setting(
                "tls.min_version", \.tls.minVersion, .choice, reload: .restart, "Oldest version of TLS that is spoken."),
        ])

    private static let dns = Section(
        key: "dns", meaning: "How long answers of the name service are kept, in spite of what they say.",
        settings: [
            Setting(
                "dns.ttl_min", \.dns.ttlMin, .duration(.zero ... .hours(1)), reload: .restart,
                "Shortest time an answer is kept."),
            Setting(
                "dns.ttl_max", \.dns.ttlMax, .duration(.seconds(1) ... .days(7)), reload: .restart,
                "Longest time an answer is kept."),
            Setting(
                "dns.negative", \.dns.negative, .duration(.zero ... .hours(1)), reload: .restart,
                "How long a name that does not exist is taken not to."),
        ])

    private static let limits = Section(
        key: "limits", meaning: "What one peer can make Larder hold or do.",
        settings: [
            Setting(
                "limits.head_size_max", \.limits.headBytesMax, .bytes(4 << 10...1 << 20), reload: .live,
                "A whole head; beyond it clients get 431."),
            Setting(
                "limits.field_count_max", \.limits.fieldCountMax, .count(16...10_000), reload: .live,
                "Field lines in a head; beyond it clients get 431."),
            Setting(
                "limits.target_size_max", \.limits.targetBytesMax, .bytes(256...256 << 10), reload: .live,
                "A request-target; beyond it clients get 414."),
            Setting(
                "limits.origin_connections_max", \.limits.originConnectionsMax, .count(1...65_535), reload: .live,
                "Connections to one origin, per worker; further requests wait."),
            Setting(
                "limits.origin_queue_max", \.limits.originQueueMax, .count(0...1_000_000), reload: .live,
                "Requests that wait for a connection to one origin, per worker; beyond it clients get 503."),
            Setting(
                "limits.requests_per_connection_max", \.limits.requestsPerConnectionMax, .count(0...1_000_000_000),
                reload: .live, "Requests of one client connection before it is closed; 0 is no bound."),
        ])
}

extension Duration {
    static func minutes(_ count: Int) -> Duration { .seconds(count * 60) }
    static func hours(_ count: Int) -> Duration { .seconds(count * 3600) }
    static func days(_ count: Int) -> Duration { .seconds(count * 86_400) }
}
