package import Credentials
package import Learning
package import Limiting
package import Message
package import Server

/// The proxy as the admin server sees it: what it can ask of it, and what it can tell it to do.
///
/// All calls are made on the control thread. The numbers are read from the workers without stopping them, so two numbers of one
/// answer can differ by the requests that were handled in between.
package protocol AdministeredProxy: Sendable {
    /// The statistics of all workers together.
    func statistics() -> Statistics
    /// All nodes of the fleet, as this one knows them. Nil if this Larder is in no fleet.
    func fleetView() -> FleetView?
    /// Removes the responses that the request selects, marks them stale, or only counts them.
    func purge(_ request: PurgeRequest) -> PurgeResult
    /// Forgets what is known about the log-ins with a credential, or with all: challenges, and refusals. Empties a cookie jar, or all.
    ///
    /// - Parameter name: that of a credential or of a jar, or of both.
    /// - Returns: nil if there is nothing with that name.
    func clearSession(of name: String?) -> ClearedSession?
    /// Makes a placeholder for a credential.
    ///
    /// - Parameter lifetime: nil until it is revoked.
    func issuePlaceholder(
        of credential: String, job: String?, lifetime: Seconds?
    ) throws(PlaceholderProblem) -> Placeholder
    /// Ends placeholders.
    ///
    /// - Parameters:
    ///   - which: the id of one, its text, or the name of a credential. Nil: all of the job.
    ///   - job: if there is one, of this job alone.
    /// - Returns: those that held until now.
    func revokePlaceholders(_ which: String?, job: String?) -> [Placeholder]
    /// Those that hold, and those that have ended within the last day.
    func placeholders() -> [Placeholder]
    var now: Moment { get }
    /// Lists stored responses, one page at a time. Each call returns the next page, which can be empty, and nil at the end.
    ///
    /// Nothing is locked between two pages, so responses that are stored or removed meanwhile can be missing.
    func objects(_ selection: Selection) -> @Sendable () -> [ObjectDescription]?
    /// Explains what would happen to a request. Sends nothing to an origin and changes nothing in the store.
    func explain(_ question: ExplainQuestion) throws(ExplainError) -> Explanation
    /// Lets budgets of a limit begin anew.
    ///
    /// - Parameter subject: whose. Nil: all that the limit has a budget for.
    /// - Returns: how many were in use, and why the file of budgets could not be written, nil if it was.
    func resetBudgets(
        of rule: String, _ subject: LimitSubject?
    ) throws(Proxy.BudgetRefusal) -> (count: Int, complaint: String?)
    /// Begins to note what a job requests.
    ///
    /// - Returns: why its journal is in memory only; nil if it is saved.
    func startLearning(_ job: ActiveJob) throws(LearningBook.Refusal) -> String?
    /// - Returns: false if the job does not learn.
    func stopLearning(_ job: String) -> Bool
    /// - Returns: false if there is no such job.
    func forgetJournal(of job: String) -> Bool
    /// The jobs that learn now.
    var learning: ActiveJobs { get }
    /// What jobs have requested until now, by their names.
    func journals() -> [Journal]
    /// What a job has requested, and the difference to the rules in force. Nil if there is no such job.
    func journal(of job: String) -> (journal: Journal, difference: Difference)?
    /// The fetches and tunnels that are under way, in no particular order.
    func transfers() -> [TransferReport]
    /// Ends a transfer.
    ///
    /// - Returns: false if it is over already.
    func cancelTransfer(_ id: TransferID) -> Bool
    /// Whether the proxy accepts no more connections, and ends when the last one has closed.
    var isDraining: Bool { get }
    /// The disk tiers that are off: nothing is written to them. Does not block.
    var disksOff: [DiskOff] { get }
}

/// Of which log-ins nothing is known any more.
package struct ClearedSession: Sendable, Equatable {
    package var credentials: Int
    package var cookieJars: Int
    /// Why the files of jars still have cookies.
    package var problems: [String]

    package init(credentials: Int, cookieJars: Int = 0, problems: [String] = []) {
        self.credentials = credentials
        self.cookieJars = cookieJars
        self.problems = problems
    }
}

/// What a purge selected.
package struct PurgeResult: Sendable, Equatable {
    /// The number of stored responses. Each variant counts.
    package var records: Int
    /// Their bytes, as counted for the budget.
    package var bytes: Int
    /// If false, they are removed, but that could not be written to the disk: after a crash some can come back.
    package var isDurable = true
    /// How far it has come in the fleet. Nil if this Larder is alone, or nothing was purged.
    package var spread: PurgeSpread?

    package init(records: Int, bytes: Int) {
        self.records = records
        self.bytes = bytes
    }
}
