import EventLoop
import Synchronization

/// An object that was removed, as the drop record and the book need to know it.
struct Removal: Sendable {
    var id: ObjectID
    var key: [UInt8]
    var segment: UInt32
    /// It has a file of its own, which is deleted after the book has forgotten the object.
    var isLarge: Bool
    /// The book has the object, or a change that puts it there is recorded already.
    var isInBook: Bool
}

enum WriterJob: Sendable {
    /// `length` is what the record takes in its file.
    case object(PackedObject, length: UInt64)
    case drop(Removal)
    /// Drop records that the reclaimer could not have written at once.
    case owe([DroppedObject])
    case renew(ObjectID, hash: UInt64, key: [UInt8], ObjectAttributes, head: [UInt8], serial: UInt64)
    case makeLarge(LargeObject)
    case block(LargeObject, Int, any BodyBytes, offset: Int, then: @Sendable (Bool) -> Void)
    /// All blocks of an object that grew are written, or wait before this job.
    case finishLarge(LargeObject, length: Int, then: @Sendable (Bool) -> Void)
    /// An object that grows is given up.
    case abandonLarge(LargeObject)
    /// A block turned out to be damaged, so the object is no longer complete.
    case lostBlock(LargeObject)
    /// Called when everything before it is written.
    case call(@Sendable () -> Void)
    case move([MovedRecord], room: UInt64, done: @Sendable (Bool) -> Void)
    case carry([DroppedObject], room: UInt64, done: @Sendable (Bool) -> Void)
}

/// The jobs that wait for the writer, bounded by bytes. Jobs of the reclaimer come first, and overtake jobs that wait for the
/// space it is about to free.
///
/// The writer sleeps in two ways. After a turn it naps for a short time: whoever adds a job need not wake it, which saves a
/// system call. If a nap brings nothing it sleeps, and the next job wakes it.
///
/// Threads: any thread adds jobs; only the writer calls `take`, `done` and `finish`.
final class WriterQueue: Sendable {
    enum Taken: Sendable {
        case jobs(urgent: [WriterJob], [WriterJob], bytes: Int)
        /// The queue is closed and empty, or abandoned.
        case end
    }
    /// Any job ends a sleep. Only an urgent one, or enough bytes, ends a nap. Whoever ends either sets `awake`, so that the next
    /// one does not signal again.
    private enum Sleep { case awake, nap, sleep }
    private enum Life { case open, closing, abandoned, ended }
    private struct State {
        var jobs: [WriterJob] = []
        var urgent: [WriterJob] = []
        /// The bytes of `jobs`.
        var jobBytes = 0
        /// These, and the bytes of the jobs that the writer took and has not finished.
        var bytes = 0
        var sleep = Sleep.awake
        var life = Life.open
        /// Files were deleted since the last look: jobs that wait for space should try again.
        var isSpaceSignalled = false
        /// More bytes are refused.
        var bytesMax: Int
        /// Called when less than half of that waits again, or when the queue ends.
        var waiters: [@Sendable () -> Void] = []

        var level: Level {
            if bytes >= bytesMax { return .full }
            return bytes >= bytesMax / 2 ? .half : .low
        }

        /// Those who wait for a lower level, if it is reached.
        mutating func takeWaiters() -> [@Sendable () -> Void] {
            guard level == .low || life != .open, !waiters.isEmpty else { return [] }
            defer { waiters = [] }
            return waiters
        }
    }
    /// How much waits, in halves of what may wait.
    private enum Level: UInt8 { case low, half, full }
    private let state: Locked<State>
    /// The level. It is written under the lock and read without it, because hits read it.
    private let levelNow = Atomic(Level.low.rawValue)
    /// When the level last rose from low, or the writer wrote something at a higher level: nanoseconds of the monotonic clock.
    private let progressAt: Atomic<UInt64>
    private let wake = CountingSemaphore()
    private let wakeBytes: Int
    private let nap: Duration

    init(bytesMax: Int, wakeBytes: Int, nap: Duration) {
        precondition(bytesMax > 0 && wakeBytes >= 0 && nap >= .zero, "a queue has space, and bounds are not negative")
        state = Locked(State(bytesMax: bytesMax))
        progressAt = Atomic(MonotonicTime.read().nanoseconds)
        self.wakeBytes = wakeBytes
        self.nap = nap
    }

    var waitingBytes: Int { state.withLock { $0.bytes } }
    /// Whether at least half of what may wait is waiting.
    var isHalfFull: Bool { levelNow.load(ordering: .relaxed) != Level.low.rawValue }
    /// Whether a job that counts against the bound would be refused.
    var isFull: Bool { levelNow.load(ordering: .relaxed) == Level.full.rawValue }

    private func noteLevel(_ state: State) {
        let level = state.level
        let wasLow = !isHalfFull
        levelNow.store(level.rawValue, ordering: .relaxed)
        // Until now the writer kept up.
        if wasLow { noteProgress() }
    }

    /// The writer has written something.
    func noteProgress() {
        if isHalfFull { progressAt.store(MonotonicTime.read().nanoseconds, ordering: .relaxed) }
    }

    /// Whether at least half of what may wait is waiting, and nothing was written for `time`.
    func isStuck(for time: Duration) -> Bool {
        guard isHalfFull else { return false }
        let last = MonotonicTime(nanoseconds: progressAt.load(ordering: .relaxed))
        return MonotonicTime.read().duration(since: last) >= time
    }

    /// Calls `call` once when less than half of what may wait is waiting, or when the queue ends: at once if that is so already.
    func whenLow(_ call: @escaping @Sendable () -> Void) {
        let isDue = state.withLock { state in
            if state.level == .low || state.life != .open { return true }
            state.waiters.append(call)
            return false
        }
        if isDue { call() }
    }

    /// Another bound. What waits already stays.
    func setBound(_ bytesMax: Int) {
        precondition(bytesMax > 0, "a queue has space")
        let waiters = state.withLock { state in
            state.bytesMax = bytesMax
            noteLevel(state)
            return state.takeWaiters()
        }
        for call in waiters { call() }
    }

    /// - Parameters:
    ///   - bytes: memory that the job holds until it is done.
    ///   - isBounded: whether the job is refused when too much waits.
    ///   - isUrgent: whether the job ends a nap.
    /// - Returns: false if too much waits or the store is closed.
    func put(_ job: WriterJob, bytes: Int = 0, isBounded: Bool = false, isUrgent: Bool = false) -> Bool {
        precondition(bytes >= 0, "a job holds no negative number of bytes")
        var mustWake = false
        let isTaken = state.withLock { state in
            guard state.life == .open, !isBounded || state.bytes + bytes <= state.bytesMax else { return false }
            state.jobs.append(job)
            state.bytes += bytes
            state.jobBytes += bytes
            precondition(state.bytes >= state.jobBytes, "the bytes of the jobs count against the bound")
            noteLevel(state)
            let isEnough = isUrgent || state.jobBytes >= wakeBytes
            mustWake = state.sleep == .sleep || (state.sleep == .nap && isEnough)
            if mustWake { state.sleep = .awake }
            return true
        }
        if mustWake { wake.signal() }
        return isTaken
    }

    /// Adds a job of the reclaimer. Returns false if the store is closed.
    func putUrgent(_ job: WriterJob) -> Bool {
        var mustWake = false
        let isTaken = state.withLock { state in
            guard state.life == .open || state.life == .closing else { return false }
            state.urgent.append(job)
            mustWake = state.sleep != .awake
            state.sleep = .awake
            return true
        }
        if mustWake { wake.signal() }
        return isTaken
    }

    /// Tells the writer that there may be space now.
    func signalSpace() {
        let mustWake = state.withLock { state in
            // Noted also for a writer that is awake: it may look at the ledger now and nap afterwards.
            state.isSpaceSignalled = true
            guard state.sleep != .awake else { return false }
            state.sleep = .awake
            return true
        }
        if mustWake { wake.signal() }
    }

    /// The writer performs what waits, then ends.
    func close() { end(.closing) }

    /// The writer ends, and nothing that waits is performed.
    func abandon() { end(.abandoned) }

    private func end(_ life: Life) {
        let waiters = state.withLock { state in
            state.life = life
            state.sleep = .awake
            return state.takeWaiters()
        }
        wake.signal()
        for call in waiters { call() }
    }

    var isAbandoned: Bool { state.withLock { $0.life == .abandoned } }

    // MARK: the writer's side

    /// Closes the queue for good. Returns the jobs that nobody will perform.
    func finish() -> [WriterJob] {
        state.withLock { state in
            precondition(state.life != .open, "a queue is closed before it ends")
            state.life = .ended
            defer {
                state.urgent = []
                state.jobs = []
            }
            return state.urgent + state.jobs
        }
    }

    /// Jobs that were taken are done: gives their bytes back to the bound.
    func done(_ bytes: Int) {
        let waiters = state.withLock { state in
            state.bytes -= bytes
            precondition(bytes >= 0 && state.bytes >= state.jobBytes, "only what was taken is done")
            noteLevel(state)
            return state.takeWaiters()
        }
        for call in waiters { call() }
    }

    /// Takes all jobs. Sleeps until there is one.
    /// - Parameter timeout: returns without a job after this time, or after `signalSpace`. Nil: only returns with a job.
    func take(within timeout: Duration? = nil) -> Taken {
        if let timeout {
            napUntilSpace(timeout)
            return takeNow() ?? .jobs(urgent: [], [], bytes: 0)
        }
        sleep(.nap)
        while true {
            if let taken = takeNow() { return taken }
            sleep(.sleep)
        }
    }

    private func takeNow() -> Taken? {
        state.withLock { state in
            switch state.life {
            // `finish` returns what still waits, so that every caller gets an answer.
            case .abandoned, .ended: return .end
            case .closing where state.jobs.isEmpty && state.urgent.isEmpty: return .end
            case .open where state.jobs.isEmpty && state.urgent.isEmpty: return nil
            case .open, .closing: break
            }
            precondition(state.jobBytes <= state.bytes, "the bytes of the jobs count against the bound")
            let taken = Taken.jobs(urgent: state.urgent, state.jobs, bytes: state.jobBytes)
            state.urgent = []
            state.jobs = []
            state.jobs.reserveCapacity(256)
            state.jobBytes = 0
            return taken
        }
    }

    /// A signal may come just after the time has passed. It then ends the next sleep early, which costs an empty turn.
    private func sleep(_ how: Sleep) {
        let sleeps = state.withLock { state in
            let isIdle = state.urgent.isEmpty && state.life == .open && state.jobBytes < wakeBytes
            guard isIdle, how == .nap || state.jobs.isEmpty else { return false }
            state.sleep = how
            return true
        }
        guard sleeps else { return }
        if how == .nap { _ = wake.wait(timeout: nap) } else { wake.wait() }
        state.withLock { $0.sleep = .awake }
    }

    /// The nap of a writer with jobs that wait for space. An urgent job or `signalSpace` ends it.
    private func napUntilSpace(_ timeout: Duration) {
        let sleeps = state.withLock { state in
            guard state.urgent.isEmpty, state.life == .open, !state.isSpaceSignalled else { return false }
            state.sleep = .nap
            return true
        }
        if sleeps { _ = wake.wait(timeout: timeout) }
        state.withLock { state in
            state.sleep = .awake
            state.isSpaceSignalled = false
        }
    }
}
