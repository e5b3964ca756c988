import Message

/// Why a PAC file named no routes for a request.
package enum PACFailure: Error, Equatable, Sendable {
    /// The script threw, or cannot be read. The text is the script's.
    case script(String)
    /// What it returned cannot be used.
    case answer(PACAnswerFault)
    /// It did not answer within `pac.timeout`.
    case timedOut
    /// The process that evaluates it ended, or cannot be started.
    case helper(String)
    /// Too many questions are waiting.
    case busy
    /// There is no script: it was not fetched from its URL so far.
    case unfetched(PACFetchFault)

    package var text: String {
        switch self {
        case .script(let text): text
        case .answer(let fault): fault.text
        case .timedOut: "it did not answer within pac.timeout"
        case .helper(let text): "the process that evaluates it \(text)"
        case .busy: "too many questions are waiting for it"
        case .unfetched(let fault): "it has not been fetched: \(fault.text)"
        }
    }
}

/// What a PAC file says, or why it says nothing.
package typealias PACVerdict = Result<[Route], PACFailure>

extension Origin {
    /// What a PAC file is asked about the origin. Path and query stay out of it, as in browsers for https: a script must not learn secrets
    /// of URLs, and one answer holds for the whole origin.
    package var pacQuestion: (url: [UInt8], host: [UInt8]) {
        let (scheme, port): (String, UInt16) = scheme == .https ? ("https", 443) : ("http", 80)
        let isV6 = endpoint.host.utf8.contains(UInt8(ascii: ":"))
        let host = isV6 ? "[\(endpoint.host)]" : endpoint.host
        let authority = endpoint.port == port ? host : "\(host):\(endpoint.port)"
        return (Array("\(scheme)://\(authority)/".utf8), Array(endpoint.host.utf8))
    }
}

/// What one PAC file has said lately, which questions are under way, and who waits for them. A question is asked once for all who wait.
///
/// Time is that of a clock that never goes back, since any moment.
package struct PACBook<Waiter: Sendable>: Sendable {
    package enum Response: Sendable {
        case known(PACVerdict)
        /// The caller hands the question on. `answered` follows.
        case ask
        /// Somebody else has asked it.
        case joined
    }
    private var answers: ExpiringTable<Origin, [Route]>
    private var failures = ExpiringTable<Origin, PACFailure>(lifetime: PACLimits.failureLifetime, countMax: 1024)
    private var waiting: [Origin: [(number: UInt64, waiter: Waiter)]] = [:]
    private var lastNumber: UInt64 = 0
    /// Of the script. Answers of an earlier version are not kept.
    package private(set) var version: UInt64 = 1

    package init(lifetime: Duration) { answers = Self.table(lifetime) }

    private static func table(_ lifetime: Duration) -> ExpiringTable<Origin, [Route]> {
        ExpiringTable(lifetime: lifetime, countMax: PACLimits.answersMax)
    }

    /// What is known about the origin. Nil: it has to be asked.
    package func verdict(on origin: Origin, now: Duration) -> PACVerdict? {
        if let known = answers.value(origin, now: now) { return .success(known.value) }
        return failures.value(origin, now: now).map { .failure($0.value) }
    }

    /// - Returns: what to do, and the number under which the waiter can leave.
    package mutating func ask(_ origin: Origin, for waiter: Waiter, now: Duration) -> (Response, number: UInt64) {
        if let verdict = verdict(on: origin, now: now) { return (.known(verdict), 0) }
        lastNumber += 1
        let isUnderWay = waiting[origin] != nil
        waiting[origin, default: []].append((lastNumber, waiter))
        return (isUnderWay ? .joined : .ask, lastNumber)
    }

    /// How many wait now.
    package var waitingCount: Int { waiting.values.reduce(0) { $0 + $1.count } }

    /// The waiter has left.
    package mutating func leave(_ number: UInt64, _ origin: Origin) {
        waiting[origin]?.removeAll { $0.number == number }
    }

    /// Called when it is the question's turn.
    ///
    /// - Returns: false if nobody waits any more. The question is over then.
    package mutating func begin(_ origin: Origin) -> Bool {
        guard let waiters = waiting[origin] else { return false }
        if waiters.isEmpty { waiting[origin] = nil }
        return !waiters.isEmpty
    }

    /// - Parameter version: of the script that was asked.
    /// - Returns: those who waited.
    package mutating func answered(
        _ origin: Origin, _ verdict: PACVerdict, version: UInt64, now: Duration
    ) -> [Waiter] {
        if version == self.version {
            switch verdict {
            case .success(let routes): answers.set(origin, routes, now: now)
            // That there was no room, or no script, says nothing about the origin.
            case .failure(.busy), .failure(.unfetched): break
            case .failure(let failure): failures.set(origin, failure, now: now)
            }
        }
        return waiting.removeValue(forKey: origin)?.map(\.waiter) ?? []
    }

    /// The script has changed: nothing that was said holds. Questions under way are answered by whoever has them.
    package mutating func renew(lifetime: Duration) {
        version += 1
        answers = Self.table(lifetime)
        failures = ExpiringTable(lifetime: PACLimits.failureLifetime, countMax: 1024)
    }
}

/// What bounds the evaluation of PAC files.
package enum PACLimits {
    /// For how long a failure is remembered, so that one host for which a script loops does not keep it from answering for others.
    package static let failureLifetime = Duration.seconds(10)
    /// Answers that are remembered for one script. The oldest are forgotten first.
    package static let answersMax = 8192
    /// Questions of one script that wait for their turn.
    package static let questionsMax = 256
    /// What the process that evaluates a script may allocate, beyond what it has at its start.
    package static let memoryBytesMax = 64 << 20
    /// For a process to start and to read its script. A machine under load needs a while.
    package static let startTimeout = Duration.seconds(10)
    /// Redirects on the way to a script.
    package static let redirectsMax = 5
    /// How long after a failure a script is fetched again, and twice as long after each further one. At most as long as after a success.
    package static let fetchPause = Duration.seconds(10)
    /// The log names one failure of a script in so long.
    package static let silence = Duration.seconds(10)
    /// When a process that fails is started again: at once, and after pauses if it has not answered in between.
    package static let restarts = Circuit.Terms(failuresMax: 2, pause: .seconds(1), pauseMax: .seconds(30))
}
