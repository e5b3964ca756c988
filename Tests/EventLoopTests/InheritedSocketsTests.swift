import EventLoop
import Testing

@Suite("sd_listen_fds(3): sockets that the service manager passes")
struct InheritedSocketsTests {
    private static func read(_ pid: String?, _ count: String?, _ names: String? = nil) -> [String] {
        InheritedSockets.read(pid: pid, count: count, names: names, ownPID: 7).map { "\($0.descriptor) \($0.name)" }
    }

    @Test func `they are numbered from 3, and named in order`() {
        #expect(Self.read("7", "2", "proxy:other") == ["3 proxy", "4 other"])
        #expect(Self.read("7", "1") == ["3 unknown"])
        #expect(Self.read("7", "2", "proxy") == ["3 proxy", "4 unknown"])
    }

    static let strangers: [(pid: String?, count: String?)] = [
        ("8", "1"), ("", "1"), ("7", "0"), ("7", "-1"), ("7", "x"), ("7", "1025"), (nil, "1"), ("7", nil),
    ]

    @Test(arguments: strangers)
    func `what is meant for another process, or is no number, is nothing`(_ pid: String?, _ count: String?) {
        #expect(Self.read(pid, count).isEmpty)
    }

    @Test func `only a stream socket that listens is duplicated`() throws {
        let listener = try Sockets.listen(SocketAddress(v4: 0x7F00_0001, port: 0), reusePort: false, backlog: 1)
        func isDuplicated(_ fd: CInt) -> Bool {
            switch InheritedSockets.duplicate(.init(descriptor: fd, name: "a")) {
            case .some: true
            case nil: false
            }
        }
        #expect(isDuplicated(listener.rawValue))
        // A socket that does not listen.
        switch try Sockets.connect(try Sockets.localAddress(listener.rawValue)) {
        case .connected(let socket): #expect(!isDuplicated(socket.rawValue))
        case .inProgress(let socket): #expect(!isDuplicated(socket.rawValue))
        }
        #expect(!isDuplicated(-1))
    }
}
