import CLarder
import Glibc
import Synchronization

/// How other threads reach a loop: a list of jobs under a lock and an eventfd that wakes the loop.
///
/// The eventfd is written only when the list was empty, so a burst of posts costs one wake-up. Jobs run on the loop's
/// thread in the order they were posted, at most `jobsPerTurnMax` in a turn. Who posts bounds how much: each poster
/// waits for an answer or has a queue of its own with a limit.
package final class Inbox: Sendable {
    package typealias Job = @Sendable () -> Void
    /// Keeps a flood of jobs from starving descriptors.
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

    /// Has `job` run on the loop's thread. Jobs posted after the loop is gone are dropped, unrun.
    package func post(_ job: @escaping @Sendable () -> Void) {
        let mustWake = state.withLock { state in
            guard !state.isClosed else { return false }
            state.jobs.append(job)
            return state.jobs.count == 1
        }
        if mustWake { wake() }
    }

    func close() {
        let dropped = state.withLock { state in
            state.isClosed = true
            let jobs = state.jobs
            state.jobs = []
            return jobs
        }
        _ = dropped  // what the jobs hold is released here, outside the lock
    }

    /// The loop's side: runs what is waiting.
    func drain() {
        var count: UInt64 = 0
        _ = unsafe read(descriptor.rawValue, &count, 8)  // nothing to do on failure: the next turn tries again
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
        _ = unsafe write(descriptor.rawValue, &one, 8)  // fails only when the counter is full, which wakes as well
    }
}
