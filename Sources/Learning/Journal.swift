package import Access
package import Message
import Rules

/// What a job has requested, in all of its runs. Its memory is bounded: many paths in one directory become the directory.
package struct Journal: Sendable, Equatable {
    package let job: String
    package internal(set) var scope: JobScope
    /// The latest are kept, `runsMax` of them.
    package internal(set) var runs: [Run] = []
    /// What was allowed, by the rules or for the sake of learning.
    package internal(set) var needed = Table()
    /// What was denied.
    package internal(set) var denied = Table()
    /// Requests that no rule is made for: their paths cannot be written into a rule, or there were too many different ones.
    package internal(set) var leftOut = 0

    package static let runsMax = 64

    package struct Run: Sendable, Equatable {
        package internal(set) var startedAt: WallTime
        /// Nil while it goes on.
        package internal(set) var endedAt: WallTime?
        package internal(set) var requests = 0
        /// What the rules deny was let through.
        package internal(set) var allowed = false
    }

    package init(job: String, scope: JobScope) {
        precondition(isJobName(job), "the name of a job is the name of its file")
        self.job = job
        self.scope = scope
    }

    package var isRunning: Bool { runs.last.map { $0.endedAt == nil } ?? false }

    /// - Parameter allowing: what the rules deny is let through.
    package mutating func begin(_ scope: JobScope, allowing: Bool, at now: WallTime) {
        precondition(!isRunning, "a job has one run at a time")
        self.scope = scope
        if runs.count == Journal.runsMax {
            runs.removeFirst()
            needed.forgetFirstRun()
            denied.forgetFirstRun()
        }
        runs.append(Run(startedAt: now, endedAt: nil, allowed: allowing))
    }

    /// Requests that could not be noted.
    package mutating func lose(_ count: Int) { leftOut += count }

    package mutating func end(at now: WallTime) {
        guard isRunning else { return }
        runs[runs.count - 1].endedAt = now
    }

    /// Takes what was observed in the latest run.
    package mutating func note(_ observation: Observation, recipes: RecipePaths) {
        guard !runs.isEmpty else { return }
        let request = observation.request
        var shape: PathShape?
        if !request.isTunnel {
            shape = isMethodOfRules(request.methodText) ? recipes.shape(of: request) : nil
            if shape == nil { leftOut += 1 }
        }
        if !observation.isEndOfTunnel { runs[runs.count - 1].requests += 1 }
        guard request.isTunnel || shape != nil else { return }
        let place = Place(
            host: request.destination, port: request.port, method: request.methodText,
            addresses: observation.addresses)
        let row = Row(observation, run: runs.count - 1)
        let isKept =
            if case .denied = observation.verdict {
                denied.add(row, at: place, shape)
            } else {
                needed.add(row, at: place, shape)
            }
        if !isKept { leftOut += 1 }
    }
}

/// Where requests of one method lead.
package struct Place: Sendable, Hashable, Comparable {
    package var host: DestinationHost
    package var port: UInt16
    package var method: String
    /// Those of the rule that allowed them. Empty: the rule names none.
    package var addresses: [AddressRange]

    /// Tunnels first, because requests inside come behind them.
    package static func < (a: Place, b: Place) -> Bool { a.order < b.order }

    private var order: (String, UInt16, Int, String, String) {
        ("\(host)", port, method == "CONNECT" ? 0 : 1, method, addresses.map { "\($0)" }.joined(separator: " "))
    }
}

/// What is known of requests that one condition of a rule stands for.
package struct Row: Sendable, Equatable {
    /// A bit for each run of the journal.
    package internal(set) var runs: UInt64
    package internal(set) var requests = 0
    /// Of those, what the rules deny and learning let through.
    package internal(set) var permitted = 0
    /// Tunnels that Larder opened.
    package internal(set) var opened = 0
    package internal(set) var requestBytesMax: UInt64
    package internal(set) var responseBytesMax: UInt64
    /// `credentialsMax` names at most, sorted.
    package internal(set) var credentials: [String]
    /// Why the last one was denied.
    package internal(set) var reason: DenialReason?
    package internal(set) var rule: Int?
    /// One of the requests.
    package internal(set) var sample: Sample

    init(
        runs: UInt64, requests: Int, permitted: Int, opened: Int, requestBytesMax: UInt64, responseBytesMax: UInt64,
        credentials: [String], reason: DenialReason?, rule: Int?, sample: Sample
    ) {
        self.runs = runs
        self.requests = requests
        self.permitted = permitted
        self.opened = opened
        self.requestBytesMax = requestBytesMax
        self.responseBytesMax = responseBytesMax
        self.credentials = credentials
        self.reason = reason
        self.rule = rule
        self.sample = sample
    }

    static let credentialsMax = 16

    /// A request as the rules see it, without what stands in its `Place`.
    package struct Sample: Sendable, Equatable {
        var scheme: Scheme
        var client: IPAddress?
        var user: String?
        /// Nil for CONNECT.
        var path: [UInt8]?
    }

    init(_ observation: Observation, run: Int) {
        let request = observation.request
        runs = 1 << UInt64(run)
        requests = observation.isEndOfTunnel ? 0 : 1
        permitted = observation.verdict == .permitted ? requests : 0
        opened = observation.isOpened ? requests : 0
        requestBytesMax = observation.requestBytes
        responseBytesMax = observation.responseBytes
        credentials = observation.credential.map { [$0] } ?? []
        if case .denied(let reason, let rule) = observation.verdict {
            self.reason = reason
            self.rule = rule
        }
        sample = Sample(
            scheme: request.scheme, client: request.client, user: request.identity?.name,
            path: request.path.map { Array($0) })
    }

    mutating func add(_ other: Row) {
        runs |= other.runs
        requests += other.requests
        permitted += other.permitted
        opened += other.opened
        requestBytesMax = max(requestBytesMax, other.requestBytesMax)
        responseBytesMax = max(responseBytesMax, other.responseBytesMax)
        credentials = Array(Set(credentials + other.credentials).sorted().prefix(Row.credentialsMax))
        reason = other.reason ?? reason
        rule = other.reason == nil ? rule : other.rule
    }
}
