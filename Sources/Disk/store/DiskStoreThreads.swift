import EventLoop
import Glibc
import Synchronization

/// The threads of a running store, and the order in which they begin and end.
///
/// | thread         | alone does                               | waits for                                       |
/// |----------------|------------------------------------------|-------------------------------------------------|
/// | `disk-write`   | appends to segments, writes blocks       | its queue                                       |
/// | `disk-book`    | commits the book, deletes files          | the commit interval, or somebody who asks        |
/// | `disk-reclaim` | chooses victims                          | space, then the writer and the keeper            |
/// | `disk-load`    | fills the index, then ends               | the keeper, while too many changes wait          |
/// | `disk-read`    | reads that block, for workers            | its queue                                       |
///
/// Once they run, the writer and the keeper wait for no other thread of the store, apart from short locks and from readers of the
/// book. So the waits cannot form a circle.
final class DiskStoreThreads: Sendable {
    let keeper: BookKeeper
    let queue: WriterQueue
    let reader: DiskStoreReader
    let pool: BlockingPool
    private let parts: DiskStoreParts
    private let reclaimer: Reclaimer
    private let isStopping = StopFlag()
    /// Signalled when the ledger knows all files: the writer may begin.
    private let isMeasured = CountingSemaphore()
    private let canReclaim = CountingSemaphore()

    private struct Running {
        var keeper, writer, loader, reclaimer: OwnedThread?
        var isEnded = false
    }
    private let running = Locked(Running())

    enum Ending { case orderly, sudden }

    static func start(_ opening: DiskStoreOpening) throws(DiskRefusal) -> DiskStoreThreads {
        do throws(EventLoopError) { return try DiskStoreThreads(opening) } catch {
            throw .failed(path: opening.parts.options.path, errno: EAGAIN)
        }
    }

    private init(_ opening: DiskStoreOpening) throws(EventLoopError) {
        let parts = opening.parts
        self.parts = parts
        let tuning = parts.tuning
        let keeper = BookKeeper(parts: parts, reservedIDs: opening.reservedIDs)
        let queue = WriterQueue(bytesMax: tuning.queueBytesMax, wakeBytes: tuning.wakeBytes, nap: tuning.nap)
        reader = DiskStoreReader(parts: parts, keeper: keeper, queue: queue)
        let reclaimer = Reclaimer(
            ledger: parts.ledger,
            store: DiskStoreForReclaimer(parts: parts, keeper: keeper, queue: queue, reader: reader))
        let writer = Writer(parts: parts, keeper: keeper, queue: queue, wakeReclaimer: { reclaimer.wake() })
        self.keeper = keeper
        self.queue = queue
        self.reclaimer = reclaimer
        keeper.connect(
            afterDeletion: { queue.signalSpace() }, wakeReclaimer: { reclaimer.wake() },
            drop: { removal in _ = queue.put(.drop(removal)) })
        // Reserve object numbers before any is given out. A number is never given out again, not even after a crash.
        keeper.commitBeforeStart()
        pool = try BlockingPool(name: "disk-read", threads: tuning.readThreads, queueMax: tuning.readQueueMax)
        let recovery = Recovery(
            parts: parts, keeper: keeper, queue: queue, isRebuild: opening.isRebuild, numbers: opening.numbers,
            isStopped: { [isStopping] in isStopping.isSet })
        let isMeasured = isMeasured
        let canReclaim = canReclaim
        let keeping = OwnedThread(try startThread(name: "disk-book") { keeper.run() })
        running.withLock { $0.keeper = keeping }
        // Before the ledger knows all files it would grant space that is not there.
        let writing = OwnedThread(
            try startThread(name: "disk-write") {
                isMeasured.wait()
                writer.run()
            })
        running.withLock { $0.writer = writing }
        // Before the index is filled, live records would look like dead ones, and the reclaimer would delete them.
        let reclaiming = OwnedThread(
            try startThread(name: "disk-reclaim") {
                canReclaim.wait()
                reclaimer.run()
            })
        running.withLock { $0.reclaimer = reclaiming }
        let loading = OwnedThread(
            try startThread(name: "disk-load") {
                tuning.beforeMeasuring()
                recovery.measure()
                isMeasured.signal()
                guard recovery.run() else { return }
                parts.loading.finish()
                canReclaim.signal()
            })
        running.withLock { $0.loader = loading }
    }

    func wakeReclaimer() { reclaimer.wake() }

    /// Ends the threads. Later calls do nothing. Blocks.
    ///
    /// The loader and the reclaimer end first, because they hand work to the others; then the writer, whose last changes go to the
    /// keeper; the keeper last. Only then may the book be closed and the directory unlocked.
    func end(_ ending: Ending) {
        let ended = running.withLock { running -> Running? in
            guard !running.isEnded else { return nil }
            running.isEnded = true
            return running
        }
        guard let ended else { return }
        isStopping.set()
        if ending == .sudden {
            queue.abandon()
            keeper.abandon()
        }
        reclaimer.stop()
        ended.loader?.join()
        parts.loading.stop()
        canReclaim.signal()  // a reclaimer that never began ends at once
        ended.reclaimer?.join()
        if ending == .orderly { queue.close() }
        ended.writer?.join()
        if ending == .orderly { keeper.close() }
        ended.keeper?.join()
        keeper.disconnect()
        pool.shutdown()
        parts.large.releaseIdle()
        parts.book.close()
        // Last: until here no other process may open the store.
        parts.directory.unlock()
    }
}

/// A flag that is set once, by any thread.
private final class StopFlag: Sendable {
    private let flag = Atomic(false)
    var isSet: Bool { flag.load(ordering: .relaxed) }
    func set() { flag.store(true, ordering: .relaxed) }
}
