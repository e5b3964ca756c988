import EventLoop

/// An object that was removed, for the drop record and the book.
struct Removal: Sendable {
    var id: ObjectID
    var key: [UInt8]
    var segment: UInt32
    /// It has a file of its own, which goes when the book has forgotten it.
    var isLarge: Bool
    /// The book has it, or will have.
    var isInBook: Bool
}

enum WriterJob: Sendable {
    /// Room for so many bytes of a record.
    case object(PackedObject, length: UInt64)
    case drop(Removal)
    case renew(ObjectID, hash: UInt64, key: [UInt8], ObjectAttributes, head: [UInt8], serial: UInt64)
    case makeLarge(LargeObject)
    case block(LargeObject, Int, any BodyBytes, offset: Int, then: @Sendable (Bool) -> Void)
    /// A block of it was found damaged.
    case lostBlock(LargeObject)
    /// Called when all before it is written.
    case call(@Sendable () -> Void)
    case move([MovedRecord], room: UInt64, done: @Sendable (Bool) -> Void)
    case carry([DroppedObject], room: UInt64, done: @Sendable (Bool) -> Void)
}

/// What waits for the writer. Bounded by bytes; what comes from the reclaimer goes first, and past those who wait for
/// it.
///
/// The writer sleeps in two ways. After a turn it naps: those who put something in need not wake it, so that it costs
/// them no system call. When a nap brought nothing it sleeps, and the first who comes wakes it.
final class WriterQueue: Sendable {
    enum Taken: Sendable {
        case jobs(urgent: [WriterJob], [WriterJob], bytes: Int)
        /// All is done, and nothing more will come.
        case end
    }
    private enum Sleep { case awake, nap, sleep }
    private enum Life { case open, closing, abandoned, ended }
    private struct State {
        var jobs: [WriterJob] = []
        var urgent: [WriterJob] = []
        /// Of `jobs`.
        var jobBytes = 0
        /// Of those, and of what was taken and is being written.
        var bytes = 0
        var sleep = Sleep.awake
        var life = Life.open
        /// Who waits for room is to look again.
        var isSpaceSignalled = false
    }
    private let state = Locked(State())
    private let wake = CountingSemaphore()
    private let bytesMax: Int
    private let wakeBytes: Int
    private let nap: Duration

    init(bytesMax: Int, wakeBytes: Int, nap: Duration) {
        self.bytesMax = bytesMax
        self.wakeBytes = wakeBytes
        self.nap = nap
    }

    var waitingBytes: Int { state.withLock { $0.bytes } }

    /// - Parameters:
    ///   - bytes: of memory that it holds until it is written.
    ///   - isBounded: false: it is taken even where too much waits.
    ///   - isUrgent: the writer is not left to nap.
    /// - Returns: false where too much waits, or the store is closed.
    func put(_ job: WriterJob, bytes: Int = 0, isBounded: Bool = false, isUrgent: Bool = false) -> Bool {
        var mustWake = false
        let isTaken = state.withLock { state in
            guard state.life == .open, !isBounded || state.bytes + bytes <= bytesMax else { return false }
            state.jobs.append(job)
            state.bytes += bytes
            state.jobBytes += bytes
            let isEnough = isUrgent || state.jobBytes >= wakeBytes
            mustWake = state.sleep == .sleep || (state.sleep == .nap && isEnough)
            if mustWake { state.sleep = .awake }
            return true
        }
        if mustWake { wake.signal() }
        return isTaken
    }

    /// From the reclaimer. False: the store is closed.
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

    /// There may be room now.
    func signalSpace() {
        let mustWake = state.withLock { state in
            state.isSpaceSignalled = true
            guard state.sleep != .awake else { return false }
            state.sleep = .awake
            return true
        }
        if mustWake { wake.signal() }
    }

    /// What there is is written, then it ends.
    func close() { end(.closing) }

    /// It ends, and what there is is forgotten.
    func abandon() { end(.abandoned) }

    private func end(_ life: Life) {
        state.withLock { state in
            state.life = life
            state.sleep = .awake
        }
        wake.signal()
    }

    var isAbandoned: Bool { state.withLock { $0.life == .abandoned } }

    // MARK: the writer's side

    /// Nothing is taken any more; returns what nobody will write.
    func finish() -> [WriterJob] {
        state.withLock { state in
            state.life = .ended
            defer {
                state.urgent = []
                state.jobs = []
            }
            return state.urgent + state.jobs
        }
    }

    /// Bytes that were taken are written.
    func done(_ bytes: Int) { state.withLock { $0.bytes -= bytes } }

    /// All there is; sleeps until there is something.
    /// - Parameter timeout: with nothing at hand where that is over, or when it is poked; nil: only with something.
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
            case .abandoned, .ended: return .end
            case .closing where state.jobs.isEmpty && state.urgent.isEmpty: return .end
            case .open where state.jobs.isEmpty && state.urgent.isEmpty: return nil
            case .open, .closing: break
            }
            let taken = Taken.jobs(urgent: state.urgent, state.jobs, bytes: state.jobBytes)
            state.urgent = []
            state.jobs = []
            state.jobs.reserveCapacity(256)
            state.jobBytes = 0
            return taken
        }
    }

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

    /// A nap of a writer that waits for room: what is urgent ends it, and a signalSpace.
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
