import Learning
import Message

/// What one worker has of learning: the jobs that learn now, and what it has observed of them.
///
/// A worker has one only while a job learns. So all that learning costs otherwise is the question whether there is one, for requests that have
/// an exchange or a tunnel.
final class WorkerLearner {
    let active: ActiveJobs
    private let book: LearningBook
    private var notes: [LearningBook.Noted] = []

    /// So many observations are handed over without waiting for the next second.
    private static let batchMax = 256

    init(_ active: ActiveJobs, _ book: LearningBook) {
        self.active = active
        self.book = book
    }

    func note(_ observation: Observation, at now: Moment) {
        let jobs = active.jobs(of: observation.request, at: now)
        guard !jobs.isEmpty else { return }
        notes.append(.init(observation: observation, jobs: jobs))
        if notes.count >= WorkerLearner.batchMax { flush() }
    }

    func flush() {
        guard !notes.isEmpty else { return }
        book.submit(notes)
        notes = []
    }
}
