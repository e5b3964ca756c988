import Accounts
import EventLoop
import Message
import Releases
package import Routing

/// A PAC file that is in use: what it has said lately, how it is fetched, and the process that asks it.
///
/// May be used by every thread. `state` is held for moments; the process is used on the desk's thread alone.
package final class PACScript: Sendable {
    package let source: PACSource
    private let desk: PACDesk
    private let state: Locked<State>
    private let engine: Locked<Engine>

    package typealias Waiter = @Sendable (PACVerdict) -> Void

    /// What happened so far, for statistics.
    package struct Tally: Sendable, Equatable {
        /// Requests that wait for an answer now.
        package var waiting = 0
        /// Questions that the script was asked.
        package var questions: UInt64 = 0
        /// Requests for which an earlier answer was used.
        package var hits: UInt64 = 0
        /// Questions without a usable answer, time-outs included.
        package var failures: UInt64 = 0
        package var timeouts: UInt64 = 0
        /// Processes that were started in place of one that had ended or was ended.
        package var restarts: UInt64 = 0
        /// The number of the process. Nil if it has ended, and is started again with the next question.
        package var process: CInt?
        /// Why the last question had no answer. Nil if it had one.
        package var failure: String?
        /// How the script is fetched. Nil if it comes from a file.
        package var download: PACDownload?
    }

    private struct State {
        var book: PACBook<Waiter>
        /// Nil for a script of a file.
        var download: PACDownload?
        var timeout: Duration
        var lifetime: Duration
        var tally: Tally
        /// When the log may name a failure again.
        var silentUntil: Duration = .zero

        /// Why there is no script to ask. Nil if there is one.
        var absence: PACFailure? {
            guard let download, download.version == nil else { return nil }
            return .unfetched(download.failure?.fault ?? .untried)
        }
    }

    /// A script of a file.
    init(
        path: String, desk: PACDesk, script: [UInt8], evaluator: sending PACEvaluator, timeout: Duration,
        lifetime: Duration
    ) {
        source = .file(path)
        self.desk = desk
        var tally = Tally()
        tally.process = evaluator.process.pid
        let state = Locked(
            State(book: PACBook(lifetime: lifetime), timeout: timeout, lifetime: lifetime, tally: tally))
        self.state = state
        engine = Locked(
            Engine(script: script, desk: desk, evaluator: evaluator) { process in
                state.withLock { $0.tally.process = process }
            })
    }

    /// A script that is to be fetched.
    init(_ download: PACDownload, desk: PACDesk, timeout: Duration, lifetime: Duration) {
        source = .url(download.url)
        self.desk = desk
        let state = Locked(
            State(
                book: PACBook(lifetime: lifetime), download: download, timeout: timeout, lifetime: lifetime,
                tally: Tally()))
        self.state = state
        engine = Locked(Engine(desk: desk) { process in state.withLock { $0.tally.process = process } })
    }

    deinit { endProcess() }

    /// Ends the process, because no rule names the file any more. A request that began before may still ask: that starts another one.
    package func endProcess() {
        // It takes a moment, which no worker should wait for.
        _ = desk.submit { [engine] in engine.withLock { $0.evaluator = nil } }
    }

    // MARK: asking

    /// The answer that is remembered. Nil if the script has to be asked.
    package func knownVerdict(on origin: Origin) -> PACVerdict? {
        let now = MonotonicTime.read().sinceStart
        return state.withLock { state in
            if let absence = state.absence { return .failure(absence) }
            let verdict = state.book.verdict(on: origin, now: now)
            if verdict != nil { state.tally.hits += 1 }
            return verdict
        }
    }

    /// Asks the script.
    ///
    /// - Parameter waiter: called once, on any thread, unless it leaves before.
    /// - Returns: the number under which the waiter can leave.
    package func ask(_ origin: Origin, for waiter: @escaping Waiter) -> UInt64 {
        let now = MonotonicTime.read().sinceStart
        let (response, number): (PACBook<Waiter>.Response, UInt64) = state.withLock { state in
            if let absence = state.absence { return (.known(.failure(absence)), 0) }
            return state.book.ask(origin, for: waiter, now: now)
        }
        switch response {
        case .known(let verdict): waiter(verdict)
        case .joined: break
        case .ask:
            let isAccepted = desk.submit { [self] in evaluate(origin) }
            if !isAccepted {
                answered(origin, .failure(.busy), version: state.withLock { $0.book.version }, restarts: 0)
            }
        }
        return number
    }

    /// The waiter is not called from now on, unless that is happening at this moment.
    package func leave(_ number: UInt64, _ origin: Origin) { state.withLock { $0.book.leave(number, origin) } }

    /// Asks and waits. Blocks, at most for the given time.
    package func verdict(on origin: Origin, within time: Duration) -> PACVerdict {
        let found = Locked<PACVerdict>(.failure(.timedOut))
        let isDone = CountingSemaphore()
        let number = ask(origin) { verdict in
            found.withLock { $0 = verdict }
            isDone.signal()
        }
        if !isDone.wait(timeout: time) { leave(number, origin) }
        return found.withLock { $0 }
    }

    // MARK: on the desk's thread

    private func evaluate(_ origin: Origin) {
        guard !desk.isOver else { return }
        let turn: (version: UInt64, timeout: Duration)? = state.withLock { state in
            guard state.book.begin(origin) else { return nil }
            state.tally.questions += 1
            return (state.book.version, state.timeout)
        }
        guard let turn else { return }
        let (verdict, restarts) = engine.withLock { $0.verdict(on: origin, within: turn.timeout) }
        answered(origin, verdict, version: turn.version, restarts: restarts)
    }

    private func answered(_ origin: Origin, _ verdict: PACVerdict, version: UInt64, restarts: UInt64) {
        let now = MonotonicTime.read().sinceStart
        var failure: String?
        if case .failure(let why) = verdict { failure = why.text }
        let (waiters, isNews) = state.withLock { state in
            state.tally.restarts += restarts
            if failure != nil { state.tally.failures += 1 }
            if case .failure(.timedOut) = verdict { state.tally.timeouts += 1 }
            state.tally.failure = failure
            let isNews = failure != nil && now >= state.silentUntil
            if isNews { state.silentUntil = now + PACLimits.silence }
            return (state.book.answered(origin, verdict, version: version, now: now), isNews)
        }
        // Clients decide how many hosts there are for which a script fails.
        if isNews, let failure {
            Diagnostics.warning("the PAC file \(source) names no route to \(origin): \(failure)")
        }
        for waiter in waiters { waiter(verdict) }
    }

    // MARK: from outside

    package var tally: Tally {
        state.withLock { state in
            var tally = state.tally
            tally.waiting = state.book.waitingCount
            tally.download = state.download
            return tally
        }
    }

    /// Takes the settings of a new configuration.
    package func adopt(timeout: Duration, lifetime: Duration) {
        state.withLock { state in
            state.timeout = timeout
            guard lifetime != state.lifetime else { return }
            state.lifetime = lifetime
            state.book.renew(lifetime: lifetime)
        }
    }

    /// Puts another version of the script in the place of this one, if it can be read. Otherwise nothing changes. The log says which.
    package func replace(by script: [UInt8]) {
        let isAccepted = desk.submit { [self] in
            guard !desk.isOver else { return }
            do throws(PACFailure) {
                try install(script)
                Diagnostics.info("the PAC file \(source) has changed and was read")
            } catch {
                Diagnostics.warning(
                    "the PAC file \(source) has changed, but cannot be used: \(error.text); the earlier version stays in use"
                )
            }
        }
        if !isAccepted { Diagnostics.warning("the PAC file \(source) has changed, but nobody has time to read it") }
    }

    /// On the desk's thread.
    private func install(_ script: [UInt8]) throws(PACFailure) {
        let timeout = state.withLock { $0.timeout }
        try engine.withLock { (engine) throws(PACFailure) in try engine.replace(by: script, timeout: timeout) }
        state.withLock { $0.book.renew(lifetime: $0.lifetime) }
    }
}

/// The way of a script that comes from a URL.
extension PACScript {
    /// What is to be fetched now. `fetched` follows. Nil for a script of a file, before it is time, and while a fetch is under way.
    package func beginFetch() -> PACFetch? {
        let now = MonotonicTime.read().sinceStart
        let fetch = state.withLock { $0.download?.begin(now: now) }
        if let fetch {
            Diagnostics.debug(
                .routes, "the PAC file \(source) is fetched" + (fetch.version == nil ? "" : " if it has changed"))
        }
        return fetch
    }

    /// The script is fetched as soon as possible, because the operator asked for it.
    package func expediteFetch() { state.withLock { $0.download?.expedite() } }

    /// Takes the setting of a new configuration.
    package func adopt(refresh: Duration) {
        let now = MonotonicTime.read().sinceStart
        state.withLock { $0.download?.adopt(refresh: refresh, now: now) }
    }

    /// The outcome of a fetch. The log says what has changed.
    ///
    /// - Parameter then: called once, on any thread, when the script that came is in use or refused.
    package func fetched(_ answer: PACDownload.Answer, then: @escaping @Sendable () -> Void = {}) {
        switch change({ $0.answered(answer, now: $1, wallTime: $2) }) {
        case .keep(let isNews):
            Diagnostics.debug(.routes, "the PAC file \(source) has not changed")
            if isNews { Diagnostics.info("the PAC file \(source) can be fetched again") }
            then()
        case .failed(let fault, let isNews):
            complain(fault, isNews)
            then()
        case .read(let script, let version):
            let isAccepted = desk.submit { [self] in
                use(script, version)
                then()
            }
            if !isAccepted {
                refuse(.unusable("nobody has time to read it"))
                then()
            }
        }
    }

    /// On the desk's thread.
    private func use(_ script: [UInt8], _ version: PACDownload.Version) {
        do throws(PACFailure) {
            guard !desk.isOver else { throw .busy }
            try install(script)
        } catch {
            return refuse(.unusable(error.text))
        }
        let isFirst = change { download, now, wallTime in
            defer { download.accepted(version, now: now, wallTime: wallTime) }
            return download.version == nil
        }
        Diagnostics.info("the PAC file \(source) " + (isFirst ? "was fetched" : "was fetched again"))
    }

    private func refuse(_ fault: PACFetchFault) {
        complain(fault, change { $0.refused(fault, now: $1, wallTime: $2) })
    }

    private func change<Result>(_ step: (inout PACDownload, Duration, WallTime) -> Result) -> Result {
        let (now, wallTime) = (MonotonicTime.read().sinceStart, WallTime(ticks: readWallTicks()))
        return state.withLock { state in
            guard var download = state.download else { preconditionFailure("a script of a file is not fetched") }
            defer { state.download = download }
            return step(&download, now, wallTime)
        }
    }

    private func complain(_ fault: PACFetchFault, _ isNews: Bool) {
        guard isNews, !desk.isOver else { return }
        let fetchedAt = state.withLock { $0.download?.fetchedAt }
        let consequence =
            fetchedAt.map { "the version of \(utc($0)) stays in use" }
            ?? "its rules take the routes of otherwise, or refuse their requests"
        Diagnostics.warning("the PAC file \(source) was not fetched: \(fault.text); \(consequence)")
    }
}

/// The process of a script, which is started again if it ends.
private struct Engine {
    /// Nil if it was not fetched so far.
    private var script: [UInt8]?
    private let desk: PACDesk
    /// Nil if the process has ended.
    var evaluator: PACEvaluator? { didSet { noteProcess(evaluator?.process.pid) } }
    private let noteProcess: @Sendable (CInt?) -> Void
    private var circuit = Circuit()

    init(
        script: [UInt8]? = nil, desk: PACDesk, evaluator: sending PACEvaluator? = nil,
        noteProcess: @escaping @Sendable (CInt?) -> Void
    ) {
        self.script = script
        self.desk = desk
        self.evaluator = evaluator
        self.noteProcess = noteProcess
    }

    /// A question whose process ends under it is asked once more: somebody else may have ended it.
    ///
    /// - Returns: the answer, and how often the process was started again.
    mutating func verdict(on origin: Origin, within timeout: Duration) -> (PACVerdict, restarts: UInt64) {
        var restarts: UInt64 = 0
        var attempts = 0
        while true {
            attempts += 1
            do throws(PACFailure) {
                let evaluator = try running(timeout, &restarts)
                defer { desk.hasAsked() }
                guard desk.willAsk(evaluator.process) else { throw .busy }
                let routes = try evaluator.routes(to: origin, within: timeout)
                _ = circuit.succeeded(PACLimits.restarts)
                return (.success(routes), restarts)
            } catch {
                switch error {
                case .script, .answer, .busy, .unfetched:
                    _ = circuit.succeeded(PACLimits.restarts)
                    return (.failure(error), restarts)
                case .timedOut, .helper:
                    let wasRunning = evaluator != nil
                    evaluator = nil
                    _ = circuit.failed(now: MonotonicTime.read().sinceStart, PACLimits.restarts)
                    guard case .helper = error, wasRunning, attempts < 2, !desk.isOver else {
                        return (.failure(error), restarts)
                    }
                }
            }
        }
    }

    private mutating func running(_ timeout: Duration, _ restarts: inout UInt64) throws(PACFailure) -> PACEvaluator {
        if let evaluator { return evaluator }
        guard !circuit.isOpen(now: MonotonicTime.read().sinceStart, PACLimits.restarts) else {
            throw .helper("has failed several times, and is started again in a moment")
        }
        guard let script else { throw .unfetched(.untried) }
        restarts += 1
        let started = try PACEvaluator(script, program: desk.program, timeout: timeout)
        evaluator = started
        return started
    }

    mutating func replace(by script: [UInt8], timeout: Duration) throws(PACFailure) {
        evaluator = try PACEvaluator(script, program: desk.program, timeout: timeout)
        self.script = script
        _ = circuit.succeeded(PACLimits.restarts)
    }
}
