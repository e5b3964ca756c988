@testable import EventLoop
import CAres
import CLarder
import Glibc
import Testing

@Suite("Which name servers are asked")
struct ResolverServersTests {
    private func outcome(_ resolver: Resolver, _ loop: EventLoop, _ name: String) throws -> Resolver.Outcome {
        var result: Resolver.Outcome?
        resolver.resolve(name, by: .never) { result = $0 }
        runLoop(loop) { result != nil }
        return try #require(result)
    }

    private func answering(_ loop: EventLoop, _ last: UInt8) throws -> ScriptedNameServer {
        try ScriptedNameServer(loop) { _, _ in .addresses([[192, 0, 2, last]], ttl: 60) }
    }

    private func address(_ last: UInt32) -> [SocketAddress] { [SocketAddress(v4: 0xc000_0200 + last, port: 0)] }

    @Test func `the longest suffix chooses the servers, others get the usual ones`() throws {
        let loop = try EventLoop()
        let (usual, corp, lab) = (try answering(loop, 1), try answering(loop, 2), try answering(loop, 3))
        var options = usual.options
        options.suffixes = [
            .init(suffix: "corp.test", servers: ["127.0.0.1:\(corp.port)"]),
            .init(suffix: "lab.corp.test", servers: ["127.0.0.1:\(lab.port)"]),
        ]
        let resolver = try Resolver(loop: loop, options: options)
        let expected: [(String, UInt32)] = [
            ("one.test", 1), ("corp.test", 2), ("a.b.corp.test", 2), ("lab.corp.test", 3), ("a.lab.corp.test", 3),
            ("notcorp.test", 1), ("absolute.corp.test.", 2),
        ]
        for (name, server) in expected {
            #expect(try outcome(resolver, loop, name).get().addresses == address(server), "\(name)")
        }
    }

    /// The name servers of a channel, as c-ares has read them.
    private func servers(of channel: ResolverChannel) -> [UInt32] {
        var list: UnsafeMutablePointer<ares_addr_node>?
        guard unsafe ares_get_servers(channel.raw, &list) == 0 else { return [] }
        defer { unsafe ares_free_data(list) }
        var result: [UInt32] = []
        var node = unsafe list
        while let current = unsafe node {
            result.append(UInt32(bigEndian: unsafe current.pointee.addr.addr4.s_addr))
            unsafe node = unsafe current.pointee.next
        }
        return result
    }

    @Test func `a changed resolv.conf is seen, and queries under way keep the old channel`() throws {
        let loop = try EventLoop()
        let file = ScratchFile("nameserver 127.0.0.2\n")
        var options = Resolver.Options()
        (options.resolvConf, options.fileCheckPause) = (file.path, .zero)
        var channels = try ResolverChannels(loop, options)
        weak var old: ResolverChannel?
        do {
            let channel = try channels.channel(for: "one.test")
            #expect(servers(of: channel) == [0x7f00_0002])
            #expect(try channels.channel(for: "two.test") === channel, "the file has not changed")
            channel.openCount = 1
            old = channel
        }
        file.write("nameserver 127.0.0.3\nnameserver 127.0.0.4\n")
        #expect(servers(of: try channels.channel(for: "one.test")) == [0x7f00_0003, 0x7f00_0004])
        channels.clean()
        #expect(old != nil, "a query is under way")
        old?.openCount = 0
        channels.clean()
        #expect(old == nil)
    }

    @Test func `with servers of its own, the resolver does not follow resolv.conf`() throws {
        let loop = try EventLoop()
        let (own, other) = (try answering(loop, 1), try answering(loop, 2))
        let file = ScratchFile("nameserver 127.0.0.1:9\n")
        var options = own.options
        (options.resolvConf, options.fileCheckPause) = (file.path, .zero)
        let resolver = try Resolver(loop: loop, options: options)
        file.write("nameserver 127.0.0.1:\(other.port)\n")
        #expect(try outcome(resolver, loop, "one.test").get().addresses == address(1))
    }

    @Test func `the search list of resolv.conf does not apply, and the final dot makes no difference`() throws {
        let loop = try EventLoop()
        let server = try ScriptedNameServer(loop) { name, _ in
            name == "foo.corp.test" ? .addresses([[192, 0, 2, 1]], ttl: 60) : .noSuchName
        }
        let file = ScratchFile("search corp.test\noptions ndots:5\n")
        var options = server.options
        options.resolvConf = file.path
        let resolver = try Resolver(loop: loop, options: options)
        #expect(try outcome(resolver, loop, "foo") == .failure(.notFound))
        #expect(Set(server.udpQuestions) == ["foo 1", "foo 28"])
        #expect(try outcome(resolver, loop, "foo.") == .failure(.notFound))
        #expect(server.udpQuestions.count == 2, "the same name")
    }

    @Test func `a missing AAAA record does not hide A records, nor the reverse`() throws {
        for missing: UInt16 in [1, 28] {
            let loop = try EventLoop()
            let server = try ScriptedNameServer(loop) { _, type in
                type == missing
                    ? .addresses([], ttl: 60)
                    : .addresses([[192, 0, 2, 1], [0x20, 1] + [UInt8](repeating: 0, count: 14)], ttl: 60)
            }
            let resolver = try Resolver(loop: loop, options: server.options)
            #expect(try outcome(resolver, loop, "one.test").get().addresses.count == 1)
        }
    }
}
