import Access
import Message
import Settings
import Testing

@Suite("Configuration files")
struct ConfigurationTests {
    /// The keys that are promised to the outside, as the design shows them.
    static let promised = """
        listen:
          - address: 127.0.0.1:3128        # host:port, [v6]:port, or unix:/path
        workers: auto                      # or a number
        admin:
          address: 127.0.0.1:3129          # dashboard, /stats, /metrics, /health
          socket: /run/larder/admin.sock   # what the command line talks to
        cache:
          memory: 256MiB
          disk: { path: /var/lib/larder, size: 10GiB }   # size: 0 → memory only
          collapse: yes
        access:
          clients: [ 127.0.0.0/8, "::1" ]  # who may use the proxy at all
          private_destinations: deny       # deny | allow; an allow rule that names an address opens just that address
          authentication:                  # absent: no authentication
            basic: { realm: larder, users: /etc/larder/users.htpasswd }
          rules:                           # first match wins; within a rule all conditions must hold, within a list any
            - allow: { host: [ "*.example.com", example.org ], port: [ 80, 443 ], method: [ GET, HEAD, CONNECT ] }
            - allow: { address: [ 127.0.0.1 ], port: [ 8080 ] }
            - deny:  { reason: "not on the list" }
          default: deny                    # where there are rules; without any rule the default is allow
        log:
          access: stdout                   # stdout | off | a file
          level: info
        """

    @Test func `the documented keys set their properties`() throws {
        let (configuration, errors, warnings) = try load(Self.promised)
        #expect(errors == [])
        #expect(warnings == [])
        var expected = Configuration()
        expected.cache.writtenDiskPath = "/var/lib/larder"
        expected.cache.writtenDiskSize = 10 << 30
        expected.access.namedClients = AddressRange.loopback
        expected.access.authentication.basic.usersFile = "/etc/larder/users.htpasswd"
        expected.access.writtenDefault = .deny
        var first = AccessRule.Conditions()
        first.hosts = [.below(".example.com"), .exact("example.org")]
        first.ports = [80...80, 443...443]
        first.methods = ["GET", "HEAD", "CONNECT"]
        var second = AccessRule.Conditions()
        second.addresses = [AddressRange(IPAddress(v4: 0x7F00_0001))]
        second.ports = [8080...8080]
        expected.access.rules = [
            AccessRule(effect: .allow, conditions: first, number: 1, line: 17),
            AccessRule(effect: .allow, conditions: second, number: 2, line: 18),
            AccessRule(effect: .deny(reason: "not on the list"), number: 3, line: 19),
        ]
        #expect(configuration == expected)
        #expect(configuration?.access.authentication.offered == [.basic])
    }

    @Test(arguments: ["", "# nothing\n", "~", "cache:\naccess:\n"]) func `an empty file means the defaults`(
        _ text: String
    ) throws {
        #expect(try loaded(text) == Configuration())
    }

    static let values: [(text: String, check: @Sendable (Configuration) -> Bool)] = [
        (
            "listen: [ { address: \"[::1]:80\" }, { address: unix:/run/p.sock }, { address: localhost:8080 } ]",
            { $0.listen.map(\.description) == ["[::1]:80", "unix:/run/p.sock", "127.0.0.1:8080"] }
        ),
        ("listen: 127.0.0.1:80", { $0.listen == [.tcp(IPAddress(v4: 0x7F00_0001), port: 80)] }),
        (
            "listen: [ 127.0.0.1:80, { address: 127.0.0.1:81, name: b, protocols: socks5, proxy_protocol: 10.0.0.7 } ]",
            {
                $0.listen.map(\.name) == ["127.0.0.1:80", "b"] && $0.listen[1].protocols == [.socks5]
                    && $0.listen[0].protocols == [.http1, .socks5]
                    && $0.listen[1].proxyProtocol.map(\.description) == ["10.0.0.7"]
            }
        ),
        (
            "listen: [ { address: 127.0.0.1:81, tls: { certificate: /c, key: /k, client_ca: /a, crl: /r } } ]",
            {
                $0.listen[0].tls?.files == ["/c", "/k", "/a", "/r"]
                    && $0.listen[0].tls?.demandsClientCertificate == true
                    && $0.listen[0].tls?.isRequired == false
            }
        ),
        (
            "listen: [ { address: unix:/run/p, mode: 0660 }, { address: systemd }  ]",
            { $0.listen[0].mode == 0o660 && $0.listen[1].address == .inherited(name: nil) }
        ),
        ("listen: systemd:proxy", { $0.listen[0].address == .inherited(name: "proxy") }),
        (
            "listen: [ { address: 127.0.0.1:81, tls: { certificate: /c, key: /k, client_ca: /a } } ]\naccess: { authentication: { certificates: { map: [ { san: \"*.b.example\", groups: g }, { cn: x, user: \"x-{cn}\" } ] } } }",
            {
                $0.access.authentication.certificates.entries.map(\.user) == ["{san}", "x-{cn}"]
                    && $0.access.authentication.certificates.entries[0].groups == ["g"]
                    && $0.access.authentication.isRequired && $0.access.authentication.offered.isEmpty
            }
        ),
        ("workers: 7", { $0.workers == .count(7) }),
        (
            "admin: { address: off, socket: off, token: /t }",
            { $0.admin.address == nil && $0.admin.socket == nil && $0.admin.tokenFile == "/t" }
        ),
        ("cache: { memory: 1GiB }", { $0.cache.memory == 1 << 30 && $0.cache.objectSizeMax == 1 << 27 }),
        (
            "cache: { memory: 1GiB, disk: { path: /srv/larder, size: 16GiB, sync: 100ms } }",
            {
                $0.cache.objectSizeMax == 2 << 30
                    && $0.cache.disk
                        == ZoneDisk(
                            zone: "default", path: "/srv/larder", size: 16 << 30, pinned: 8 << 30,
                            sync: .milliseconds(100))
            }
        ),
        ("cache: { disk: { size: 1GiB, pinned: 0 } }", { $0.cache.disk?.pinned == 0 }),
        ("cache: { disk: { size: 0, pinned: 1GiB } }", { $0.cache.disk == nil && $0.cache.disks.isEmpty }),
        ("cache: { object_size_max: 5MB }", { $0.cache.objectSizeMax == 5_000_000 }),
        (
            "cache: { collapse: false, heuristic_lifetime_max: 0 }",
            { !$0.cache.collapse && $0.cache.heuristicLifetimeMax == .zero }
        ),
        ("access: { clients: 10.0.0.0/8 }", { $0.access.clients?.map(\.description) == ["10.0.0.0/8"] }),
        (
            "access: { private_destinations: allow, connect_ports: [ 443, 8000-8999 ] }",
            { $0.access.privateDestinations == .allow && $0.access.connectPorts == [443...443, 8000...8999] }
        ),
        ("access: { connect_ports: [] }", { $0.access.connectPorts.isEmpty }),
        (
            "access: { rules: [ deny: ] }",
            { $0.access.rules == [AccessRule(effect: .deny(reason: nil), number: 1, line: 1)] }
        ),
        ("access: { rules: [] }", { $0.access.defaultEffect == .allow }),
        (
            "access: { rules: [ { allow: { host: 0x7f.1 } } ] }",
            {
                $0.access.rules.first?.conditions.hosts == [.address(IPAddress(v4: 0x7F00_0001))]
                    && $0.access.defaultEffect == .deny
            }
        ),
        (
            "log: { access: ./access.log, level: debug }",
            { $0.log.access == .file("./access.log") && $0.log.level == .debug }
        ),
        ("log: { access: off }", { $0.log.access == .off }),
        (
            "timeouts: { connect: 500ms, tunnel_idle: 2d }",
            { $0.timeouts.connect == .milliseconds(500) && $0.timeouts.tunnelIdle == .seconds(172_800) }
        ),
        ("tls: { min_version: 1.3, ca_file: ca.pem }", { $0.tls.minVersion == .v1_3 && $0.tls.caFile == "ca.pem" }),
        (
            "dns: { ttl_min: 0, ttl_max: 1m, negative: 1s }",
            { $0.dns.ttlMin == .zero && $0.dns.ttlMax == .seconds(60) && $0.dns.negative == .seconds(1) }
        ),
        (
            "dns: { servers: [ 127.0.0.1:5353, \"[::1]:53\" ] }",
            { $0.dns.servers.map { "\($0)" } == ["127.0.0.1:5353", "[::1]:53"] }
        ),
        (
            "limits: { head_size_max: 128KiB, field_count_max: 200 }",
            { $0.limits.headBytesMax == 131_072 && $0.limits.fieldCountMax == 200 }
        ),
    ]
    @Test(arguments: values.indices) func `a value sets its property`(_ index: Int) throws {
        let row = Self.values[index]
        #expect(row.check(try loaded(row.text)), "\(row.text)")
    }

    @Test func `changes that need a restart are reported by key`() throws {
        let changed = try loaded(
            "workers: 2\ncache: { memory: 1GiB, collapse: no }\nadmin: { address: off }\nlog: { level: debug }")
        #expect(
            changesNeedingRestart(from: Configuration(), to: changed) == ["workers", "admin.address", "cache.memory"])
        #expect(changesNeedingRestart(from: changed, to: changed) == [])
    }

    static let diskChanges: [(old: String, new: String, expected: [String])] = [
        (
            "cache: { disk: { size: 1GiB } }", "cache: { disk: { size: 2GiB, pinned: 1MiB, sync: 1s } }", []
        ),
        ("cache: { disk: { path: /a, size: 1GiB } }", "cache: { disk: { path: /b, size: 1GiB } }", ["cache.disk.path"]),
        ("cache: { disk: { size: 0 } }", "cache: { disk: { size: 1GiB } }", ["cache.disk.size"]),
        ("cache: { disk: { size: 1GiB } }", "cache: { disk: { size: 0 } }", ["cache.disk.size"]),
        (
            "cache: { zones: [ { name: a, memory: 1MiB, disk: { path: /a, size: 1GiB } } ] }",
            "cache: { zones: [ { name: a, memory: 1MiB, disk: { path: /a, size: 2GiB, pinned: 0 } } ] }", []
        ),
        (
            "cache: { zones: [ { name: a, memory: 1MiB, disk: { path: /a, size: 1GiB } } ] }",
            "cache: { zones: [ { name: a, memory: 1MiB, disk: { path: /b, size: 1GiB } } ] }",
            ["cache.zones[1].disk"]
        ),
        (
            "cache: { zones: [ { name: a, memory: 1MiB } ] }",
            "cache: { zones: [ { name: a, memory: 1MiB, disk: { path: /a, size: 1GiB } } ] }", ["cache.zones[1].disk"]
        ),
        (
            "", "cache: { zones: [ { name: a, memory: 1MiB, disk: { path: /a, size: 1GiB } } ] }", []
        ),
    ]
    @Test(arguments: diskChanges.indices) func `a reload changes the quotas of a disk, and not its place`(
        _ index: Int
    ) throws {
        let row = Self.diskChanges[index]
        #expect(changesNeedingRestart(from: try loaded(row.old), to: try loaded(row.new)) == row.expected, "\(row)")
    }

    @Test func `every setting is shown with the value in effect`() throws {
        var configuration = try loaded("cache: { memory: 1GiB }\naccess: { clients: [ 10.0.0.0/8, \"::1\" ] }")
        configuration.cache.defaultDisk = DefaultDisk(path: "/s/larder", size: 4 << 30)
        let shown = effectiveSettings(configuration)
        #expect(shown.contains { $0 == ("cache.memory", "1GiB") })
        #expect(shown.contains { $0 == ("access.clients", "[ 10.0.0.0/8, \"::1\" ]") })
        #expect(shown.contains { $0 == ("tls.ca_file", "(the system's)") })
        #expect(shown.contains { $0 == ("cache.disk.path", "/s/larder") })
        #expect(shown.contains { $0 == ("cache.disk.pinned", "2GiB") })
        #expect(shown.contains { $0 == ("cache.object_size_max", "512MiB") })
        #expect(shown.contains { $0 == ("access.default", "allow") })
        #expect(Set(shown.map(\.key)).count == shown.count && shown.allSatisfy { !$0.value.isEmpty })
    }
}

@Suite("Listen addresses")
struct ListenAddressTests {
    static let refused = [
        "", "3128", ":3128", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:+80",
        "127.0.0.1:80 ",
        "::1:80", "[::1]", "[127.0.0.1]:80", "example.org:80", "*:80", "0x7f.1:80", "unix:", "unix:relative",
        "127.1:80",
        "unix:/" + String(repeating: "a", count: 107), "127.0.0.1:８０",
    ]
    @Test(arguments: refused) func `a text that is not a listen address is refused`(_ text: String) {
        #expect(ListenAddress(text) == nil)
    }

    @Test(arguments: ["127.0.0.1:3128", "[::1]:1", "0.0.0.0:65535", "unix:/run/larder.sock"])
    func `a listen address is shown as it was written`(_ text: String) {
        #expect(ListenAddress(text)?.description == text)
    }
}
