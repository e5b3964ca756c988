import Message
import Settings
import Testing

@Suite("dns: names and servers") struct NameSettingsTests {
    @Test func `entries have their names in lower case, and one address or several`() throws {
        let dns = try loaded(
            """
            dns:
              hosts: { Name.Example.NET: [ 192.0.2.7, "2001:db8::7" ], "*.test.example": 192.0.2.8 }
              suffixes: { Corp.example: [ "192.0.2.53:53", "[2001:db8::53]:5353" ] }
              family: prefer-ipv4
              stale: 2h
              hosts_file: off
            """
        ).dns
        #expect(dns.hosts.map(\.name) == ["name.example.net", "*.test.example"])
        #expect(dns.hosts.map { $0.values.map { "\($0)" } } == [["192.0.2.7", "2001:db8::7"], ["192.0.2.8"]])
        #expect(dns.suffixes.map(\.name) == ["corp.example"])
        #expect(dns.suffixes[0].values.map { "\($0)" } == ["192.0.2.53:53", "[2001:db8::53]:5353"])
        #expect(dns.family == .preferIPv4 && dns.stale == .seconds(7200) && dns.hostsFile == nil)
    }
}
