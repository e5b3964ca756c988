import Origins
import Access
import Authentication
import Interception
import Message
import Routing
import Rules
import Tokens

/// Every setting of Larder, in the order of the sample file and the manual.
///
/// The reader, its messages, `conf/larder.yaml`, `docs/configuration.md` and `larder check -v` are made from these declarations. To
/// add a setting, add a property with its default to `Configuration`, and its declaration here.
enum Settings {
    /// A part of the file, with its settings.
    struct Section: Sendable {
        /// Empty for the settings at the top level.
        let key: String
        let meaning: String
        let settings: [any SettingDeclaration]
    }

    static let sections = [
        general, admin, cache, fleet, access, learn, intercept, log, timeouts, retries, circuit, pac, bandwidth, tls,
        dns,
        limits,
    ]
    static let all = sections.flatMap(\.settings)

    private static let general = Section(
        key: "", meaning: "Where Larder listens, how many threads it uses, and which ecosystems it knows.",
        settings: [
            Setting(
                "listen", \.listen, SettingKind<ListenerSettings>.listener.list(), reload: .restart,
                "The addresses that clients connect to, and what they may speak there: HTTP/1 and SOCKS5, each with or without TLS. A listener that other machines can reach needs access.clients or access.authentication. All keys of an entry: docs/listeners.md.",
                written: ["listen:", "  - address: 127.0.0.1:3128"]),
            Setting(
                "workers", \.workers, .workers(1...1024), reload: .restart,
                "The number of worker threads. With auto, Larder starts one for each core that it may run on."),
            Setting(
                "recipes", \.recipes, .recipes, reload: .live,
                "What Larder knows about package ecosystems, and the hosts for which it holds. Rules of cache.rules come first. larder recipe list shows all recipes, larder recipe hosts those that this machine needs.",
                example: [
                    "recipes:",
                    "  - { use: npm, hosts: [ registry.example.org ] }",
                    "  - { use: debian, hosts: [ \"*.mirror.example.org\" ], zone: packages }",
                ], defaultMeaning: "no recipes"),
            Setting(
                "routes", \.routes, .routes, reload: .live,
                "The ways to origins. The first rule that matches a request counts: its routes are tried in order, or, with choose: hash, its proxies in an order that depends on the URL. A proxy that fails comes last for a while. In place of via, pac names a PAC file, by its path or its URL, that says the routes; via: environment takes them from http_proxy, https_proxy, all_proxy and no_proxy. credential names the entry of credentials that the proxies get; where a PAC file or the environment names proxies, those that are listed in proxies get it. Without a rule Larder connects to origins itself.",
                example: [
                    "routes:",
                    "  - { match: { host: \"*.corp.example\" }, via: direct }",
                    "  - { via: [ \"http://user:password@proxy.example:3128\", \"socks5://198.51.100.7:1080\", direct ] }",
                    "  - { match: { client: 10.2.0.0/16 }, pac: \"https://wpad.example/proxy.pac\", otherwise: direct }",
                ], defaultMeaning: "direct"),
            Setting(
                "origins", \.origins, .origins, reload: .live,
                "Time limits, connections, retries, bandwidth, TLS, changes of request fields, redirects and cookies for some origins. The first rule that matches a request counts. What it leaves out is as in timeouts, limits, retries, bandwidth and tls.",
                example: [
                    "origins:",
                    "  - { match: { host: models.example, path: /generate/* }, timeouts: { first_byte: 10m }, retries: 0 }",
                    "  - { match: { host: \"*.mirror.example\" }, timeouts: { connect: 2s, total: 1h }, retries: 3 }",
                    "  - { match: { host: old.example }, connections: { max: 4, http: \"1.0\", family: ipv4 } }",
                    "  - { match: { host: git.corp.example }, tls: { ca_file: /etc/larder/corp.pem, pkcs12: /etc/larder/larder.p12, password_file: /etc/larder/larder.p12.password } }",
                    "  - { match: { host: tracker.example }, fields: { set: { User-Agent: fleet/1.0 }, remove: [ Referer ] } }",
                    "  - { match: { host: portal.example }, cookies: portal }",
                ], defaultMeaning: "none"),
            Setting(
                "cookie_jars", \.cookieJars, .cookieJars, reload: .live,
                "Cookies that Larder keeps for clients that keep none, and sends to the origins whose rule names the jar. With a file they outlive the process: it has the format of curl and wget, and is read again when it changes. What is fetched with a jar is stored for it alone.",
                example: [
                    "cookie_jars:",
                    "  - { name: portal, file: /var/lib/larder/portal.cookies }",
                ], defaultMeaning: "none"),
            Setting(
                "credentials", \.credentials, .credentials, reload: .live,
                "What Larder itself proves to origins, on behalf of the clients whose requests match, and to the next proxies of the rules that name it. The first entry that matches counts. Over http they are sent only with plain_http: yes. What is fetched with a credential is stored for it alone.",
                example: [
                    "credentials:",
                    "  - { name: mirror, scheme: [ digest, basic ], match: { host: mirror.corp.example }, user: fleet, password: { file: /etc/larder/mirror.password } }",
                    "  - { name: models, scheme: bearer, match: { host: models.example, path: /private/* }, token: { env: MODELS_TOKEN } }",
                ], defaultMeaning: "none"),
        ])

    private static let admin = Section(
        key: "admin",
        meaning:
            "The listeners for people and programs that watch or control Larder. Clients cannot reach them through the proxy.",
        settings: [
            Setting(
                "admin.address", \.admin.address, SettingKind<ListenAddress>.tcpAddress.or("off"), reload: .restart,
                "The address of the dashboard, /stats, /metrics and /health."),
            Setting(
                "admin.socket", \.admin.socket, SettingKind<String>.socketPath.or("off"), reload: .restart,
                "The Unix socket that larder stats, purge and the other commands use. Whoever can write to it can purge."
            ),
            Setting(
                "admin.token", \.admin.tokenFile, SettingKind<String>.path("a file").orLeftOut, reload: .restart,
                "A file whose first line is a token. Requests over TCP that send it (Authorization: Bearer) may purge.",
                example: ["token: /etc/larder/admin.token"], defaultMeaning: "nobody can purge over TCP"),
        ])

    private static let cache = Section(
        key: "cache", meaning: "Which responses are stored, where, and for how long (RFC 9111).",
        settings: [
            Setting(
                "cache.memory", \.cache.memory, .size(1 << 20...16 << 40), reload: .restart,
                "The memory that stored responses may take, including their headers and bookkeeping."),
            Setting(
                "cache.disk.path", \.cache.writtenDiskPath, SettingKind<String>.path("a directory").orLeftOut,
                reload: .restart,
                "The directory of the disk tier. Nothing else may be in it, and its file system needs room for all of size. A zone can have a directory of its own.",
                example: ["path: /var/lib/larder"],
                defaultMeaning:
                    "/var/lib/larder, or, without write access to it, $XDG_STATE_HOME/larder or ~/.local/state/larder",
                inEffect: { $0.cache.diskPath }),
            Setting(
                "cache.disk.size", \.cache.writtenDiskSize, SettingKind<UInt64>.diskSize.orLeftOut, reload: .live,
                "The space that all files of the disk tier may take together. With 0, responses are stored in memory only and are gone when "
                    + "Larder stops. Turning the disk tier on or off takes a restart.",
                example: ["size: 10GiB"], defaultMeaning: "10 % of the free space, 10GiB at most",
                inEffect: { renderSize($0.cache.diskSize) }),
            Setting(
                "cache.disk.pinned", \.cache.writtenDiskPinned, SettingKind<UInt64>.size(0...1 << 50).orLeftOut,
                reload: .live, "How much of that space pinned responses may take.", example: ["pinned: 5GiB"],
                defaultMeaning: "half of the size", inEffect: { renderSize($0.cache.disk?.pinned ?? 0) }),
            Setting(
                "cache.disk.sync", \.cache.diskSync, .duration(.milliseconds(100) ... .hours(1)), reload: .live,
                "How often stored responses are forced to the disk, in all zones: a power cut loses at most what was stored since then. It never damages what is served."
            ),
            Setting(
                "cache.collapse", \.cache.collapse, .flag, reload: .live,
                "Whether a request for something that is already being fetched waits for that fetch instead of starting another (RFC 9111 §4)."
            ),
            Setting(
                "cache.object_size_max", \.cache.writtenObjectSizeMax,
                SettingKind<UInt64>.size(0...1 << 50).orLeftOut, reload: .live,
                "The largest body that is stored. Larger ones are passed on without being stored.",
                example: ["object_size_max: 32MiB"],
                defaultMeaning: "an eighth of cache.memory, or of cache.disk.size if that is larger",
                inEffect: { renderSize($0.cache.objectSizeMax) }),
            Setting(
                "cache.heuristic_lifetime_max", \.cache.heuristicLifetimeMax, .duration(.zero ... .days(365)),
                reload: .live,
                "The longest time for which the heuristic of RFC 9111 §4.2.2 may call a response fresh. With 0 there is no heuristic."
            ),
            Setting(
                "cache.negative_ttl", \.cache.negativeTTL, .seconds(.zero ... .days(1)), reload: .live,
                "How long a 404 or 410 is fresh if the origin does not say. With 0 the heuristic decides."),
            Setting(
                "cache.targeted_fields", \.cache.targetedFields, .flag, reload: .live,
                "Whether Larder-Cache-Control and CDN-Cache-Control replace Cache-Control (RFC 9213)."),
            Setting(
                "cache.policy_clients", \.cache.policyClients, SettingKind<AddressRange>.addressRange.list(),
                reload: .live, "The clients whose Larder-Policy header is obeyed.",
                example: ["policy_clients: [ 127.0.0.1 ]"], defaultMeaning: "none"),
            Setting(
                "cache.compression.types", \.cache.compression.writtenTypes,
                SettingKind<MediaTypePattern>.mediaType.list().orLeftOut, reload: .live,
                "The content types that are compressed if a rule says compress.",
                example: ["types: [ \"text/*\", application/json ]"],
                defaultMeaning: "text, JSON, XML, JavaScript, WebAssembly and SVG"),
            Setting(
                "cache.compression.size_min", \.cache.compression.sizeMin, .size(0...1 << 30), reload: .live,
                "The smallest body that is compressed."),
            Setting(
                "cache.zones", \.cache.writtenZones, .zones, reload: .live,
                "Caches besides the default one, each with its own memory and disk. Rules send requests to them.",
                example: [
                    "zones:",
                    "  - { name: packages, memory: 64MiB, object_size_max: 16MiB, policy: stale-on-error }",
                    "  - { name: layers, memory: 64MiB, disk: { path: /srv/layers, size: 100GiB, pinned: 20GiB } }",
                ], defaultMeaning: "the default zone alone"),
            Setting(
                "cache.rules", \.cache.rules, .rules, reload: .live,
                "How requests use the cache. The first rule that matches decides. All conditions of a match must hold; of the values in a list, any one.",
                example: [
                    "rules:",
                    "  - { match: { host: \"*.example.org\", path: /pool/* }, zone: packages, policy: cache-first }",
                    "  - { match: { host: example.com }, key: { drop: [ \"utm_*\", fbclid ], sort: yes } }",
                    "  - { match: { type: text/html }, ttl: 1m, policy: [ stale-on-error ] }",
                ], defaultMeaning: "no rules"),
        ])

    private static let access = Section(
        key: "access", meaning: "Who may use the proxy, and which destinations they may reach through it.",
        settings: [
            Setting(
                "access.clients", \.access.namedClients, SettingKind<AddressRange>.addressRange.list().orLeftOut,
                reload: .live, "The addresses and networks of the clients that may use the proxy at all.",
                example: ["clients: [ 127.0.0.0/8, \"::1\" ]"],
                defaultMeaning: "loopback only; with required authentication, every client that authenticates"),
            Setting(
                "access.private_destinations", \.access.privateDestinations, .choice, reload: .live,
                "Whether Larder connects to addresses that are not public. A rule that names an address opens that address alone. "
                    + "The metadata services of clouds stay closed even with allow, unless a rule names them."),
            Setting(
                "access.connect_ports", \.access.connectPorts,
                SettingKind<ClosedRange<UInt16>>.portRange.list(isEmptyAllowed: true), reload: .live,
                "The ports that CONNECT may use without a rule that names them."),
            Setting(
                "access.authentication.required", \.access.authentication.isForAll, .flag, reload: .live,
                "Whether every request has to carry credentials. With no, rules authenticate: { … } say which ones have to; credentials that come with other requests are checked all the same. Name the clients in access.clients then.",
                example: ["required: no"]),
            Setting(
                "access.authentication.basic.realm", \.access.authentication.basic.realm, .text(128), reload: .live,
                "The name that clients show when they ask the user for a password (RFC 7617).",
                example: ["realm: larder"]),
            Setting(
                "access.authentication.basic.users", \.access.authentication.basic.usersFile,
                SettingKind<String>.path("an htpasswd file").orLeftOut, reload: .live,
                "A file with users and hashed passwords, one name:hash per line. Create it with larder passwd.",
                example: ["users: /etc/larder/users.htpasswd"], defaultMeaning: "Basic is not offered"),
            Setting(
                "access.authentication.basic.remember", \.access.authentication.basic.remember,
                .duration(.zero ... .hours(1)),
                reload: .live, "How long a password that was right is accepted without hashing it again.",
                example: ["remember: 1m"]),
            Setting(
                "access.authentication.basic.weak_hashes", \.access.authentication.basic.weakHashes, .choice,
                reload: .live,
                "Whether the file may have hashes that can be guessed fast: $apr1$ and {SHA}. Plain text is never accepted.",
                example: ["weak_hashes: deny"]),
            Setting(
                "access.authentication.digest.realm", \.access.authentication.digest.realm, .text(128), reload: .live,
                "The name that clients show when they ask for a password (RFC 7616). It is a part of each hash in the users' file.",
                example: ["realm: larder"]),
            Setting(
                "access.authentication.digest.users", \.access.authentication.digest.usersFile,
                SettingKind<String>.path("a file as htdigest writes it").orLeftOut, reload: .live,
                "A file with users and the hashes of Digest, one user:realm:hash or user:realm:SHA-256:hash per line. Create it with larder passwd --digest.",
                example: ["users: /etc/larder/users.digest"], defaultMeaning: "Digest is not offered"),
            Setting(
                "access.authentication.digest.md5", \.access.authentication.digest.md5, .choice, reload: .live,
                "Whether MD5 is offered behind SHA-256: while a user has no other hash, always for clients that know no other algorithm, or never.",
                example: ["md5: needed"]),
            Setting(
                "access.authentication.digest.nonce_lifetime", \.access.authentication.digest.nonceLifetime,
                .duration(.seconds(10) ... .hours(24)), reload: .live,
                "How long a client can use one nonce. It gets another one before, and is not asked for its password again.",
                example: ["nonce_lifetime: 5m"]),
            Setting(
                "access.authentication.digest.qop", \.access.authentication.digest.protection,
                SettingKind<DigestProtectionOffer>.choice, reload: .live,
                "What a digest may cover. auth-int offers the body of the request too, up to 64 KiB, beside auth.",
                example: ["qop: auth"]),
            Setting(
                "access.authentication.groups", \.access.authentication.groupsFile,
                SettingKind<String>.path("a file with groups").orLeftOut, reload: .live,
                "A file with the groups of users, one group: user user per line.",
                example: ["groups: /etc/larder/groups"], defaultMeaning: "no groups"),
            Setting(
                "access.authentication.negotiate.keytab", \.access.authentication.negotiate.keytab,
                SettingKind<String>.path("a keytab").orLeftOut, reload: .live,
                "The keys of the proxy's service (HTTP/host@REALM), with which the tickets of clients are checked (RFC 4559).",
                example: ["keytab: /etc/larder/http.keytab"], defaultMeaning: "no Negotiate"),
            Setting(
                "access.authentication.negotiate.principal", \.access.authentication.negotiate.principal,
                SettingKind<String>.text(256).orLeftOut, reload: .live,
                "The service whose tickets are accepted.", example: ["principal: HTTP/proxy.example.com@EXAMPLE.COM"],
                defaultMeaning: "every one of the keytab"),
            Setting(
                "access.authentication.negotiate.strip_realm", \.access.authentication.negotiate.ownRealm,
                SettingKind<String>.text(256).orLeftOut, reload: .live,
                "The realm whose users are known to rules and the log without it: ann for ann@EXAMPLE.COM. Those of other realms keep theirs.",
                example: ["strip_realm: EXAMPLE.COM"], defaultMeaning: "every name has its realm"),
            Setting(
                "access.authentication.bearer.realm", \.access.authentication.bearer.realm, .text(128), reload: .live,
                "The name of what a token opens (RFC 6750).", example: ["realm: larder"]),
            Setting(
                "access.authentication.bearer.tokens", \.access.authentication.bearer.tokensFile,
                SettingKind<String>.path("a file with tokens").orLeftOut, reload: .live,
                "A file with names and hashes of tokens, one name:hash per line. Create it with larder passwd --token. It is read again when it changes.",
                example: ["tokens: /etc/larder/tokens"], defaultMeaning: "no such tokens"),
            Setting(
                "access.authentication.bearer.jwt.jwks", \.access.authentication.bearer.keys,
                SettingKind<KeySetSource>.keySetSource.orLeftOut, reload: .live,
                "The keys (JWK Set, RFC 7517) that sign tokens (JWT, RFC 7519). A file is read again when it changes, a URL as refresh says.",
                example: ["jwks: https://login.example.com/keys"], defaultMeaning: "no signed tokens"),
            Setting(
                "access.authentication.bearer.jwt.issuer", \.access.authentication.bearer.terms.issuer, .text(1024),
                reload: .live, "What a token has to say in iss.", example: ["issuer: https://login.example.com"],
                defaultMeaning: "none; required with jwks"),
            Setting(
                "access.authentication.bearer.jwt.audience", \.access.authentication.bearer.terms.audiences,
                SettingKind<String>.text(1024).list(), reload: .live,
                "What a token has to say in aud: one of these. Without it, a token for another service would open the proxy.",
                example: ["audience: [ egress-proxy ]"], defaultMeaning: "none; required with jwks"),
            Setting(
                "access.authentication.bearer.jwt.algorithms", \.access.authentication.bearer.terms.algorithms,
                SettingKind<SignatureAlgorithm>.choice.list(), reload: .live,
                "How tokens may be signed. HS256 needs a key that the issuer and the proxy share, from a file.",
                example: ["algorithms: [ RS256, ES256, EdDSA ]"]),
            Setting(
                "access.authentication.bearer.jwt.clock_skew", \.access.authentication.bearer.terms.clockSkew,
                .duration(.zero ... .minutes(10)), reload: .live,
                "How far the clocks of the issuer and of the proxy may be apart.", example: ["clock_skew: 1m"]),
            Setting(
                "access.authentication.bearer.jwt.name", \.access.authentication.bearer.terms.nameClaim, .text(256),
                reload: .live, "The claim with the name of the user, as rules and the log know it.",
                example: ["name: sub"]),
            Setting(
                "access.authentication.bearer.jwt.groups", \.access.authentication.bearer.terms.groupsClaim,
                SettingKind<String>.text(256).orLeftOut, reload: .live,
                "The claim with the groups of the user: a list, or words with spaces between.",
                example: ["groups: groups"], defaultMeaning: "no groups"),
            Setting(
                "access.authentication.bearer.jwt.refresh", \.access.authentication.bearer.keysRefresh,
                .duration(.seconds(30) ... .days(1)), reload: .live,
                "How often the keys of a URL are fetched again. A token with an unknown kid has them fetched earlier.",
                example: ["refresh: 5m"]),
            Setting(
                "access.authentication.bearer.jwt.keep", \.access.authentication.bearer.keysKept,
                .duration(.minutes(1) ... .days(30)), reload: .live,
                "How long the keys of a URL are used after they were fetched last, if they cannot be fetched again.",
                example: ["keep: 1d"]),
            Setting(
                "access.authentication.directory.urls", \.access.authentication.directory.urls,
                SettingKind<DirectoryURL>.directoryURL.list(), reload: .live,
                "The directories (LDAP, RFC 4511) that users are looked up in who are not in the file of basic. They have the same users, and are asked in this order. The users log in with Basic.",
                example: ["urls: [ \"ldaps://ldap1.example.net\", \"ldap://ldap2.example.net\" ]"],
                defaultMeaning: "no directory"),
            Setting(
                "access.authentication.directory.start_tls", \.access.authentication.directory.startsTLS, .flag,
                reload: .live,
                "Whether connections of ldap URLs begin TLS (StartTLS). Certificates are always verified.",
                example: ["start_tls: yes"]),
            Setting(
                "access.authentication.directory.plain_text", \.access.authentication.directory.plainText, .choice,
                reload: .live, "Whether passwords may go to another machine without TLS.",
                example: ["plain_text: deny"]),
            Setting(
                "access.authentication.directory.ca_file", \.access.authentication.directory.authorityFile,
                SettingKind<String>.path("a file with certificates").orLeftOut, reload: .live,
                "The authorities that the certificates of the directories come from, as PEM.",
                example: ["ca_file: /etc/larder/directory-ca.pem"],
                defaultMeaning: "those of tls.ca_file, or of the system"),
            Setting(
                "access.authentication.directory.bind_dn", \.access.authentication.directory.accountName,
                SettingKind<String>.distinguishedName.orLeftOut, reload: .live,
                "The entry of the account that searches. Without it, searches are anonymous, or the user's own after its bind.",
                example: ["bind_dn: cn=larder,ou=services,dc=example,dc=net"], defaultMeaning: "no account"),
            Setting(
                "access.authentication.directory.password_file", \.access.authentication.directory.accountPasswordFile,
                SettingKind<String>.path("a file with a password").orLeftOut, reload: .live,
                "A file whose first line is the password of bind_dn. It is read again when it changes.",
                example: ["password_file: /etc/larder/directory.password"],
                defaultMeaning: "none; required with bind_dn"),
            Setting(
                "access.authentication.directory.users.base", \.access.authentication.directory.usersBase,
                SettingKind<String>.distinguishedName.orLeftOut, reload: .live,
                "The entry below which users are searched for. Exactly one entry has to match.",
                example: ["base: ou=people,dc=example,dc=net"], defaultMeaning: "none; required without users.dn"),
            Setting(
                "access.authentication.directory.users.filter", \.access.authentication.directory.usersFilter,
                SettingKind<DirectoryTemplate>.directoryFilter("(uid={user})").orLeftOut, reload: .live,
                "The filter of the search (RFC 4515). {user} stands for the name that the client sends, escaped.",
                example: ["filter: '(uid={user})'"]),
            Setting(
                "access.authentication.directory.users.dn", \.access.authentication.directory.userName,
                SettingKind<DirectoryTemplate>.directoryName.orLeftOut, reload: .live,
                "The name of a user's entry (RFC 4514), in place of a search.",
                example: ["dn: 'uid={user},ou=people,dc=example,dc=net'"], defaultMeaning: "users are searched for"),
            Setting(
                "access.authentication.directory.users.name", \.access.authentication.directory.nameAttribute,
                .attributeName, reload: .live,
                "The attribute with the name of the user as rules and the log know it. A user whose entry does not show exactly one value is refused.",
                example: ["name: uid"]),
            Setting(
                "access.authentication.directory.groups.base", \.access.authentication.directory.groupsBase,
                SettingKind<String>.distinguishedName.orLeftOut, reload: .live,
                "The entry below which the groups of a user are searched for.",
                example: ["base: ou=groups,dc=example,dc=net"], defaultMeaning: "no search"),
            Setting(
                "access.authentication.directory.groups.filter", \.access.authentication.directory.groupsFilter,
                SettingKind<DirectoryTemplate>.directoryFilter("(member={dn})").orLeftOut, reload: .live,
                "The filter of that search. {dn} stands for the name of the user's entry, {user} for the name of the user.",
                example: ["filter: '(member={dn})'"]),
            Setting(
                "access.authentication.directory.groups.name", \.access.authentication.directory.groupAttribute,
                .attributeName, reload: .live,
                "The attribute with the name of a group, as the condition group knows it.",
                example: ["name: cn"]),
            Setting(
                "access.authentication.directory.groups.attribute", \.access.authentication.directory.memberAttribute,
                SettingKind<String>.attributeName.orLeftOut, reload: .live,
                "An attribute of the user's entry with the names of the entries of its groups. The first value of such a name is the name of the group.",
                example: ["attribute: memberOf"], defaultMeaning: "none"),
            Setting(
                "access.authentication.directory.timeout", \.access.authentication.directory.timeout,
                .duration(.milliseconds(100) ... .minutes(1)), reload: .live,
                "How long a directory may take to accept a connection, and for each answer. Then the next one is asked.",
                example: ["timeout: 5s"]),
            Setting(
                "access.authentication.directory.lifetime", \.access.authentication.directory.lifetime,
                .duration(.zero ... .hours(24)), reload: .live,
                "How long a password that was right, and the groups of its user, are remembered, also while no directory answers.",
                example: ["lifetime: 5m"]),
            Setting(
                "access.authentication.certificates.map", \.access.authentication.certificates.entries,
                .certificateMap, reload: .live,
                "Who the owner of a client certificate is, for listeners with tls.client_ca. The first entry that matches counts. san is a name of subjectAltName, cn the common name, subject the whole subject as in RFC 4514; one * stands for any characters. user may name {san}, {cn}, {subject}, and {*} for what the * stands for.",
                example: [
                    "map: [ { san: \"*.builders.example\", user: \"{san}\", groups: [ builders ] }, { cn: operator, user: operator } ]"
                ], defaultMeaning: "certificates prove nothing beyond what the listener demands"),
            Setting(
                "access.rules", \.access.rules, .rules, reload: .live,
                "What clients may reach. The first rule that matches decides. All conditions of a rule must hold; of the values in a list, any one.",
                example: [
                    "rules:",
                    "  - allow: { host: [ \"*.example.com\", example.org ], port: [ 80, 443 ], method: [ GET, HEAD, CONNECT ] }",
                    "  - allow: { address: [ 127.0.0.1 ], port: [ 8080 ] }",
                    "  - deny:  { reason: \"not on the list\" }",
                ], defaultMeaning: "no rules"),
            Setting(
                "access.default", \.access.writtenDefault, SettingKind<AccessSettings.DefaultEffect>.choice.orLeftOut,
                reload: .live, "What happens if no rule matches.", example: ["default: deny"],
                defaultMeaning: "deny if there are rules, otherwise allow",
                inEffect: { $0.access.defaultEffect.rawValue }),
        ])

    private static let learn = Section(
        key: "learn", meaning: "What larder learn notes of jobs.",
        settings: [
            Setting(
                "learn.directory", \.learn.directory, SettingKind<String>.path("a directory").orLeftOut,
                reload: .restart,
                "The directory of the journals, one file for each job. It is made when a job learns for the first time.",
                example: ["directory: /var/lib/larder-learn"],
                defaultMeaning:
                    "/var/lib/larder-learn, or, without write access to it, $XDG_STATE_HOME/larder-learn or ~/.local/state/larder-learn"
            )
        ])

    private static let intercept = Section(
        key: "intercept",
        meaning:
            "HTTPS interception: which tunnels Larder opens, so that it can read, check and cache the requests in them. Without an authority it opens none.",
        settings: [
            Setting(
                "intercept.ca.certificate", \.intercept.certificateFile,
                SettingKind<String>.path("a PEM file").orLeftOut, reload: .live,
                "A file with the certificate authority that issues the certificates shown to clients, then those above it. Create it with larder ca create.",
                example: ["certificate: /etc/larder/ca/intermediate.pem"], defaultMeaning: "no tunnel is opened"),
            Setting(
                "intercept.ca.key", \.intercept.keyFile, SettingKind<String>.path("a PEM file").orLeftOut,
                reload: .live,
                "The private key of that authority. Nobody but Larder's user may read the file.",
                example: ["key: /etc/larder/ca/intermediate.key"], defaultMeaning: "no tunnel is opened"),
            Setting(
                "intercept.hosts", \.intercept.hosts, SettingKind<HostPattern>.hostPattern.list(), reload: .live,
                "The hosts whose tunnels are opened. All others remain tunnels, unless an access rule says intercept: yes.",
                example: ["hosts: [ \"*.example.org\" ]"], defaultMeaning: "none"),
            Setting(
                "intercept.refused", \.intercept.refused, .choice, reload: .live,
                "What happens to the tunnels of a client that did not accept the certificate for a host: open them all the same, so that its requests fail until it trusts the authority, or let them remain tunnels for a day where no access rule asks for a path or a method."
            ),
        ])

    private static let log = Section(
        key: "log", meaning: "What Larder writes to its logs.",
        settings: [
            Setting(
                "log.access", \.log.access, .logTarget, reload: .restart,
                "The access log: one line of JSON per request, without passwords and other secrets."
            ),
            Setting(
                "log.level", \.log.level, .choice, reload: .live,
                "The least important level of messages that are logged."),
            Setting(
                "log.debug", \.log.debug, SettingKind<LogCategory>.choice.list(), reload: .live,
                "With level: debug, what is logged of each request to an origin. Every line names its category."),
        ])

    private static let timeouts = Section(
        key: "timeouts", meaning: "How long Larder waits for what.",
        settings: [
            Setting(
                "timeouts.client_head", \.timeouts.clientHead, .duration(.seconds(1) ... .hours(1)), reload: .live,
                "For the whole head of a request, from its first byte."),
            Setting(
                "timeouts.client_idle", \.timeouts.clientIdle, .duration(.seconds(1) ... .hours(24)), reload: .live,
                "For the next request on a client connection."),
            Setting(
                "timeouts.connect", \.timeouts.connect, .duration(TimeoutSettings.connectBounds), reload: .live,
                "For a connection to an origin: its name and all its addresses together, and as long again for TLS."),
            Setting(
                "timeouts.first_byte", \.timeouts.firstByte, .duration(TimeoutSettings.firstByteBounds),
                reload: .live,
                "For the first byte of a response, from the last byte of the request."),
            Setting(
                "timeouts.idle", \.timeouts.idle, .duration(TimeoutSettings.idleBounds), reload: .live,
                "For the next piece of a body, from an origin or to a client. For the rest of the head of a response, from its first byte."
            ),
            Setting(
                "timeouts.total", \.timeouts.total,
                SettingKind<Duration>.duration(TimeoutSettings.totalBounds).or("off"),
                reload: .live,
                "For a whole response, from the moment at which the origin is asked, retries included."),
            Setting(
                "timeouts.collapse", \.timeouts.collapse, .duration(.milliseconds(100) ... .hours(1)), reload: .live,
                "For the head of a response that another request is already fetching. After that, the request is sent on its own."
            ),
            Setting(
                "timeouts.origin_keep_alive", \.timeouts.originKeepAlive, .duration(.zero ... .hours(24)),
                reload: .live,
                "For another use of an idle connection to an origin, unless the origin's own Keep-Alive: timeout is shorter."
            ),
            Setting(
                "timeouts.tunnel_idle", \.timeouts.tunnelIdle, .duration(.seconds(1) ... .days(7)), reload: .live,
                "For a byte in either direction of a tunnel."),
            Setting(
                "timeouts.drain", \.timeouts.drain, .duration(.zero ... .hours(24)), reload: .live,
                "For running requests to end when Larder is told to stop."),
        ])

    private static let retries = Section(
        key: "retries",
        meaning:
            "Requests that are sent again because the connection was refused, or the connection or the response did not come in time. After a time-out of the response only idempotent requests without a body are, as RFC 9110 §9.2.2 allows.",
        settings: [
            Setting(
                "retries.max", \.retries.countMax, .count(0...10), reload: .live,
                "How often one request is sent again. Not at all if a stale response may be served instead."),
            Setting(
                "retries.pause", \.retries.pause, .duration(.zero ... .minutes(1)), reload: .live,
                "The pause before the first repetition. Each further pause is twice as long. Larder waits for a random part of it, at least a half."
            ),
            Setting(
                "retries.budget", \.retries.budgetPercent, .percent, reload: .live,
                "How many requests are sent again at most, in percent of those that are sent to origins. A proxy with little traffic may repeat ten."
            ),
        ])

    private static let circuit = Section(
        key: "circuit",
        meaning:
            "Origins that do not accept connections in time, and name servers that do not answer: requests fail at once for a while, and one tries from time to time.",
        settings: [
            Setting(
                "circuit.failures", \.circuit.failuresMax, .count(0...100), reload: .live,
                "After how many time-outs in a row an origin is not tried, and name servers are taken for silent about all names. A single name is not asked for after one. With 0 everything is always tried."
            ),
            Setting(
                "circuit.pause", \.circuit.pause, .duration(.milliseconds(100) ... .hours(1)), reload: .live,
                "How long requests fail at once before one tries the origin, or asks for the name. If that fails as well, twice as long, and so on."
            ),
            Setting(
                "circuit.pause_max", \.circuit.pauseMax, .duration(.milliseconds(100) ... .hours(1)), reload: .live,
                "The longest such time."),
        ])

    private static let fleet = Section(
        key: "fleet",
        meaning:
            "Several Larders that share what they have, through a Redis: stored responses of up to 1 MiB, and purges. What is larger, one node keeps for all. Without the Redis each goes on alone. docs/fleet.md.",
        settings: [
            Setting(
                "fleet.redis.url", \.fleet.redis, SettingKind<RedisURL>.redisURL.orLeftOut, reload: .restart,
                "The Redis 7 that all nodes use, or something that speaks its protocol. With rediss the connection uses TLS.",
                example: ["redis: { url: \"rediss://larder@redis.internal:6379/0\" }"], defaultMeaning: "no fleet"),
            Setting(
                "fleet.redis.password_file", \.fleet.passwordFile,
                SettingKind<String>.path("a file with a password").orLeftOut, reload: .restart,
                "A file whose first line is the password of the user.",
                example: ["redis: { password_file: /etc/larder/redis.password }"], defaultMeaning: "no password"),
            Setting(
                "fleet.redis.ca_file", \.fleet.authorityFile,
                SettingKind<String>.path("a file with certificates").orLeftOut, reload: .restart,
                "The authorities that the certificate of the Redis comes from, as PEM.",
                example: ["redis: { ca_file: /etc/larder/redis-ca.pem }"],
                defaultMeaning: "those of tls.ca_file, or of the system"),
            Setting(
                "fleet.secret_file", \.fleet.secretFile, SettingKind<String>.path("a file with a secret").orLeftOut,
                reload: .restart,
                "A file whose first line is a secret of 32 bytes or more, the same on all nodes. It authenticates what is in the Redis: whoever can write there, but does not know it, can give nothing to clients.",
                example: ["secret_file: /etc/larder/fleet.secret"], defaultMeaning: "none, which is an error"),
            Setting(
                "fleet.node.name", \.fleet.node, SettingKind<String>.nodeName.orLeftOut, reload: .restart,
                "The name of this node, another one on each.", example: ["node: { name: cache-1 }"],
                defaultMeaning: "the name of the machine"),
            Setting(
                "fleet.node.peer.address", \.fleet.peer.address, SettingKind<ListenAddress>.peerAddress.orLeftOut,
                reload: .restart,
                "Where the other nodes ask this one, with TLS. fleet.peers has the same address, or a name of it.",
                example: ["node: { peer: { address: 10.20.0.11:3130 } }"], defaultMeaning: "they do not ask it"),
            Setting(
                "fleet.node.peer.certificate", \.fleet.peer.certificateFile,
                SettingKind<String>.path("a file with certificates").orLeftOut, reload: .restart,
                "The certificate of this node, for clients and for servers, with those of the authorities in between, as PEM. It names the address or the name in fleet.peers.",
                example: ["node: { peer: { certificate: /etc/larder/node.pem } }"],
                defaultMeaning: "none, which is an error with fleet.peers"),
            Setting(
                "fleet.node.peer.key", \.fleet.peer.keyFile,
                SettingKind<String>.path("a file with a key").orLeftOut, reload: .restart,
                "The key of the certificate, as PEM, readable for its owner alone.",
                example: ["node: { peer: { key: /etc/larder/node.key } }"],
                defaultMeaning: "none, which is an error with fleet.peers"),
            Setting(
                "fleet.node.peer.ca", \.fleet.peer.authorityFile,
                SettingKind<String>.path("a file with certificates").orLeftOut, reload: .restart,
                "The authority of the fleet, as PEM. Whoever has a certificate from it, and the secret, is a node: use one that certifies nobody else.",
                example: ["node: { peer: { ca: /etc/larder/fleet-ca.pem } }"],
                defaultMeaning: "none, which is an error with fleet.peers"),
            Setting(
                "fleet.peers", \.fleet.peers, SettingKind<FleetPeersSetting>.fleetPeers.orLeftOut, reload: .live,
                "All nodes, this one among them, the same on each: what one of them owns, the others ask it for. A single name stands for the addresses that it has; names are looked up again every 5 seconds. Weights say how much more a node owns than others. To add the list or to remove it needs a restart.",
                example: ["peers: [ \"10.20.0.11:3130\", \"10.20.0.12:3130\", \"10.20.0.13:3130\" ]"],
                defaultMeaning: "the nodes do not ask each other"),
        ])

    private static let pac = Section(
        key: "pac",
        meaning:
            "PAC files of routes, which a process of its own evaluates each; and the PAC file that Larder gives to browsers.",
        settings: [
            Setting(
                "pac.direct", \.pac.direct, SettingKind<DirectDestination>.directDestination.list(isEmptyAllowed: true),
                reload: .live,
                "What /proxy.pac and /wpad.dat tell browsers to reach without the proxy, beside their own machine: names, the names below a suffix, addresses, and networks of IPv4. A network is compared with addresses in URLs; no name is looked up for it.",
                example: ["direct: [ \"*.internal\", printer.example, 10.0.0.0/8 ]"], defaultMeaning: "nothing else"),
            Setting(
                "pac.timeout", \.pac.timeout, .duration(.milliseconds(100) ... .minutes(1)), reload: .live,
                "For an answer. The process of a script that takes longer is ended and started again."),
            Setting(
                "pac.lifetime", \.pac.lifetime, .duration(.zero ... .hours(24)), reload: .live,
                "For how long an answer holds for all requests to the same scheme, host and port. With 0 the script is asked for each request."
            ),
            Setting(
                "pac.refresh", \.pac.refresh, .duration(.seconds(1) ... .hours(24)), reload: .live,
                "How often a PAC file that has a URL is fetched. After a failure it is fetched sooner."),
            Setting(
                "pac.fetch_timeout", \.pac.fetchTimeout, .duration(.milliseconds(100) ... .minutes(1)), reload: .live,
                "For fetching a PAC file, redirects included. The start waits so long, too, and goes on without the file."
            ),
        ])

    private static let bandwidth = Section(
        key: "bandwidth",
        meaning:
            "How fast bytes come from origins and through tunnels. Of several limits all hold. What is stored is served without a limit; `limits.rules` has rates towards clients.",
        settings: [
            Setting(
                "bandwidth.total", \.bandwidth.total, SettingKind<UInt64>.rate.orLeftOut, reload: .live,
                "For all clients together.", example: ["total: 800Mbit/s"], defaultMeaning: "no limit"),
            Setting(
                "bandwidth.client", \.bandwidth.client, SettingKind<UInt64>.rate.orLeftOut, reload: .live,
                "For each client address.", example: ["client: 20MiB/s"], defaultMeaning: "no limit"),
            Setting(
                "bandwidth.classes", \.bandwidth.classes, .bandwidthClasses, reload: .live,
                "For the requests of a class together. A request belongs to the first class that matches. A rule of origins can have a limit, too.",
                example: [
                    "classes:",
                    "  - { name: nightly, match: { client: 10.2.0.0/16 }, rate: 5MiB/s }",
                    "  - { name: models, match: { host: \"*.models.example\" }, rate: 100Mbit/s }",
                ], defaultMeaning: "none"),
        ])

    private static let tls = Section(
        key: "tls",
        meaning:
            "TLS connections to origins and next proxies. Certificates are verified. Rules of origins can say more for some origins.",
        settings: [
            Setting(
                "tls.ca_file", \.tls.caFile, SettingKind<String>.path("a PEM file").orLeftOut, reload: .restart,
                "A file with the certificate authorities to trust instead of the system's.",
                example: ["ca_file: /etc/ssl/certs/ca-certificates.crt"], defaultMeaning: "the system's"),
            Setting(
                "tls.min_version", \.tls.minVersion, .choice, reload: .restart,
                "The oldest version of TLS that Larder accepts."),
        ])

    private static let dns = Section(
        key: "dns",
        meaning:
            "Which name servers are asked, and how long their answers are kept. The bounds override what the answers say.",
        settings: [
            Setting(
                "dns.servers", \.dns.servers, SettingKind<ListenAddress>.tcpAddress.list(), reload: .restart,
                "The name servers to ask instead of the system's.", example: ["servers: [ \"192.0.2.53:53\" ]"],
                defaultMeaning: "those in `/etc/resolv.conf`"),
            Setting(
                "dns.ttl_min", \.dns.ttlMin, .duration(.zero ... .hours(1)), reload: .restart,
                "The shortest time for which an answer is kept."),
            Setting(
                "dns.ttl_max", \.dns.ttlMax, .duration(.seconds(1) ... .days(7)), reload: .restart,
                "The longest time for which an answer is kept."),
            Setting(
                "dns.negative", \.dns.negative, .duration(.zero ... .hours(1)), reload: .restart,
                "How long Larder remembers that a name does not exist."),
            Setting(
                "dns.stale", \.dns.stale, .duration(.zero ... .days(7)), reload: .restart,
                "How long after their expiry addresses are used if no name server answers (RFC 8767). An answer that the name does not exist replaces them at once. With 0 they are not used."
            ),
            Setting(
                "dns.family", \.dns.family, .choice, reload: .restart,
                "Which addresses of a name Larder connects to: those of both families, with the preferred one first, or those of one family alone. Addresses in URLs are not affected."
            ),
            Setting(
                "dns.hosts_file", \.dns.hostsFile, SettingKind<String>.path("a file").or("off"), reload: .restart,
                "A file with addresses and their names, which comes before the name servers. A change takes effect within seconds. At most 4MiB are read."
            ),
            Setting(
                "dns.hosts", \.dns.hosts, .addressesOfNames, reload: .restart,
                "Addresses of names, before the hosts file and the name servers. The access rules judge these addresses like any others.",
                example: [
                    "hosts: { name.example.net: [ 192.0.2.7, \"2001:db8::7\" ], \"*.test.example\": 192.0.2.8 }"
                ],
                defaultMeaning: "none"),
            Setting(
                "dns.suffixes", \.dns.suffixes, .serversOfSuffixes, reload: .restart,
                "Name servers for a domain and the names below it. The longest suffix counts.",
                example: ["suffixes: { corp.example: [ \"192.0.2.53:53\" ] }"], defaultMeaning: "none"),
        ])

    private static let limits = Section(
        key: "limits", meaning: "The most that one client or origin can make Larder hold or do.",
        settings: [
            Setting(
                "limits.head_size_max", \.limits.headBytesMax, .bytes(4 << 10...1 << 20), reload: .live,
                "The size of a message head. A larger request gets 431."),
            Setting(
                "limits.field_count_max", \.limits.fieldCountMax, .count(16...10_000), reload: .live,
                "The number of header lines in a head. A request with more gets 431."),
            Setting(
                "limits.target_size_max", \.limits.targetBytesMax, .bytes(256...256 << 10), reload: .live,
                "The size of a request target (the URL). A longer one gets 414."),
            Setting(
                "limits.origin_connections_max", \.limits.originConnectionsMax, .count(1...65_535), reload: .live,
                "The number of connections to one origin, per worker. Further requests wait for one."),
            Setting(
                "limits.origin_queue_max", \.limits.originQueueMax, .count(0...1_000_000), reload: .live,
                "The number of requests that wait for a connection to one origin, per worker. Further requests get 503."
            ),
            Setting(
                "limits.clients_max", \.limits.clientsMax, .count(1...10_000_000), reload: .live,
                "The number of client connections that are open at once. Further ones are closed when they are accepted."
            ),
            Setting(
                "limits.exchanges_max", \.limits.exchangesMax, .count(1...10_000_000), reload: .live,
                "The number of requests under way at once, without those answered directly from memory. Further ones get 503."
            ),
            Setting(
                "limits.tunnels_max", \.limits.tunnelsMax, .count(1...10_000_000), reload: .live,
                "The number of tunnels that are open at once. Further ones get 503."),
            Setting(
                "limits.requests_per_connection_max", \.limits.requestsPerConnectionMax, .count(0...1_000_000_000),
                reload: .live,
                "The number of requests on one client connection before it is closed. With 0 there is no limit."),
            Setting(
                "limits.download_rate_min", \.limits.downloadRateMin,
                SettingKind<UInt64>.rate(1...1 << 30, such: "256B/s").or("off"), reload: .live,
                "What a client that has an answer to read takes of it at least, over rate_window. The connection of a slower one is reset. Tunnels are not concerned."
            ),
            Setting(
                "limits.upload_rate_min", \.limits.uploadRateMin,
                SettingKind<UInt64>.rate(1...1 << 30, such: "256B/s").or("off"), reload: .live,
                "What a client sends of the body of a request at least, over rate_window, while Larder waits for it. A slower one gets 408. Set it to off if requests have bodies that clients write little by little."
            ),
            Setting(
                "limits.rate_window", \.limits.rateWindow, .duration(.seconds(1) ... .hours(1)), reload: .live,
                "The time over which download_rate_min and upload_rate_min are looked at."),
            Setting(
                "limits.rules", \.limitPlan, .limitRules, reload: .live,
                "What clients, users, groups or all together may have. All rules that match a request hold. limits.md explains them.",
                example: [
                    "rules:",
                    "  - { name: each, per: client, requests: 50/s, burst: 200, connections: 100 }",
                    "  - { name: students, match: { user: [ ann, bob ] }, per: user, concurrent: 8, bandwidth: 20MiB/s }",
                    "  - { name: everybody, per: all, concurrent: 5000 }",
                ], defaultMeaning: "none"),
            Setting(
                "limits.memory_max", \.memoryMax, SettingKind<UInt64>.size(32 << 20...1 << 50).orLeftOut, reload: .live,
                "The memory that the process may have before it sheds load: at 85 % it closes idle connections, at 95 % it refuses new ones. It should be well above cache.memory.",
                example: ["memory_max: 4GiB"], defaultMeaning: "that of the control group, if it has a limit"),
            Setting(
                "limits.budgets_file", \.budgetsFile, SettingKind<String>.path("a file").orLeftOut, reload: .live,
                "Where Larder keeps what has been used of budgets, so that a restart does not refill them.",
                example: ["budgets_file: /var/lib/larder/budgets"], defaultMeaning: "none"),
        ])
}

extension Duration {
    static func minutes(_ count: Int) -> Duration { .seconds(count * 60) }
    static func hours(_ count: Int) -> Duration { .seconds(count * 3600) }
    static func days(_ count: Int) -> Duration { .seconds(count * 86_400) }
}
