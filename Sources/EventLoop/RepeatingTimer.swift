/// Calls a closure on the thread of a loop, again and again with a pause in between.
package final class RepeatingTimer {
    private let timers: TimerWheel
    private let pause: Duration
    private var timer: Timer?

    package init(on loop: EventLoop, every pause: Duration) {
        timers = loop.timers
        self.pause = pause
    }

    /// The first call comes after the first pause.
    package func start(_ body: @escaping () -> Void) {
        precondition(timer == nil, "a timer starts once")
        let timer = Timer { [unowned self] in
            body()
            schedule()
        }
        self.timer = timer
        schedule()
    }

    /// May be called from within the closure.
    package func stop() {
        if let timer { timers.cancel(timer) }
        timer = nil
    }

    private func schedule() { if let timer { timers.schedule(timer, after: pause) } }
}
