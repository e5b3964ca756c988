import Access
import Accounts
import EventLoop
import Glibc
package import Learning
package import Message
import Secrets
import Synchronization

/// The journals of all jobs, and which jobs learn now.
///
/// Workers hand over what they observed, in batches, and take the lock of the queue for no longer than that. A thread of the pool puts it into
/// the journals and saves them. The journals have a lock that no worker takes.
package final class LearningBook: Sendable {
    /// What a worker observed, and the jobs that it belongs to.
    struct Noted: Sendable {
        let observation: Observation
        let jobs: [String]
    }

    private struct Queue {
        var notes: [Noted] = []
        /// Requests that found the queue full, by job.
        var lost: [String: Int] = [:]
    }
    private let queue = Locked(Queue())

    private struct State {
        var journals: [String: Journal] = [:]
        /// Journals that have changed since they were saved.
        var unsaved: Set<String> = []
        var recipes = RecipePaths()
        var files: JournalFiles?
    }
    private let state = Locked(State())

    private let activeJobs = Locked(ActiveJobs())
    /// Grows with every change of `active`.
    private let changes = Atomic<UInt64>(0)
    private let isTending = Atomic(false)

    private static let queueMax = 65_536
    package static let journalsMax = 64

    init() {}

    // MARK: workers

    /// Which jobs learn now.
    package var active: ActiveJobs { activeJobs.withLock { $0 } }

    var changeCount: UInt64 { changes.load(ordering: .acquiring) }

    func submit(_ notes: [Noted]) {
        queue.withLock { queue in
            let room = LearningBook.queueMax - queue.notes.count
            queue.notes += notes.prefix(room)
            for note in notes.dropFirst(room) { for job in note.jobs { queue.lost[job, default: 0] += 1 } }
        }
    }

    /// Lets a thread of the pool put away what has been observed. Called once a second.
    func tend(on pool: BlockingPool, now: Moment) {
        guard changeCount > 0, !isTending.exchange(true, ordering: .relaxed) else { return }
        let isAccepted = pool.submit { [self] in
            merge()
            expire(now: now)
            save()
            isTending.store(false, ordering: .relaxed)
        }
        if !isAccepted { isTending.store(false, ordering: .relaxed) }
    }

    // MARK: journals

    package enum Refusal: Error, Equatable {
        /// It learns already.
        case running
        case tooManyJobs
        case tooManyJournals
        /// No listener has the name of the scope. Those that there are.
        case unknownListener(among: [String])
    }

    /// Begins a run of a job.
    ///
    /// - Returns: why its journal is in memory only; nil if it is saved.
    package func begin(_ job: ActiveJob, now: Moment) throws(Refusal) -> String? {
        expire(now: now)
        let complaint = try state.withLock { (state) throws(Refusal) -> String? in
            let isNew = state.journals[job.job] == nil
            guard state.journals[job.job]?.isRunning != true else { throw .running }
            guard !isNew || state.journals.count < LearningBook.journalsMax else { throw .tooManyJournals }
            guard active.jobs.count < ActiveJobs.countMax else { throw .tooManyJobs }
            var journal = state.journals[job.job] ?? Journal(job: job.job, scope: job.scope)
            journal.begin(job.scope, allowing: job.allows, at: now.wallTime)
            state.journals[job.job] = journal
            state.unsaved.insert(job.job)
            return state.files?.prepare()
        }
        change { $0.jobs.append(job) }
        if job.allows, let end = job.endsAt {
            Diagnostics.warning(
                "learning: what the access rules deny is let through for \(job.scope.text), job \(job.job), for \(end.left(at: now).count) s"
            )
        } else {
            Diagnostics.info("learning: job \(job.job) begins, \(job.scope.text)")
        }
        save()
        return complaint
    }

    /// Ends the run of a job.
    ///
    /// - Returns: false if it does not learn.
    package func end(_ job: String, now: WallTime) -> Bool {
        merge()
        let hasEnded = state.withLock { state in
            guard state.journals[job]?.isRunning == true else { return false }
            state.journals[job]?.end(at: now)
            state.unsaved.insert(job)
            return true
        }
        guard hasEnded else { return false }
        let ended = active.jobs.first { $0.job == job }
        change { $0.jobs.removeAll { $0.job == job } }
        let text = ended?.allows == true ? ": the access rules hold again for \(ended?.scope.text ?? "")" : ""
        if ended?.allows == true {
            Diagnostics.warning("learning: job \(job) has ended\(text)")
        } else {
            Diagnostics.info("learning: job \(job) has ended")
        }
        save()
        return true
    }

    /// Forgets what is known of a job, and removes its file.
    ///
    /// - Returns: false if there is no such job.
    package func forget(_ job: String, now: WallTime) -> Bool {
        _ = end(job, now: now)
        return state.withLock { state in
            state.unsaved.remove(job)
            guard state.journals.removeValue(forKey: job) != nil else { return false }
            state.files?.remove(job)
            return true
        }
    }

    /// All journals, by the names of their jobs.
    package var journals: [Journal] {
        merge()
        return state.withLock { $0.journals.values.sorted { $0.job < $1.job } }
    }

    package func journal(of job: String) -> Journal? {
        merge()
        return state.withLock { $0.journals[job] }
    }

    /// The recipes of a new configuration.
    func adopt(_ recipes: RecipePaths) { state.withLock { $0.recipes = recipes } }

    private func change(_ body: (inout ActiveJobs) -> Void) {
        activeJobs.withLock { jobs in
            body(&jobs)
            changes.add(1, ordering: .releasing)
        }
    }

    private func expire(now: Moment) {
        for job in active.jobs where job.isOver(at: now) {
            _ = end(job.job, now: min(job.endsAt?.wallTime ?? now.wallTime, now.wallTime))
        }
    }

    private func merge() {
        // In this order, so that two merges put away everything in the order in which it came.
        state.withLock { state in
            let taken = queue.withLock { queue in
                defer { queue = Queue() }
                return queue
            }
            for note in taken.notes {
                for job in note.jobs {
                    state.journals[job]?.note(note.observation, recipes: state.recipes)
                    state.unsaved.insert(job)
                }
            }
            for (job, count) in taken.lost { state.journals[job]?.lose(count) }
        }
    }

    // MARK: files

    /// Reads the journals of earlier processes. Their runs have ended with them.
    ///
    /// - Parameters:
    ///   - directories: in the order in which they are tried. The first one in which files can be made has the journals.
    ///   - make: makes a directory and those above it.
    package func open(_ directories: [String], make: @escaping @Sendable (String) -> Void) {
        let files = JournalFiles(directories, make: make)
        let journals = files.read()
        state.withLock { state in
            for journal in journals.prefix(LearningBook.journalsMax) where state.journals[journal.job] == nil {
                state.journals[journal.job] = journal
            }
            state.files = files
        }
    }

    /// Saves what has changed. Blocks.
    func save() {
        state.withLock { state in
            for job in state.unsaved.sorted() {
                if let journal = state.journals[job] { state.files?.write(journal) }
            }
            state.unsaved = []
        }
    }

    /// Ends all runs, and saves the journals. Blocks.
    func close(now: WallTime) {
        for job in active.jobs { _ = end(job.job, now: now) }
        merge()
        save()
    }
}
