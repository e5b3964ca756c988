@testable import EventLoop
import Testing

@Suite("RFC 6724 §6 Destination address selection")
struct AddressOrderTests {
    /// One candidate: where to, and from where. Nil: it cannot be reached.
    typealias Candidate = (to: String, from: String?)

    struct Row: Sendable, CustomStringConvertible {
        var description: String
        /// The better one first.
        var first: Candidate
        var second: Candidate
    }

    static let rows = [
        Row(description: "rule 1: unusable", first: ("198.51.100.1", "192.0.2.1"), second: ("2001:db8:1::1", nil)),
        Row(description: "rule 1, the reverse", first: ("2001:db8:1::1", "2001:db8::2"), second: ("198.51.100.1", nil)),
        // §10.2
        Row(
            description: "rule 2: matching scope", first: ("2001:db8:1::1", "2001:db8::2"),
            second: ("198.51.100.121", "169.254.13.78")),
        Row(
            description: "rule 2, the reverse", first: ("198.51.100.121", "198.51.100.117"),
            second: ("2001:db8:1::1", "fe80::1")),
        Row(
            description: "rule 5: matching label", first: ("2002:c633:6401::1", "2002:c633:6401::2"),
            second: ("2001:db8:1::1", "2002:c633:6401::2")),
        Row(
            description: "rule 6: precedence", first: ("2001:db8:1::1", "2001:db8::2"),
            second: ("10.1.2.3", "10.1.2.4")),
        Row(
            description: "rule 6: 6to4", first: ("2001:db8:1::1", "2001:db8:1::2"),
            second: ("2002:c633:6401::1", "2002:c633:6401::2")),
        Row(
            description: "rule 6: a private network of IPv6 is behind IPv4", first: ("192.0.2.7", "192.0.2.1"),
            second: ("fd00::7", "fd00::1")),
        Row(
            description: "rule 6: loopback", first: ("::1", "::1"), second: ("127.0.0.1", "127.0.0.1")),
        Row(
            description: "rule 6: Teredo", first: ("192.0.2.7", "192.0.2.1"), second: ("2001::7", "2001::1")),
        Row(
            description: "rule 8: smaller scope", first: ("fe80::1", "fe80::2"),
            second: ("2001:db8:1::1", "2001:db8::2")
        ),
        Row(
            description: "rule 9: longest prefix", first: ("2001:db8:1::1", "2001:db8:1::2"),
            second: ("2001:db8:3ffe::1", "2001:db8:1::2")),
    ]

    private func address(_ text: String) throws -> SocketAddress { try #require(SocketAddress(literal: text)) }

    @Test(arguments: rows) func `the better address comes first, whichever came first`(_ row: Row) throws {
        let candidates = [row.first, row.second]
        var sources: [SocketAddress: SocketAddress] = [:]
        for candidate in candidates { sources[try address(candidate.to)] = try candidate.from.map(address) }
        let expected = try candidates.map { try address($0.to) }
        for addresses in [expected, expected.reversed()] {
            #expect(AddressOrder.sorted(addresses, source: { sources[$0] }) == expected)
        }
    }

    @Test func `what no rule tells apart keeps its order (rule 10)`() throws {
        let own = try address("192.0.2.1")
        let addresses = try ["198.51.100.9", "198.51.100.1", "203.0.113.4", "198.51.100.2"].map(address)
        #expect(AddressOrder.sorted(addresses, source: { _ in own }) == addresses)
        #expect(AddressOrder.sorted(addresses, source: { _ in nil }) == addresses)
    }

    @Test func `the kernel tells from where loopback is reached`() throws {
        #expect(Sockets.source(for: loopback()) == loopback().with(port: 0))
    }
}
