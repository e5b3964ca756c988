import CLarder
import Glibc
import Synchronization

/// The jobs that other threads post for a loop: a list under a lock, and an eventfd that wakes the loop.
///
/// The eventfd is written only if the list was empty, so a burst of posts costs one wake-up. Jobs run on the loop's thread in the order in
/// which they were posted, at most `jobsPerTurnMax` in a turn. The list itself has no bound: each poster waits for an answer, or has
/// a bounded queue of its own.
package final class Inbox: Sendable {
    package typealias Job = @Sendable () -> Void
    /// The most jobs in one turn, so that a flood of jobs does not starve descriptors.
    static let jobsPerTurnMax = 256

    private struct State {
        var jobs: [Job] = []
        var isClosed = false
    }
    private let state = Locked(State())
    private let descriptor: Descriptor

    init() throws(EventLoopError) {
        let fd = clarder_eventfd()
        guard fd >= 0 else { throw .noEventDescriptor(errno: errno) }
        descriptor = Descriptor(adopting: fd)
    }

    var wakeUpDescriptor: CInt { descriptor.rawValue }

    /// Runs `job` on the loop's thread. A job that is posted after the end of the loop is released without being run.
    /// - Returns: false if the loop has ended.
    @discardableResult
    package func post(_ job: @escaping @Sendable () -> Void) -> Bool {
        let count = state.withLock { state in
            if !state.isClosed { state.jobs.append(job) }
            return state.isClosed ? 0 : state.jobs.count
        }
        if count == 1 { wake() }
        return count > 0
    }

    func close() {
        let dropped = state.withLock { state in
            state.isClosed = true
            let jobs = state.jobs
            state.jobs = []
            return jobs
        }
        _ = dropped  // release what the jobs hold outside the lock
    }

    /// Runs the waiting jobs. Called by the loop.
    func drain() {
        var count: UInt64 = 0
        _ = unsafe read(descriptor.rawValue, &count, 8)  // if this fails, the next turn tries again
        let (jobs, isMore) = state.withLock { state in
            let batch = Array(state.jobs.prefix(Inbox.jobsPerTurnMax))
            if batch.count == state.jobs.count {
                state.jobs.removeAll(keepingCapacity: batch.count < Inbox.jobsPerTurnMax)
            } else {
                state.jobs.removeFirst(batch.count)
            }
            return (batch, !state.jobs.isEmpty)
        }
        if isMore { wake() }
        for job in jobs { job() }
    }

    private func wake() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor.rawValue, &one, 8)  // fails only if the counter is full: the loop wakes
    }
}
