package import Access
package import Message

/// A job that learns now.
package struct ActiveJob: Sendable, Equatable {
    package var job: String
    package var scope: JobScope
    /// What the rules deny is let through, as far as `AccessSettings.lenient` says.
    package var allows: Bool
    /// Nil: until it is stopped.
    package var endsAt: Expiry?

    package init(job: String, scope: JobScope, allows: Bool = false, endsAt: Expiry? = nil) {
        precondition(
            !allows || (!scope.isEverybody && endsAt != nil),
            "what is let through has a client, a user or a listener, and an end")
        self.job = job
        self.scope = scope
        self.allows = allows
        self.endsAt = endsAt
    }

    package func isOver(at now: Moment) -> Bool { endsAt?.isOver(at: now) ?? false }
}

/// The jobs that learn now.
package struct ActiveJobs: Sendable, Equatable {
    package var jobs: [ActiveJob] = []

    package static let countMax = 16

    package init(_ jobs: [ActiveJob] = []) { self.jobs = jobs }

    package var isEmpty: Bool { jobs.isEmpty }

    /// The jobs that a request belongs to.
    package func jobs(of request: AccessRequest, at now: Moment) -> [String] {
        jobs.filter { !$0.isOver(at: now) && $0.scope.covers(request) }.map(\.job)
    }

    /// The job for which a request is let through that the rules deny. Nil: it is denied.
    package func allowing(_ request: AccessRequest, at now: Moment) -> ActiveJob? {
        jobs.first { $0.allows && !$0.isOver(at: now) && $0.scope.covers(request) }
    }
}
