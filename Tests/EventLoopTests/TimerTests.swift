import EventLoop
import Testing

@Suite("Event loop: time limits")
struct TimerTests {
    /// A subclass in another module, as connections are.
    private final class Limit: TimedObject {
        let onFire: () -> Void
        init(_ onFire: @escaping () -> Void) { self.onFire = onFire }
        override func timerFired() { onFire() }
    }

    @Test func `limits fire in order, never early, and not when cancelled`() throws {
        let loop = try EventLoop()
        let start = loop.now
        var fired: [(name: String, after: Duration)] = []
        func limit(_ name: String) -> Limit { Limit { fired.append((name, loop.now.duration(since: start))) } }
        let (short, long, cancelled) = (limit("short"), limit("long"), limit("cancelled"))
        let end = Timer { loop.stop() }
        loop.timers.schedule(long, after: .milliseconds(250))
        loop.timers.schedule(short, after: .milliseconds(50))
        loop.timers.schedule(cancelled, after: .milliseconds(100))
        loop.timers.schedule(end, after: .milliseconds(300))
        loop.timers.cancel(cancelled)
        loop.run()
        #expect(fired.map(\.name) == ["short", "long"])
        #expect(fired.first.map { $0.after >= .milliseconds(50) } == true)
        #expect(fired.last.map { $0.after >= .milliseconds(250) } == true)
        #expect(short.deadline == nil)
    }

    @Test func `a limit fires that is set when none was left, at once or after a while`() throws {
        let loop = try EventLoop()
        let cancelled = Limit {}
        for pause in [Duration.zero, .milliseconds(250)] {
            loop.timers.schedule(cancelled, after: .milliseconds(150))
            loop.timers.cancel(cancelled)
            let wait = PreciseTimer(loop) { loop.stop() }
            wait.start(at: loop.now.advanced(by: pause))
            loop.run()
            let start = loop.now
            var after: Duration?
            let limit = Limit {
                after = loop.now.duration(since: start)
                loop.stop()
            }
            loop.timers.schedule(limit, after: .milliseconds(150))
            loop.run()
            #expect(try #require(after) >= .milliseconds(150))
        }
    }

    @Test func `a limit pushed back fires at its last deadline, one brought forward at its new one`() throws {
        let loop = try EventLoop()
        let start = loop.now
        var later: Duration?
        let pushed = Limit {
            later = loop.now.duration(since: start)
            loop.stop()
        }
        var sooner: Duration?
        let brought = Limit { sooner = loop.now.duration(since: start) }
        loop.timers.schedule(pushed, after: .milliseconds(50))
        loop.timers.schedule(pushed, after: .milliseconds(400))
        loop.timers.schedule(brought, after: .seconds(3600))
        loop.timers.schedule(brought, after: .milliseconds(50))
        loop.run()
        #expect(try #require(later) >= .milliseconds(400))
        #expect(try #require(sooner) < .milliseconds(400))
    }

    @Test func `a firing limit may cancel another that is due, and schedule itself again`() throws {
        let loop = try EventLoop()
        var log: [String] = []
        var second: Limit?
        var first: Limit?
        func fire(_ name: String, cancels other: Limit?) {
            log.append(name)
            if let other { loop.timers.cancel(other) }
            if log.count == 2 { loop.stop() }
        }
        let a = Limit {
            fire("a", cancels: second)
            if log.count < 2, let first { loop.timers.schedule(first, after: .milliseconds(10)) }
        }
        let b = Limit {
            fire("b", cancels: first)
            if log.count < 2, let second { loop.timers.schedule(second, after: .milliseconds(10)) }
        }
        (first, second) = (a, b)
        loop.timers.schedule(a, after: .milliseconds(10))
        loop.timers.schedule(b, after: .milliseconds(10))
        loop.run()
        #expect(log == ["a", "a"] || log == ["b", "b"])
        (first, second) = (nil, nil)
    }

    @Test func `time arithmetic clamps instead of overflowing`() {
        let time = MonotonicTime(nanoseconds: 5)
        #expect(time.advanced(by: .seconds(Int64.max)).nanoseconds > UInt64(Int64.max))
        #expect(MonotonicTime(nanoseconds: .max).advanced(by: .seconds(1)).nanoseconds == .max)
        #expect(time.advanced(by: .seconds(-1)).nanoseconds == 0)
        #expect(time.duration(since: MonotonicTime(nanoseconds: 7)) == .nanoseconds(-2))
    }
}
