package import Learning
import Message
import EventLoop
import Settings

/// Learning as the control thread sees it. All of it blocks until the workers have answered, for half a second at most.
extension Proxy {
    /// Begins a run of a job. Every request that begins from now on is noted.
    ///
    /// - Returns: why its journal is in memory only; nil if it is saved.
    package func startLearning(_ job: ActiveJob) throws(LearningBook.Refusal) -> String? {
        let listeners = snapshot.configuration.listen.map(\.name)
        if let listener = job.scope.listener, !listeners.contains(listener) {
            throw .unknownListener(among: listeners)
        }
        let complaint = try shared.learning.begin(job, now: .read())
        onEachWorker { $0.adoptLearning() }
        return complaint
    }

    /// Ends the run of a job.
    ///
    /// - Returns: false if it does not learn.
    package func stopLearning(_ job: String) -> Bool {
        gatherObservations()
        let hasEnded = shared.learning.end(job, now: WallTime(ticks: readWallTicks()))
        onEachWorker { $0.adoptLearning() }
        return hasEnded
    }

    /// - Returns: false if there is no such job.
    package func forgetJournal(of job: String) -> Bool {
        let isKnown = shared.learning.forget(job, now: WallTime(ticks: readWallTicks()))
        onEachWorker { $0.adoptLearning() }
        return isKnown
    }

    /// What all jobs have requested until now.
    package func journals() -> [Journal] {
        gatherObservations()
        return shared.learning.journals
    }

    /// Nil if there is no such job.
    package func journal(of job: String) -> Journal? {
        gatherObservations()
        return shared.learning.journal(of: job)
    }

    private func gatherObservations() { onEachWorker { $0.tendLearning() } }
}

extension RecipePaths {
    init(_ configuration: Configuration) {
        self.init(
            configuration.recipeRules.compactMap { rule in
                rule.recipe.map { Rule(recipe: $0, conditions: rule.conditions) }
            })
    }
}
