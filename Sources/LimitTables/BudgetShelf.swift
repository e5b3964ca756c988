import Accounts
package import EventLoop
import Glibc
package import Limiting
import Message
import Secrets
import Synchronization

/// Keeps what has been used of budgets in `limits.budgets_file`, so that a restart does not refill them.
///
/// Threads of the pool read and write the file, never a worker. May be used by every thread.
package final class BudgetShelf: Sendable {
    private struct State {
        var file: PrivateFile?
        /// What is in the file.
        var saved: [BudgetUse] = []
        var nextSave = Duration.zero
        /// What was said about the file last: it is said once.
        var complaint: String?
    }
    private let table: LimitTable
    private let state = Locked(State())
    private let hasFile = Atomic(false)
    /// A job that saves waits or runs.
    private let isTending = Atomic(false)

    /// What a crash costs.
    private static let interval: Duration = .seconds(5)

    package init(_ table: LimitTable) { self.table = table }

    /// Uses a file from now on, and takes what is in it. Blocks.
    package func adopt(_ path: String?) {
        state.withLock { state in
            guard state.file?.path != path else { return }
            if state.file != nil { save(&state) }
            state = State()
            state.file = path.map { PrivateFile(path: $0, bytesMax: BudgetFile.bytesMax) }
            if path != nil { restore(&state) }
        }
        hasFile.store(path != nil, ordering: .relaxed)
    }

    /// Lets a thread of the pool save what has changed. Called once a second.
    package func tend(on pool: BlockingPool, now: Duration) {
        guard hasFile.load(ordering: .relaxed), !isTending.exchange(true, ordering: .relaxed) else { return }
        let isAccepted = pool.submit { [self] in
            state.withLock { state in
                guard now >= state.nextSave else { return }
                state.nextSave = now + BudgetShelf.interval
                save(&state)
            }
            isTending.store(false, ordering: .relaxed)
        }
        if !isAccepted { isTending.store(false, ordering: .relaxed) }
    }

    /// Nothing of these budgets is used any more, also after a restart. Blocks.
    ///
    /// - Parameter subject: nil: all that the rule has a budget for.
    /// - Returns: how many were in use, and what kept the file from being written.
    package func reset(_ rule: String, _ subject: LimitSubject?) -> (count: Int, complaint: String?) {
        let count = table.resetBudgets(of: rule, subject, wall: BudgetShelf.wallSeconds)
        Diagnostics.info("budgets: \(count) of the limit \(rule) were reset")
        return state.withLock { state in
            save(&state)
            return (count, state.complaint)
        }
    }

    /// Saves what has changed. Blocks.
    package func close() { state.withLock { save(&$0) } }

    private func save(_ state: inout State) {
        guard state.file != nil else { return }
        let uses = table.budgetUses(wall: BudgetShelf.wallSeconds).sorted {
            ($0.bucket.rule, $0.bucket.subject.description) < ($1.bucket.rule, $1.bucket.subject.description)
        }
        guard uses != state.saved else { return }
        if let code = state.file?.replace(with: BudgetFile.text(uses)) {
            return complain("\(state.file?.path ?? "") cannot be written: \(systemErrorText(code))", &state)
        }
        state.saved = uses
        state.complaint = nil
    }

    private func restore(_ state: inout State) {
        let path = state.file?.path ?? ""
        do throws(ReadFailure) {
            guard let content = try state.file?.readIfChanged() else { return }
            do throws(BudgetFile.Damage) {
                let uses = try BudgetFile.read(content.bytes)
                table.restore(uses, wall: BudgetShelf.wallSeconds)
                state.saved = uses
                Diagnostics.info("budgets: read \(uses.count) from \(path)")
            } catch {
                complain("\(path):\(error.line) is damaged; all budgets begin anew", &state)
            }
        } catch .system(ENOENT) {
            // It is made when there is something to save.
        } catch {
            complain("\(path) cannot be read: \(error.text); all budgets begin anew", &state)
        }
    }

    private func complain(_ text: String, _ state: inout State) {
        guard state.complaint != text else { return }
        state.complaint = text
        Diagnostics.warning("budgets: \(text)")
    }

    private static var wallSeconds: Int64 { WallTime(ticks: readWallTicks()).secondsSinceEpoch }
}
