import EventLoop
import Limiting
import Message
import Transaction

/// Holds one client to the minimum rate in one direction. It is made when an answer waits for room in the socket for the first time, or
/// when content of a request is awaited, so clients that are fast enough have none.
final class ProgressWatch: TimedObject {
    enum Direction { case download, upload }

    private unowned let client: ClientConnection
    private let direction: Direction
    var meter: ProgressMeter
    /// Whether the kernel does not say what has arrived, as for Unix sockets. What went to the socket counts then, and the time in which the
    /// socket had no room.
    let countsWritten: Bool
    /// Bytes that went to the socket since the watch began.
    var written: UInt64 = 0

    init(_ client: ClientConnection, _ direction: Direction, _ meter: ProgressMeter, countsWritten: Bool = false) {
        self.client = client
        self.direction = direction
        self.meter = meter
        self.countsWritten = countsWritten
    }

    override func timerFired() {
        switch direction {
        case .download: client.judgeReading(self)
        case .upload: client.judgeSending(self)
        }
    }
}

/// Minimum rates (`limits.download_rate_min`, `limits.upload_rate_min`).
extension ClientConnection {
    private var nanoseconds: UInt64 { worker.loop.now.nanoseconds }

    private func terms(_ rate: UInt64?) -> ProgressMeter.Terms? {
        rate.map {
            ProgressMeter.Terms(
                rate: $0, window: UInt64(clamping: worker.snapshot.limits.rateWindow.wholeNanoseconds))
        }
    }

    // MARK: a client that reads

    /// The answer waits for room in the socket.
    func watchReading() {
        if let readingWatch { return readingWatch.meter.resume(now: nanoseconds) }
        guard let terms = terms(worker.snapshot.limits.downloadRateMin) else { return }
        let delivered = unsafe transport?.delivered
        let watch = ProgressWatch(
            self, .download, ProgressMeter(terms, moved: delivered?.acknowledged ?? 0, now: nanoseconds),
            countsWritten: delivered == nil)
        readingWatch = watch
        worker.timers.schedule(watch, afterNanoseconds: terms.window)
    }

    /// The socket has room again.
    func noteRoom() {
        guard let readingWatch, readingWatch.countsWritten else { return }
        readingWatch.meter.pause(now: nanoseconds)
    }

    /// Looks at what the client has taken. The watch goes on from answer to answer, so many short ones are no way round it, and ends when
    /// nothing waits for the client any more.
    fileprivate func judgeReading(_ watch: ProgressWatch) {
        guard phase == .answering || phase == .idle else { return }
        let delivered = watch.countsWritten ? nil : unsafe transport?.delivered
        // While there is more to send than the socket accepts, the client is asked for all that the rate says.
        let waiting = writeEvent.isAdded ? .max : delivered?.waiting ?? 0
        switch watch.meter.judge(
            moved: delivered?.acknowledged ?? watch.written, waiting: waiting, now: nanoseconds)
        {
        case .tooSlow:
            worker.counters.add(.timeouts)
            abort(.clientTooSlow)
        case .undecided(let rest):
            schedule(watch, after: rest)
        case .passed:
            if phase == .idle, waiting == 0 { return endReadingWatch() }
            schedule(watch, after: watch.meter.terms.window)
        }
    }

    /// While a meter is paused, nobody knows when its window will be over.
    private func schedule(_ watch: ProgressWatch, after rest: UInt64) {
        worker.timers.schedule(watch, afterNanoseconds: watch.meter.isPaused ? watch.meter.terms.window : rest)
    }

    func endReadingWatch() {
        guard let readingWatch else { return }
        worker.timers.cancel(readingWatch)
        self.readingWatch = nil
    }

    // MARK: a client that sends

    /// Whether the next bytes of the request's content are the client's to send, and nothing here keeps it from sending them.
    private var isContentAwaited: Bool { exchange?.owesBody == true && readEvent.isAdded && !hasInputEnded }

    /// What is awaited of the client may have changed: content was asked for, or reading from the client has paused or goes on.
    func noteContentAwaited() {
        guard phase == .answering else { return endSendingWatch() }
        if let sendingWatch {
            let now = nanoseconds
            return isContentAwaited ? sendingWatch.meter.resume(now: now) : sendingWatch.meter.pause(now: now)
        }
        guard isContentAwaited, let body = exchange?.stream.body,
            let terms = terms(worker.snapshot.limits.uploadRateMin)
        else { return }
        let watch = ProgressWatch(
            self, .upload, ProgressMeter(terms, moved: UInt64(body.contentBytes), now: nanoseconds))
        sendingWatch = watch
        worker.timers.schedule(watch, afterNanoseconds: terms.window)
    }

    fileprivate func judgeSending(_ watch: ProgressWatch) {
        // What has arrived counts, even if this thread was too busy to read it.
        if isContentAwaited { onReadable() }
        guard phase == .answering, sendingWatch === watch, let body = exchange?.stream.body, !body.isWhole else {
            if sendingWatch === watch { endSendingWatch() }
            return
        }
        switch watch.meter.judge(moved: UInt64(body.contentBytes), now: nanoseconds) {
        case .undecided(let rest): schedule(watch, after: rest)
        case .passed: schedule(watch, after: watch.meter.terms.window)
        case .tooSlow:
            worker.counters.add(.timeouts)
            endSendingWatch()
            contentIsLate(.bodyTooSlow)
        }
    }

    func endSendingWatch() {
        guard let sendingWatch else { return }
        worker.timers.cancel(sendingWatch)
        self.sendingWatch = nil
    }

    /// The content of a request comes too slowly, or no more. The answer is 408 if none has begun.
    func contentIsLate(_ reason: CloseReason) {
        guard let exchange, exchange.stream.isAwaiting else { return abort(reason) }
        closing = reason
        exchange.requestBodyTimedOut()
    }
}
