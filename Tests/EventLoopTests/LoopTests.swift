import CAres
import CLarder
import EventLoop
import Glibc
import Testing

@Suite("Event loop: turns, inbox, clocks")
struct LoopTests {
    @Test func `jobs from another thread run in order on the loop's thread`() throws {
        let loop = try EventLoop()
        let inbox = loop.inbox
        let seen = Locked<[Int]>([])
        let thread = try startThread(name: "poster") {
            for number in 0..<1000 { inbox.post { seen.withLock { $0.append(number) } } }
            inbox.post { seen.withLock { $0.append(-1) } }
        }
        let last = Timer { loop.stop() }
        loop.timers.schedule(last, after: .seconds(20))
        func stopWhenSeen() {
            if seen.withLock({ $0.last == -1 }) { loop.stop() } else { loop.afterTurn(stopWhenSeen) }
        }
        loop.afterTurn(stopWhenSeen)
        loop.run()
        loop.timers.cancel(last)
        thread.join()
        #expect(seen.withLock { $0 } == Array(0..<1000) + [-1])
    }

    @Test func `a repeating timer calls until it is stopped, also from within its closure`() throws {
        let loop = try EventLoop()
        let repeating = RepeatingTimer(on: loop, every: .milliseconds(1))
        var calls = 0
        repeating.start {
            calls += 1
            if calls == 3 { repeating.stop() }
        }
        // Filed behind the others: a fourth call would come first.
        let last = Timer { loop.stop() }
        loop.timers.schedule(last, after: .seconds(1))
        loop.run()
        #expect(calls == 3)
    }

    @Test func `work after the turn runs once, and what it adds waits for the next turn`() throws {
        let loop = try EventLoop()
        var order: [String] = []
        loop.afterTurn {
            order.append("first")
            loop.afterTurn {
                order.append("next turn")
                loop.stop()
            }
            order.append("first done")
        }
        loop.afterTurn { order.append("second") }
        loop.run()
        #expect(order == ["first", "first done", "second", "next turn"])
    }

    @Test func `a job posted to a loop that is gone is dropped and released`() throws {
        final class Witness: Sendable {}
        weak var witness: Witness?
        let inbox: Inbox
        do {
            let loop = try EventLoop()
            inbox = loop.inbox
            let held = Witness()
            witness = held
            inbox.post { _ = held }
        }
        #expect(witness == nil)
        inbox.post { Issue.record("nobody is there to run it") }
    }

    @Test func `the clocks do not advance during a turn and agree with the system`() throws {
        let loop = try EventLoop()
        loop.afterTurn {
            let (now, wall) = (loop.now, loop.wallMicroseconds)
            let spinUntil = clock() + CLOCKS_PER_SEC / 50
            while clock() < spinUntil {}
            #expect(loop.now == now)
            #expect(loop.wallMicroseconds == wall)
            loop.stop()
        }
        let before = loop.now
        loop.run()
        #expect(loop.now > before)
        #expect(abs(loop.wallSeconds - Int64(time(nil))) <= 1)
        #expect(abs(loop.wallTicks - loop.wallMicroseconds * 1024 / 1_000_000) <= 1024)
        #expect(abs(readWallTicks() - loop.wallTicks) <= 1024)
        #expect(abs(loop.wallMilliseconds - loop.wallMicroseconds / 1000) <= 1000)
        #expect(abs(readWallMicroseconds() - loop.wallMicroseconds) <= 1_000_000)
    }
}

@Suite("Event loop: descriptors")
struct IOEventTests {
    /// A pipe and what was called for it.
    private final class Reader {
        var event = IOEvent()
        var calls = 0
        var isAdded: Bool { event.isAdded }
        var isAssigned: Bool { event.isAssigned }
        var onCall: (Reader) -> Void = { _ in }

        var context: UnsafeMutableRawPointer { unsafe Unmanaged.passUnretained(self).toOpaque() }

        static let callback: ReadinessCallback = { _, _, context in
            let reader = unsafe Unmanaged<Reader>.fromOpaque(context!).takeUnretainedValue()
            reader.calls += 1
            reader.onCall(reader)
        }
    }

    @Test func `interest is level-triggered and persists until removed`() throws {
        let loop = try EventLoop()
        let pair = try socketPair()
        let reader = Reader()
        unsafe reader.event.assign(loop, fd: pair.a.rawValue, .read, Reader.callback, reader.context)
        reader.event.add()
        reader.event.add()
        #expect(reader.isAdded)
        reader.onCall = { reader in
            guard reader.calls == 3 else { return }
            reader.event.remove()
            loop.stop()
        }
        sendAll(pair.b.rawValue, [1])
        loop.run()
        #expect(reader.calls == 3)
        #expect(!reader.isAdded)
        loop.afterTurn { loop.stop() }
        loop.run()
        #expect(reader.calls == 3)
    }

    @Test func `an event may be cleared from inside its own callback`() throws {
        let loop = try EventLoop()
        let pair = try socketPair()
        let writer = Reader()
        unsafe writer.event.assign(loop, fd: pair.a.rawValue, .write, Reader.callback, writer.context)
        writer.event.add()
        writer.onCall = { writer in
            writer.event.clear()
            loop.stop()
        }
        loop.run()
        #expect(writer.calls == 1)
        #expect(!writer.isAssigned)
    }
}
