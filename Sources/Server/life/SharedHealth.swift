import EventLoop
import Message
package import Routing
import Synchronization

/// A `HealthTable` of all workers. While nothing fails, asking it takes no lock.
package final class SharedHealth<Subject: Hashable & Sendable, Failure: Equatable & Sendable>: Sendable {
    private let table = Locked(HealthTable<Subject, Failure>())
    private let count = Atomic<Int>(0)

    package init() {}

    /// As `HealthTable.isDown`.
    func isDown(_ subject: Subject, now: Duration, _ terms: Circuit.Terms) -> Bool {
        hasEntries && table.withLock { $0.isDown(subject, now: now, terms) }
    }

    /// - Returns: whether this is news.
    func failed(
        _ subject: Subject, _ failure: Failure, now: Duration, wallTime: WallTime, _ terms: Circuit.Terms
    ) -> Bool {
        changed { $0.failed(subject, failure, now: now, wallTime: wallTime, terms) }
    }

    /// - Returns: whether this is news.
    func succeeded(_ subject: Subject, _ terms: Circuit.Terms) -> Bool {
        hasEntries && changed { $0.succeeded(subject, terms) }
    }

    /// The table as it is now.
    package var snapshot: HealthTable<Subject, Failure> { table.withLock { $0 } }

    /// Whether anything failed, as far as this thread knows. Who asks a moment after a failure may be told of none, and tries.
    private var hasEntries: Bool { count.load(ordering: .relaxed) > 0 }

    private func changed(_ change: (inout HealthTable<Subject, Failure>) -> Bool) -> Bool {
        table.withLock {
            let isNews = change(&$0)
            count.store($0.count, ordering: .relaxed)
            return isNews
        }
    }
}
