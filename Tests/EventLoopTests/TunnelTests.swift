import CAres
import CLarder
import Glibc
import Testing
@testable import EventLoop

@Suite("RFC 9110 §9.3.6 CONNECT: the tunnel")
struct TunnelTests {
    /// A tunnel between two outside sockets: client ⇄ (a, b) ⇄ server.
    @safe private final class Fixture {
        let loop: EventLoop
        let pipes = PipePool()
        let client: Descriptor
        let server: Descriptor
        let relay: TunnelRelay
        private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 64)

        init(
            greeting: [UInt8] = [], initialAToB: [UInt8] = [], initialBToA: [UInt8] = [], idle: Duration = .seconds(20)
        ) throws {
            loop = try EventLoop()
            let left = try socketPair()
            let right = try socketPair()
            let (client, a) = left.parts()
            let (b, server) = right.parts()
            self.client = Descriptor(adopting: client)
            self.server = Descriptor(adopting: server)
            let ended = Box<TunnelEnd>()
            self.ended = ended
            relay = unsafe TunnelRelay(
                loop: loop, pipes: pipes, buffer: buffer, a: Descriptor(adopting: a), b: Descriptor(adopting: b),
                greeting: greeting, initialAToB: initialAToB, initialBToA: initialBToA, idle: idle
            ) { ended.value = $0 }
            relay.start()
        }
        let ended: Box<TunnelEnd>

        deinit { unsafe buffer.deallocate() }

        func runToEnd() -> TunnelEnd? {
            runLoop(loop) { [ended] in ended.value != nil }
            return ended.value
        }
    }
    private final class Box<T> { var value: T? }

    @Test func `bytes that were read before are sent first, and one side may end before the other`() throws {
        let tunnel = try Fixture(
            greeting: Array("200 ".utf8), initialAToB: Array("hel".utf8), initialBToA: Array("early ".utf8))
        let (client, server) = (tunnel.client.rawValue, tunnel.server.rawValue)
        let seen = Locked<[String]>([])
        let peers = try startThread(name: "peers") {
            sendAll(client, Array("lo".utf8))
            Sockets.shutdownWrite(client)
            let request = receive(server, 100)  // to the end: the half-close arrived
            sendAll(server, Array("answer".utf8))
            Sockets.shutdownWrite(server)
            let answer = receive(client, 100)
            seen.withLock { $0 = [String(decoding: request, as: UTF8.self), String(decoding: answer, as: UTF8.self)] }
        }
        #expect(tunnel.runToEnd() == .closed)
        peers.join()
        #expect(seen.withLock { $0 } == ["hello", "200 early answer"])
        #expect(tunnel.relay.aToB == 5)
        #expect(tunnel.relay.bToA == 12, "the greeting is not counted")
        #expect(tunnel.pipes.idleCount == 0, "a short tunnel needs no pipe")
    }

    @Test func `large amounts pass in both directions unchanged, and pipes are used again`() throws {
        let size = 8 << 20
        let tunnel = try Fixture()
        let (client, server) = (tunnel.client.rawValue, tunnel.server.rawValue)
        /// A block of prime length, over and over: a byte lost or swapped anywhere shows.
        func pattern(_ seed: Int) -> [UInt8] {
            let block = (0..<8191).map { UInt8(truncatingIfNeeded: $0 &* seed >> 3) }
            var bytes: [UInt8] = []
            while bytes.count < size { bytes += block }
            return Array(bytes.prefix(size))
        }
        let (up, down) = (pattern(31), pattern(57))
        let results = Locked<[Bool]>([])
        func sender(_ fd: CInt, _ bytes: [UInt8]) throws -> ThreadHandle {
            try startThread(name: "sender") {
                sendAll(fd, bytes)
                Sockets.shutdownWrite(fd)
            }
        }
        func receiver(_ fd: CInt, _ bytes: [UInt8]) throws -> ThreadHandle {
            try startThread(name: "receiver") {
                let isSame = receive(fd, size + 1) == bytes
                results.withLock { $0.append(isSame) }
            }
        }
        let a = try sender(client, up)
        let b = try sender(server, down)
        let c = try receiver(server, up)
        let d = try receiver(client, down)
        #expect(tunnel.runToEnd() == .closed)
        a.join()
        b.join()
        c.join()
        d.join()
        #expect(results.withLock { $0 } == [true, true])
        #expect(tunnel.relay.aToB == UInt64(size))
        #expect(tunnel.relay.bToA == UInt64(size))
        #expect((1...2).contains(tunnel.pipes.idleCount))
    }

    @Test func `a sink that does not read pauses its source without spinning`() throws {
        let tunnel = try Fixture()
        let client = tunnel.client.rawValue
        let chunk = [UInt8](repeating: 7, count: 65536)
        var (accepted, turnsAtRest, lastCount) = (0, 0, UInt64.max)
        // Feeds until nothing moves for a while: then both kernels' buffers and the pipe are full.
        runLoop(tunnel.loop) {
            if case .bytes(let sent) = unsafe chunk.withUnsafeBytes({ unsafe IO.send(client, $0) }) {
                accepted += sent
                turnsAtRest = 0
            } else {
                turnsAtRest = tunnel.relay.aToB == lastCount ? turnsAtRest + 1 : 0
            }
            lastCount = tunnel.relay.aToB
            return turnsAtRest > 1000
        }
        let pause = Timer { tunnel.loop.stop() }
        tunnel.loop.timers.schedule(pause, after: .milliseconds(100))
        func processorTime() -> Duration {
            var time = timespec()
            _ = unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        let before = processorTime()
        tunnel.loop.run()
        #expect(processorTime() - before < .milliseconds(20), "a blocked tunnel costs no processor time")
        #expect(UInt64(accepted) > tunnel.relay.aToB)
        tunnel.relay.cancel()
        #expect(tunnel.ended.value == .cancelled)
    }

    @Test func `a tunnel without traffic ends at its time limit`() throws {
        let tunnel = try Fixture(idle: .milliseconds(100))
        #expect(tunnel.runToEnd() == .idle)
        #expect(receive(tunnel.client.rawValue, 1) == [])
        #expect(receive(tunnel.server.rawValue, 1) == [])
    }

    // MARK: a side that fails

    /// Resets the connection while the descriptor stays its owner's: connecting to nowhere (AF_UNSPEC) does so.
    private static func reset(_ fd: CInt) {
        var nowhere = sockaddr()
        nowhere.sa_family = sa_family_t(AF_UNSPEC)
        _ = unsafe connect(fd, &nowhere, socklen_t(MemoryLayout<sockaddr>.size))
    }

    /// What reading says next.
    private static func next(_ fd: CInt) -> IOResult {
        wait(fd, for: POLLIN)
        var byte: UInt8 = 0
        return unsafe withUnsafeMutableBytes(of: &byte) { unsafe IO.receive(fd, into: $0) }
    }

    @Test(arguments: [TunnelSide.a, .b])
    func `a side that is reset resets the other, which gets what was sent before`(side: TunnelSide) throws {
        let tunnel = try Fixture()
        let ends = (tunnel.client.rawValue, tunnel.server.rawValue)
        let (failing, living) = side == .a ? ends : (ends.1, ends.0)
        let sent = (0..<32_768).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        sendAll(failing, sent)
        Self.reset(failing)
        #expect(tunnel.runToEnd() == .failed(side, errno: ECONNRESET))
        #expect(receive(living, sent.count) == sent)
        #expect(Self.next(living) == .failed(errno: ECONNRESET), "not an orderly end")
        #expect(tunnel.pipes.idleCount == 0)
    }

    @Test(arguments: [TunnelSide.a, .b])
    func `a reset after much that was spliced loses nothing that the tunnel has taken`(side: TunnelSide) throws {
        let tunnel = try Fixture()
        let ends = (tunnel.client.rawValue, tunnel.server.rawValue)
        let (failing, living) = side == .a ? ends : (ends.1, ends.0)
        let seen = Locked<(count: Int, end: IOResult?)>((0, nil))
        let sender = try startThread(name: "sender") {
            sendAll(failing, [UInt8](repeating: 9, count: 4 << 20))
            Self.reset(failing)
        }
        let receiver = try startThread(name: "receiver") {
            let count = receive(living, 5 << 20).count
            seen.withLock { $0.count = count }
        }
        #expect(tunnel.runToEnd() == .failed(side, errno: ECONNRESET))
        sender.join()
        receiver.join()
        let moved = side == .a ? tunnel.relay.aToB : tunnel.relay.bToA
        #expect(seen.withLock { UInt64($0.count) } == moved)
        #expect(moved > TunnelFlow.copiedMax, "it was spliced")
    }

    @Test(arguments: [TunnelSide.a, .b])
    func `a side that is reset after its last byte resets the other when bytes come for it`(side: TunnelSide) throws {
        let tunnel = try Fixture()
        let ends = (tunnel.client.rawValue, tunnel.server.rawValue)
        let (failing, living) = side == .a ? ends : (ends.1, ends.0)
        Sockets.shutdownWrite(failing)
        runLoop(tunnel.loop) { Self.isReadable(living) }
        #expect(Self.next(living) == .closed, "the half-close has arrived")
        Self.reset(failing)
        let chunk = [UInt8](repeating: 1, count: 1000)
        runLoop(tunnel.loop) {
            _ = unsafe chunk.withUnsafeBytes { unsafe IO.send(living, $0) }
            return tunnel.ended.value != nil
        }
        guard case .failed(side, _) = tunnel.ended.value else {
            Issue.record("\(String(describing: tunnel.ended.value))")
            return
        }
        let sent = unsafe chunk.withUnsafeBytes { unsafe IO.send(living, $0) }
        #expect(sent == .closed || sent == .failed(errno: ECONNRESET), "\(sent)")
    }

    private static func isReadable(_ fd: CInt) -> Bool {
        var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, 0) > 0
    }

    @Test func `a tunnel that is cancelled resets both sides, and one that ends in order neither`() throws {
        let cancelled = try Fixture()
        cancelled.relay.cancel()
        #expect(Self.next(cancelled.client.rawValue) == .failed(errno: ECONNRESET))
        #expect(Self.next(cancelled.server.rawValue) == .failed(errno: ECONNRESET))
        let ended = try Fixture()
        Sockets.shutdownWrite(ended.client.rawValue)
        Sockets.shutdownWrite(ended.server.rawValue)
        #expect(ended.runToEnd() == .closed)
        #expect(Self.next(ended.client.rawValue) == .closed)
        #expect(Self.next(ended.server.rawValue) == .closed)
    }

    static let ends: [(end: TunnelEnd, isOwed: Bool, resets: (a: Bool, b: Bool))] = [
        (.closed, false, (false, false)), (.idle, false, (false, false)), (.idle, true, (true, true)),
        (.failed(.a, errno: ECONNRESET), false, (false, true)), (.failed(.b, errno: EPIPE), true, (true, false)),
        (.cancelled, false, (true, true)), (.refused, false, (false, true)), (.refused, true, (false, true)),
    ]

    @Test(arguments: ends) func `whoever may lack bytes is reset`(
        row: (end: TunnelEnd, isOwed: Bool, resets: (a: Bool, b: Bool))
    ) {
        #expect(row.end.resets(.a, isOwed: row.isOwed) == row.resets.a)
        #expect(row.end.resets(.b, isOwed: row.isOwed) == row.resets.b)
    }

    @Test func `a watched descriptor is taken over with its event`() throws {
        let loop = try EventLoop()
        let left = try socketPair()
        let right = try socketPair()
        let (client, a) = left.parts()
        let (b, server) = right.parts()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65536, alignment: 64)
        defer { unsafe buffer.deallocate() }
        var event = IOEvent()
        unsafe event.assign(
            loop, fd: a, .read, { _, _, _ in Issue.record("the old owner is called") }, buffer.baseAddress!)
        event.add()
        let ended = Box<TunnelEnd>()
        let relay = unsafe TunnelRelay(
            loop: loop, pipes: PipePool(), buffer: buffer, a: Descriptor(adopting: a), aReadable: event,
            b: Descriptor(adopting: b), idle: .seconds(10)
        ) { ended.value = $0 }
        relay.start()
        sendAll(client, [1])
        close(client)
        runLoop(loop) { relay.aToB == 1 }
        #expect(receive(server, 1) == [1])
        close(server)
        runLoop(loop) { ended.value != nil }
        #expect(ended.value == .closed)
    }
}
