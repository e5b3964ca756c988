import Message
import Rules
import Testing

@Suite("Sets of hosts")
struct HostSetTests {
    static let set = HostSet(
        ["a.example.org", "*.example.org", "*.b.example.org", "203.0.113.7", "localhost"].compactMap { HostPattern($0) }
    )
    static let rows: [(host: String, entry: String?)] = [
        ("a.example.org", "a.example.org"), ("A.EXAMPLE.ORG.", "a.example.org"), ("x.example.org", "*.example.org"),
        ("x.b.example.org", "*.b.example.org"), ("b.example.org", "*.example.org"), ("example.org", nil),
        ("aexample.org", nil), ("org", nil), ("localhost", "localhost"), ("x.localhost", nil),
        ("203.0.113.7", "203.0.113.7"), ("0xcb007107", "203.0.113.7"), ("203.0.113.8", nil),
    ]
    @Test(arguments: rows) func `the entry that matches`(_ host: String, _ entry: String?) throws {
        let host = try #require(DestinationHost(host.utf8))
        #expect(Self.set.entry(for: host).map { "\($0)" } == entry)
        #expect(Self.set.contains(host) == (entry != nil))
    }

    @Test func `grows, and counts an entry once`() throws {
        var set = HostSet()
        for round in 0..<2 {
            for number in 0..<5000 {
                #expect(set.insert(try #require(HostPattern("h\(number).example"))), "round \(round)")
            }
        }
        set.compact()
        #expect(set.count == 5000)
        for number in 0..<5000 {
            let host = try #require(DestinationHost(Array("h\(number).example".utf8)))
            #expect(set.contains(host))
        }
        #expect(!set.contains(try #require(DestinationHost(Array("h5000.example".utf8)))))
        #expect(HostSet([.any]).contains(try #require(DestinationHost(Array("x".utf8)))))
    }
}

@Suite("Ranges by address")
struct AddressIndexTests {
    static let ranges = [
        "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "10.1.0.0/24", "0.0.0.0/0", "fd00::/8", "fd00:1::/32", "192.0.2.0/24",
        "2001:db8::1",
    ]
    static let addresses = [
        "10.1.2.3", "10.1.2.4", "10.1.0.9", "10.2.0.0", "9.255.255.255", "11.0.0.0", "fd00:1::5", "fd01::1", "fe00::",
        "::1", "255.255.255.255", "2001:db8::1", "2001:db8::2", "0.0.0.0",
    ]

    @Test(arguments: addresses) func `finds what a walk over all ranges finds`(_ text: String) throws {
        let address = ip(text)
        let ranges = try Self.ranges.map { try #require(AddressRange($0)) }
        for count in 0...ranges.count {
            let some = Array(ranges.suffix(count))
            let index = AddressIndex(some.enumerated().map { (position: $0.offset, ranges: [$0.element]) })
            for first in 0...some.count {
                let expected = some.indices.first { $0 >= first && some[$0].contains(address) }
                #expect(index.first(for: address, below: .max) { $0 >= first } == expected)
            }
            let smallest = some.filter { $0.contains(address) }.max { $0.prefixLength < $1.prefixLength }
            #expect(index.smallestRange(around: address) == smallest)
            #expect(index.contains(address) == (smallest != nil))
        }
    }
}
