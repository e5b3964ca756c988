import Access
import Foundation
import Message
import Settings
import Testing

/// Where the addresses of a name come from, seen through the whole proxy.
@Suite("Names: static entries, the hosts file, and rules")
struct NameScenarios {
    private static let loopback = IPAddress(v4: 0x7F00_0001)

    /// Addresses as `dns.hosts` gives them, for two names. Name servers say of all names that they do not exist.
    private static func withNames(
        private privateDestinations: AccessSettings.PrivateDestinations = .allow, file: String? = nil,
        _ play: (Scenario) throws -> Void
    ) throws {
        let names = try ScriptedNames(.noSuchName)
        try withExtendedLifetime(names) {
            try scenario(
                { configuration, files in
                    configuration.dns.servers = [.tcp(loopback, port: names.port)]
                    configuration.dns.hosts = [
                        DNSEntry(name: "static.test", values: [loopback]),
                        DNSEntry(name: "*.wild.test", values: [loopback]),
                    ]
                    configuration.dns.hostsFile = try file.map { try files.write("hosts", $0) }
                    configuration.access.privateDestinations = privateDestinations
                }, play)
        }
    }

    @Test(arguments: ["static.test", "STATIC.test.", "a.b.wild.test"])
    func `a static entry leads to its address, before any server is asked`(_ name: String) throws {
        try Self.withNames { s in
            s.origin.expects("GET /a", "Host").replies(200, body: "found")
            let answer = try s.client().get("http://\(name):\(s.origin.port)/a")
            #expect(answer.text == "found", "\(answer)")
        }
    }

    @Test func `a name of the hosts file leads to its address, and another one nowhere`() throws {
        try Self.withNames(file: "# names\n127.0.0.1 other.test file.test # end\n") { s in
            s.origin.expects("GET /a", "Host: file.test:\(s.origin.port)").replies(200, body: "found")
            #expect(try s.client().get("http://file.test:\(s.origin.port)/a").text == "found")
            let answer = try s.client().get("http://wild.test:\(s.origin.port)/a")
            #expect(answer.status == 502 && answer.cacheStatus.contains("detail=name-not-found"), "\(answer)")
        }
    }

    @Test(arguments: ["static.test", "x.wild.test", "file.test"])
    func `a private address is refused, wherever its name comes from`(_ name: String) throws {
        try Self.withNames(private: .deny, file: "127.0.0.1 file.test\n") { s in
            let answer = try s.client().get("http://\(name):\(s.origin.port)/a")
            #expect(answer.status == 403 && answer.cacheStatus.contains("detail=destination-forbidden"), "\(answer)")
            let tunnel = try s.client()
            try tunnel.send("CONNECT \(name):443 HTTP/1.1\r\nHost: \(name):443\r\n\r\n")
            #expect(try tunnel.response(to: "CONNECT").status == 403)
        }
    }
}
