// swift-tools-version: 6.2
import PackageDescription

/// Every Swift target is compiled alike: Swift 6, memory safety visible, no warnings.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

/// In the core every import is explicit. Elsewhere that is not possible: which C module a libc type belongs to depends
/// on the order in which the modules were loaded.
let explicitImports: [SwiftSetting] = [.enableUpcomingFeature("MemberImportVisibility")]

/// With LARDER_FUZZ=1 the parsers are built for libFuzzer, and the fuzz targets exist (FuzzTesting/run.sh).
let isFuzzing = Context.environment["LARDER_FUZZ"] == "1"
let fuzzFlags = ["-sanitize=fuzzer,address", "-parse-as-library"]
let parserSettings = strict + explicitImports + (isFuzzing ? [.unsafeFlags(fuzzFlags)] : [])

func fuzzTarget(_ name: String, of parsers: [Target.Dependency] = ["Framing", "Message"]) -> Target {
    .executableTarget(
        name: name, dependencies: parsers + ["FuzzSupport"], path: "FuzzTesting/\(name)",
        swiftSettings: parserSettings, linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])])
}

// Each room stands on a floor. It uses rooms of lower floors, and of those the ones it names; ArchitectureTests compare that with its imports.

/// Decides: values in, values and actions out. No I/O, no clock, no Foundation, nothing of the edge.
func core(_ name: String, floor: Int, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict + explicitImports)
}

/// A room of the core that reads what peers send, and is built for libFuzzer with LARDER_FUZZ=1.
func parser(_ name: String, floor: Int, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: parserSettings)
}

/// Does: owns descriptors, timers and C memory. Knows nothing of the core.
func edge(_ name: String, floor: Int, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

/// Drives: lets the core decide, and the edge do it.
func driver(
    _ name: String, floor: Int, _ dependencies: [Target.Dependency], resources: [Resource]? = nil
) -> Target {
    .target(name: name, dependencies: dependencies, resources: resources, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

let package = Package(
    name: "larder",
    products: [
        .executable(name: "larder", targets: ["larder"]),
        .library(name: "Upstream", targets: ["Upstream"]),
    ],
    targets: [
        // C libraries: module maps only.
        .systemLibrary(name: "CLibevent", pkgConfig: "libevent_pthreads", providers: [.apt(["libevent-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(name: "CAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
        .systemLibrary(name: "CLMDB", pkgConfig: "lmdb", providers: [.apt(["liblmdb-dev"])]),
        .systemLibrary(name: "CISAL", pkgConfig: "libisal", providers: [.apt(["libisal-dev"])]),
        .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
        .systemLibrary(name: "CPSL", pkgConfig: "libpsl", providers: [.apt(["libpsl-dev"])]),
        .systemLibrary(name: "CGSSAPI", providers: [.apt(["libkrb5-dev"])]),
        .systemLibrary(name: "CCrypt", pkgConfig: "libcrypt", providers: [.apt(["libcrypt-dev"])]),
        .systemLibrary(name: "CLDAP", pkgConfig: "ldap", providers: [.apt(["libldap-dev"])]),
        // Its pkg-config file has a flag that the package manager does not allow.
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
        // It comes without a pkg-config file.
        .systemLibrary(name: "CPacparser", providers: [.apt(["libpacparser-dev"])]),
        // Shims for macros, variadics and GNU-only calls: no logic.
        .target(name: "CLarder", dependencies: ["COpenSSL"]),

        parser("Message", floor: 0),
        parser("Framing", floor: 1, ["Message"]),
        parser("JSON", floor: 1, ["Message", "Texts"]),
        parser("Texts", floor: 0),
        parser("Releases", floor: 2, ["Message", "JSON"]),
        parser("Credentials", floor: 2, ["Message", "JSON"]),
        parser("Tokens", floor: 2, ["Message", "JSON"]),
        core("Rules", floor: 1, ["Message"]),
        core("Cookies", floor: 2, ["Message", "Rules"]),
        core("Caching", floor: 3, ["Message", "Rules", "Releases"]),
        core("Authentication", floor: 3, ["Message", "Rules", "Credentials", "Tokens"]),
        core("Access", floor: 4, ["Message", "Rules", "Authentication"]),
        core("Learning", floor: 5, ["Message", "Texts", "Rules", "Access"]),
        core("Routing", floor: 5, ["Message", "Framing", "Rules", "Access", "Credentials"]),
        core("Origins", floor: 6, ["Message", "Rules", "Credentials", "Access", "Routing"]),
        core("Transaction", floor: 5, ["Message", "Rules", "Caching", "Authentication", "Access", "Limiting"]),
        core("Limiting", floor: 2, ["Message", "Rules"]),
        core("Fleet", floor: 1, ["Message"]),
        core("ClientSetup", floor: 2, ["Message", "JSON"]),
        core(
            "Forwarding", floor: 6,
            [
                "Message", "JSON", "Texts", "Framing", "Caching", "Releases", "Authentication", "Access", "Limiting",
                "Transaction", "ClientSetup",
            ]),
        core("Requesting", floor: 2, ["Message", "Framing"]),
        core("Interception", floor: 6, ["Message", "Framing", "Rules", "Transaction"]),
        core(
            "Settings", floor: 7,
            [
                "Message", "Texts", "Rules", "Credentials", "Routing", "Origins", "Releases", "Caching", "Tokens",
                "Authentication", "Access", "Limiting", "Interception",
            ]),

        edge("EventLoop", floor: 0, ["CLibevent", "CLarder", "CAres"]),
        edge("TLS", floor: 0, ["COpenSSL", "CSodium", "CLarder"]),
        edge("Compression", floor: 0, ["CZlib", "CLarder"]),
        edge("Disk", floor: 1, ["EventLoop", "CLMDB", "CISAL", "CLarder"]),
        // Only the command line uses it: verify, repair, export, import.
        edge("DiskTools", floor: 2, ["Disk", "EventLoop"]),
        // The connections of clients, origins and the admin server, in plain text or through TLS.
        edge("Transport", floor: 1, ["EventLoop", "TLS"]),
        edge("Storage", floor: 0, ["CLarder"]),
        // What stands between the two; another engine has a target like this.
        edge("DiskTier", floor: 2, ["Disk", "Storage"]),
        edge("Passwords", floor: 0, ["CCrypt"]),
        edge("Processes", floor: 0, ["CLarder"]),
        edge("Secrets", floor: 1, ["Processes", "CLarder"]),
        edge("PublicSuffixes", floor: 0, ["CPSL"]),
        edge("PAC", floor: 0, ["CPacparser", "CLarder"]),
        edge("Kerberos", floor: 0, ["CGSSAPI"]),
        edge("LDAP", floor: 0, ["CLDAP"]),
        edge("Redis", floor: 0, ["CHiredis"]),
        edge("YAML", floor: 0, ["CYAML"]),

        // What happened, for the operator: counters, the access log, messages.
        driver(
            "Accounts", floor: 8,
            ["Message", "Texts", "Framing", "Access", "Transaction", "Forwarding", "Settings", "EventLoop"]),
        // The processes that evaluate PAC files.
        driver("PACRunner", floor: 9, ["Message", "Releases", "Routing", "EventLoop", "Processes", "Accounts"]),
        // What clients have used of the limits, and what the process can bear.
        driver("LimitTables", floor: 9, ["Message", "Limiting", "Fleet", "EventLoop", "Secrets", "Accounts"]),
        // How Larder logs in, and how its clients do, as far as that takes keys, tickets or threads.
        driver(
            "LogIns", floor: 9,
            [
                "Message", "Credentials", "Authentication", "Origins", "Settings", "EventLoop", "TLS", "Kerberos",
                "LDAP", "CLarder", "Accounts",
            ]),
        driver(
            "Server", floor: 10,
            [
                "Message", "Texts", "Framing", "Rules", "Releases", "Caching", "Tokens", "Authentication", "Access",
                "Learning", "Credentials", "Routing", "Origins", "Transaction", "Forwarding", "Interception",
                "ClientSetup", "Settings", "EventLoop", "TLS", "Compression", "Storage", "DiskTier", "Passwords",
                "Cookies", "PublicSuffixes", "Secrets", "Kerberos", "CLarder", "Limiting", "Fleet", "Redis", "JSON",
                "Transport", "Accounts", "PACRunner", "LimitTables", "LogIns",
            ]),
        driver(
            "Admin", floor: 11,
            [
                "Message", "JSON", "Texts", "Framing", "Rules", "Caching", "Access", "Learning", "Credentials",
                "Routing", "Origins", "Interception", "Transaction", "EventLoop", "Compression", "Storage", "Server",
                "Cookies", "CLarder", "Limiting", "Fleet", "Transport", "Accounts", "PACRunner", "LimitTables",
            ]),
        // What a configuration names, made ready for the proxy.
        driver(
            "Provisioning", floor: 11,
            [
                "Message", "Texts", "Rules", "Releases", "Tokens", "Authentication", "Access", "Credentials", "Routing",
                "Origins", "Interception", "ClientSetup", "Settings", "EventLoop", "TLS", "Storage", "Secrets", "YAML",
                "Server", "PublicSuffixes", "Kerberos", "Accounts", "PACRunner", "LogIns",
            ], resources: [.embedInCode("recipes/data")]),
        // The library: an HTTP client.
        driver(
            "Upstream", floor: 12,
            [
                "Message", "Framing", "Rules", "Routing", "Tokens", "Interception", "Settings", "Forwarding",
                "Requesting", "EventLoop", "TLS", "Compression", "Server", "Provisioning", "Transport", "Accounts",
            ]),
        .executableTarget(
            name: "larder",
            dependencies: [
                "Message", "JSON", "Texts", "Rules", "Caching", "Tokens", "Authentication", "Access", "Routing",
                "Interception", "Settings", "ClientSetup", "Passwords", "PAC", "EventLoop", "TLS", "Compression",
                "Disk", "DiskTools", "Server", "Admin", "Provisioning", "Upstream", "Requesting", "CLarder", "Fleet",
                "Accounts", "PACRunner",
            ], swiftSettings: strict,
            // The allocator, in the place of that of libc (docs/decisions/0029-mimalloc.md).
            linkerSettings: [.linkedLibrary("mimalloc")]),

        .executableTarget(
            name: "ParserBenchmark", dependencies: ["Message", "Framing", "Caching"], path: "Benchmarks/Parser",
            exclude: ["run.sh"], swiftSettings: strict),
        .executableTarget(
            name: "DiskBenchmark", dependencies: ["Disk"], path: "Benchmarks/Disk", swiftSettings: strict),
        .executableTarget(
            name: "SecretBenchmark",
            dependencies: ["Message", "Rules", "Credentials", "Tokens", "Authentication", "TLS", "Passwords"],
            path: "Benchmarks/Secrets", exclude: ["run.sh"], swiftSettings: strict),

        tests("MessageTests", ["Message"]),
        tests("FramingTests", ["Framing", "Message"]),
        tests("JSONTests", ["JSON"]),
        tests("TextsTests", ["Texts", "YAML"]),
        tests("ReleasesTests", ["Releases", "Message"]),
        tests("CredentialsTests", ["Credentials", "Message", "TLS"]),
        tests("TokensTests", ["Tokens", "Message", "TLS"]),
        tests("CookiesTests", ["Cookies", "Rules", "Message", "PublicSuffixes"]),
        tests("RulesTests", ["Rules", "Caching", "Releases", "Message"]),
        tests("CachingTests", ["Caching", "Releases", "Rules", "Message"]),
        tests("InterceptionTests", ["Interception", "Transaction", "Framing", "Rules", "Message"]),
        tests("RoutingTests", ["Routing", "Framing", "Credentials", "Access", "Rules", "Message"]),
        tests("OriginsTests", ["Origins", "Routing", "Credentials", "Access", "Rules", "Message"]),
        tests(
            "TransactionTests",
            ["Authentication", "Transaction", "Framing", "Caching", "Access", "Limiting", "Rules", "Message"]),
        tests(
            "ForwardingTests",
            [
                "Authentication", "Forwarding", "Transaction", "Caching", "Access", "Framing", "Message", "ClientSetup",
                "JSON",
            ]),
        tests("ClientSetupTests", ["ClientSetup", "Message", "TLS", "ProgramUnderTest"]),
        tests("ProvisioningTests", ["Provisioning", "Server", "Storage", "Settings", "EventLoop", "TLS"]),
        tests("RequestingTests", ["Requesting", "Framing", "Message"]),
        tests("UpstreamTests", ["Upstream", "Requesting", "Compression", "EventLoop", "TLS", "ProgramUnderTest"]),
        tests("SimulationTests", ["Transaction", "Caching", "Access", "Rules", "Message"]),
        tests(
            "ServerTests",
            [
                "Authentication", "Origins", "Routing", "Server", "Access", "Caching", "Compression", "Credentials",
                "EventLoop", "Forwarding", "Framing", "JSON", "Kerberos", "CGSSAPI", "Message", "ProgramUnderTest",
                "Settings", "Storage", "TLS",
            ]),
        tests("AccountsTests", ["Accounts", "Authentication", "EventLoop", "Forwarding", "JSON"]),
        tests("AccessTests", ["Access", "Rules", "Message"]),
        tests("AuthenticationTests", ["Authentication", "Rules", "Message", "Credentials", "TLS", "Tokens"]),
        tests("LearningTests", ["Learning", "Settings", "Access", "Rules", "Message", "Texts", "YAML"]),
        tests("LimitingTests", ["Limiting", "Rules", "Message"]),
        tests("LimitTablesTests", ["LimitTables", "Limiting", "Fleet", "Message"]),
        tests(
            "LogInsTests",
            [
                "LogIns", "Origins", "Routing", "Credentials", "EventLoop", "Kerberos", "CGSSAPI", "Message",
                "ProgramUnderTest",
            ]),
        tests("FleetTests", ["Fleet", "TLS", "Transaction"]),
        tests("RedisTests", ["Redis", "EventLoop", "ProgramUnderTest"]),
        tests(
            "RecipeTests",
            ["larder", "Provisioning", "Settings", "Caching", "Releases", "Rules", "Message", "YAML"]),
        tests(
            "SettingsTests",
            [
                "Authentication", "Origins", "Settings", "Credentials", "Routing", "Interception", "Access", "Caching",
                "Releases", "Rules", "Message", "YAML", "Limiting",
            ]),
        tests("SecretsTests", ["Secrets", "CLarder"]),
        tests("ProcessesTests", ["Processes"]),
        tests("PACTests", ["PAC", "ClientSetup", "Message"]),
        tests("PasswordsTests", ["Passwords", "YAML"]),
        tests("KerberosTests", ["Kerberos", "ProgramUnderTest"]),
        tests("StorageTests", ["Storage", "DiskTier", "Disk", "EventLoop", "CLarder"]),
        tests("DiskTests", ["Disk", "DiskTools", "EventLoop"]),
        tests("EventLoopTests", ["EventLoop", "CAres", "CLarder"]),
        tests("TLSTests", ["TLS", "COpenSSL", "CLarder"]),
        tests("TransportTests", ["Transport", "EventLoop", "TLS"]),
        tests("CompressionTests", ["Compression"]),
        tests("ArchitectureTests", ["Access", "Framing", "Transaction"]),
        tests(
            "ScenarioTests",
            [
                "Authentication", "Origins", "Admin", "JSON", "Server", "Settings", "Rules", "Caching", "Access",
                "Learning", "Interception", "Message", "Framing", "Credentials", "Routing", "ClientSetup", "EventLoop",
                "Passwords", "TLS", "Compression", "Storage", "Transaction", "Limiting", "Tokens", "YAML", "Cookies",
                "Provisioning", "larder", "ProgramUnderTest", "Accounts", "PACRunner", "LogIns",
            ]),
        tests(
            "AdminTests",
            [
                "Authentication", "Admin", "JSON", "Message", "Framing", "Rules", "Caching", "Access", "Learning",
                "Credentials", "EventLoop", "Settings", "Disk", "DiskTools", "DiskTier", "Storage", "Server", "TLS",
                "CLarder", "Provisioning", "larder", "Fleet", "Accounts", "LimitTables",
            ]),
        tests("ClientTests", ["EventLoop", "TLS", "COpenSSL", "Upstream", "larder", "ProgramUnderTest"]),
        tests("CrashTests", ["EventLoop", "larder", "ProgramUnderTest"]),
        tests("SoakTests", ["EventLoop", "TLS", "larder", "ProgramUnderTest", "CZlib"]),
        // Starts the executable for the tests above.
        .target(
            name: "ProgramUnderTest", dependencies: ["EventLoop"], path: "Tests/ProgramUnderTest", swiftSettings: strict
        ),
    ]
)

if isFuzzing {
    package.targets += [
        .target(name: "FuzzSupport", path: "FuzzTesting/FuzzSupport", swiftSettings: parserSettings),
        fuzzTarget("FuzzRequestHead"),
        fuzzTarget("FuzzResponseHead"),
        fuzzTarget("FuzzChunkedBody"),
        fuzzTarget("FuzzAnswer", of: ["Forwarding", "Framing", "Message"]),
        fuzzTarget("FuzzClientHello", of: ["Framing", "Interception", "Message", "Rules", "Transaction"]),
        fuzzTarget("FuzzProxyHeader"),
        fuzzTarget("FuzzSocksServer"),
        fuzzTarget("FuzzPathPattern", of: ["Rules"]),
        fuzzTarget("FuzzReleaseIndex", of: ["Releases", "Message"]),
        fuzzTarget("FuzzChallenges", of: ["Credentials"]),
        fuzzTarget("FuzzProxyAuthorization", of: ["Authentication", "Credentials", "Message"]),
        fuzzTarget("FuzzTokens", of: ["Tokens", "Message"]),
        fuzzTarget("FuzzNTLM", of: ["Credentials", "Message"]),
        fuzzTarget("FuzzPlaceholders", of: ["Credentials", "Message"]),
        fuzzTarget("FuzzCookies", of: ["Cookies", "Rules", "Message"]),
        fuzzTarget("FuzzSocks", of: ["Routing", "Message"]),
        fuzzTarget("FuzzHostsFile", of: ["EventLoop"]),
        fuzzTarget("FuzzTimeZone", of: ["Rules", "Message"]),
        fuzzTarget("FuzzDNSAnswer", of: ["EventLoop"]),
        fuzzTarget("FuzzPACAnswer", of: ["Routing"]),
        fuzzTarget("FuzzDiskRecord", of: ["Disk"]),
        fuzzTarget("FuzzDiskBook", of: ["Disk"]),
        fuzzTarget("FuzzRedis", of: ["Redis"]),
        fuzzTarget("FuzzText", of: ["JSON", "Message", "Texts", "YAML"]),
        fuzzTarget("FuzzFleet", of: ["Fleet"]),
    ]
    for name in ["Disk", "EventLoop", "Redis", "YAML"] {
        package.targets.first { $0.name == name }?.swiftSettings = strict + [.unsafeFlags(fuzzFlags)]
    }
    for name in ["Rules", "Routing", "Cookies", "Forwarding", "Fleet"] {
        package.targets.first { $0.name == name }?.swiftSettings = parserSettings
    }
}
