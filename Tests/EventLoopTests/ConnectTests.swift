@testable import EventLoop
import CAres
import CLarder
import Glibc
import Testing

@Suite("RFC 8305 Happy Eyeballs")
struct ConnectTests {
    /// A listener whose queue is full: the kernel drops what comes, and connecting to it hangs.
    private final class Blackhole {
        let listener: Descriptor
        let address: SocketAddress
        private var fill: [ConnectKeeper] = []
        private final class ConnectKeeper {
            let descriptor: Descriptor
            init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
        }

        init(_ host: UInt32 = 0x7f00_0001) throws {
            let listener = try Sockets.listen(SocketAddress(v4: host, port: 0), reusePort: false, backlog: 0)
            address = try Sockets.localAddress(listener.rawValue)
            self.listener = listener
            for _ in 0..<4 { fill.append(ConnectKeeper(descriptor(try Sockets.connect(address)))) }
        }
    }

    private func refusing() throws -> SocketAddress {
        let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 1)
        return try Sockets.localAddress(listener.rawValue)
    }

    /// What an attempt came to: the address connected, or why not.
    private func outcome(
        _ addresses: [SocketAddress], delay: Duration = .milliseconds(50), timeout: Duration = .seconds(10),
        history: ConnectHistory = ConnectHistory()
    ) throws -> Result<SocketAddress, ConnectError> {
        let loop = try EventLoop()
        var result: Result<SocketAddress, ConnectError>?
        _ = ConnectAttempt.start(
            addresses, loop: loop, attemptDelay: delay, by: loop.now.advanced(by: timeout), history: history
        ) { outcome in
            switch consume outcome {
            case .connected(_, let address): result = .success(address)
            case .failed(let error): result = .failure(error)
            }
        }
        #expect(result == nil, "never from inside start")
        runLoop(loop) { result != nil }
        return try #require(result)
    }

    @Test func `one address that answers is connected to`() throws {
        let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 1)
        let address = try Sockets.localAddress(listener.rawValue)
        #expect(try outcome([address]) == .success(address))
    }

    @Test func `a failure is reported with its reason`() throws {
        #expect(try outcome([]) == .failure(.noAddress))
        #expect(try outcome([refusing()]) == .failure(.refused))
        let hole = try Blackhole()
        #expect(try outcome([hole.address], timeout: .milliseconds(100)) == .failure(.timedOut))
        withExtendedLifetime(hole) {}
    }

    @Test func `the next address is tried at once after a failure`() throws {
        let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 1)
        let address = try Sockets.localAddress(listener.rawValue)
        #expect(try outcome([refusing(), refusing(), address], delay: .seconds(60)) == .success(address))
    }

    @Test func `the next address is tried after the delay, and the first to connect wins`() throws {
        let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 1)
        let address = try Sockets.localAddress(listener.rawValue)
        let hole = try Blackhole()
        #expect(try outcome([hole.address, address]) == .success(address))
        withExtendedLifetime(hole) {}
    }

    @Test func `an address that let others overtake it is tried last the next time`() throws {
        let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 8)
        let address = try Sockets.localAddress(listener.rawValue)
        let hole = try Blackhole()
        let history = ConnectHistory()
        #expect(try outcome([hole.address, address], history: history) == .success(address))
        // With this delay, only an attempt that begins with the second address can end in time.
        #expect(try outcome([hole.address, address], delay: .seconds(60), history: history) == .success(address))
        withExtendedLifetime(hole) {}
    }

    @Test func `refusals and time-outs are remembered, a success is not`() throws {
        let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 8)
        let address = try Sockets.localAddress(listener.rawValue)
        let hole = try Blackhole()
        let history = ConnectHistory()
        #expect(try outcome([hole.address], timeout: .milliseconds(100), history: history) == .failure(.timedOut))
        #expect(try outcome([refusing(), address], history: history) == .success(address))
        #expect(history.failed.count == 2)
        withExtendedLifetime(hole) {}
    }

    @Test func `a cancelled attempt does not call back and closes its sockets`() throws {
        let loop = try EventLoop()
        let hole = try Blackhole()
        weak var watched: ConnectAttempt?
        do {
            let attempt = ConnectAttempt.start(
                [hole.address, hole.address], loop: loop, attemptDelay: .milliseconds(10),
                by: loop.now.advanced(by: .seconds(1)),
                history: ConnectHistory()
            ) { _ in Issue.record("cancelled") }
            watched = attempt
            attempt.cancel()
        }
        withExtendedLifetime(hole) {}
        #expect(watched == nil)
        #expect(loop.timers.count == 0)
        let listener = try Sockets.listen(loopback(), reusePort: false, backlog: 1)
        let sure = ConnectAttempt.start(
            [try Sockets.localAddress(listener.rawValue)], loop: loop, attemptDelay: .seconds(1),
            by: loop.now.advanced(by: .seconds(1)),
            history: ConnectHistory()
        ) { _ in Issue.record("cancelled after it had connected") }
        sure.cancel()
        loop.afterTurn { loop.stop() }
        loop.run()
    }

    @Test func `families alternate, beginning with that of the first address`() {
        func v4(_ number: UInt32) -> SocketAddress { SocketAddress(v4: number, port: 1) }
        func v6(_ number: UInt64) -> SocketAddress { SocketAddress(v6: 0, low: number, port: 1) }
        #expect(
            ConnectAttempt.interleaved([v6(1), v6(2), v6(3), v4(1), v4(2)]) == [v6(1), v4(1), v6(2), v4(2), v6(3)])
        #expect(ConnectAttempt.interleaved([v4(1), v4(2), v6(1)]) == [v4(1), v6(1), v4(2)])
        #expect(ConnectAttempt.interleaved([v4(2), v4(1)]) == [v4(2), v4(1)])
    }
}
