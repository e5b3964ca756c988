import Message
import Rules
import Testing

@Suite("Files with values of rules")
struct ListTextTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `hosts, one on each line, with comments`() throws {
        let text = "\u{FEFF}# blocked\n\na.example\n *.b.example \t# below\r\nC.Example.\n203.0.113.7\n"
        let set = try ListText.hosts(bytes(text))
        #expect(set.count == 4)
        for host in ["a.example", "x.b.example", "c.example", "203.0.113.7"] {
            #expect(set.contains(try #require(DestinationHost(Array(host.utf8)))), "\(host)")
        }
        #expect(set.wildcards == [.below(".b.example")])
    }

    @Test func `the form of a hosts file`() throws {
        let set = try ListText.hosts(
            bytes("0.0.0.0 a.example b.example # ads\n127.0.0.1\tc.example\n:: d.example\n::1 e.example"))
        #expect(set.count == 5)
        for host in ["a", "b", "c", "d", "e"] {
            #expect(set.contains(try #require(DestinationHost(Array("\(host).example".utf8)))))
        }
        // A single address is an entry.
        #expect(try ListText.hosts(bytes("0.0.0.0")).names(ip("0.0.0.0")))
    }

    static let faults: [(text: String, message: String)] = [
        ("a.example\nb example\n", "2: \"b example\" is not one host: write one on each line"),
        ("10.0.0.1 a.example", "1: \"10.0.0.1 a.example\" is not one host: write one on each line"),
        ("\n\nhttp://a.example", "3: \"http://a.example\" is not a host name, *.name or an address"),
        ("*", "1: \"*\" is not a host name, *.name or an address"),
        ("a..b", "1: \"a..b\" is not a host name, *.name or an address"),
        ("0.0.0.0 a/b", "1: \"a/b\" is not a host name, *.name or an address"),
        ("\u{1}", "1: \"?\" is not a host name, *.name or an address"),
    ]
    @Test(arguments: faults) func `a fault names the line`(_ text: String, _ message: String) {
        let fault = #expect(throws: ListText.Fault.self) { try ListText.hosts(Array(text.utf8)) }
        #expect(fault?.description == message)
    }

    @Test func `addresses and networks`() throws {
        let index = try ListText.addresses(bytes("10.0.0.0/8\nfd00::/8 # ours\n192.0.2.7\n"))
        #expect(index.count == 3 && index.contains(ip("10.1.2.3")) && index.contains(ip("fd12::1")))
        #expect(!index.contains(ip("192.0.2.8")))
        let fault = #expect(throws: ListText.Fault.self) { try ListText.addresses(bytes("10.0.0.0/8\n10.0.0.1/8")) }
        #expect(fault?.description == "2: \"10.0.0.1/8\" is not an address or a range such as 10.0.0.0/8")
    }

    @Test func `names of users`() throws {
        #expect(try ListText.names(bytes("ann\n bob smith \n# eve\nann\n")) == ["ann", "bob smith"])
        #expect(throws: ListText.Fault.self) { try ListText.names(bytes("a\u{7}")) }
    }
}
