package import Access
package import Accounts
package import Framing
package import Transaction

/// What one worker has counted, read at one moment; or the sum over several.
///
/// Counters count from the start of the process and never fall. Gauges say what is now.
package struct Counts: Sendable, Equatable {
    private var counters = [UInt64](repeating: 0, count: Counter.allCases.count)
    private var gauges = [UInt64](repeating: 0, count: Gauge.allCases.count)
    private var refusals = [UInt64](repeating: 0, count: Refusal.allCases.count)
    private var denials = [UInt64](repeating: 0, count: DenialReason.allCases.count)
    private var violations = [UInt64](repeating: 0, count: FramingError.allCases.count)
    private var closes = [UInt64](repeating: 0, count: CloseReason.allCases.count)

    package init() {}

    package init(_ worker: Counters) {
        for counter in Counter.allCases { self[counter] = worker[counter] }
        for index in gauges.indices { gauges[index] = worker.gauges[index] }
        for index in refusals.indices { refusals[index] = worker.refusals[index] }
        for index in denials.indices { denials[index] = worker.denials[index] }
        for index in violations.indices { violations[index] = worker.violations[index] }
        for index in closes.indices { closes[index] = worker.closes[index] }
    }

    package subscript(_ counter: Counter) -> UInt64 {
        get { counters[counter.rawValue] }
        set { counters[counter.rawValue] = newValue }
    }

    package subscript(_ gauge: Gauge) -> UInt64 {
        get { gauges[gauge.rawValue] }
        set { gauges[gauge.rawValue] = newValue }
    }

    package subscript(_ refusal: Refusal) -> UInt64 {
        get { refusals[Int(refusal.rawValue)] }
        set { refusals[Int(refusal.rawValue)] = newValue }
    }

    package subscript(_ reason: DenialReason) -> UInt64 {
        get { denials[Counters.index(of: reason)] }
        set { denials[Counters.index(of: reason)] = newValue }
    }

    package subscript(_ violation: FramingError) -> UInt64 {
        get { violations[Counters.index(of: violation)] }
        set { violations[Counters.index(of: violation)] = newValue }
    }

    package subscript(_ reason: CloseReason) -> UInt64 {
        get { closes[Int(reason.rawValue)] }
        set { closes[Int(reason.rawValue)] = newValue }
    }

    package subscript(_ outcome: RequestOutcome) -> UInt64 { outcome.counters.reduce(0) { $0 &+ self[$1] } }

    package mutating func add(_ other: Counts) {
        func add(_ more: [UInt64], to sums: inout [UInt64]) {
            for index in sums.indices { sums[index] &+= more[index] }
        }
        add(other.counters, to: &counters)
        add(other.gauges, to: &gauges)
        add(other.refusals, to: &refusals)
        add(other.denials, to: &denials)
        add(other.violations, to: &violations)
        add(other.closes, to: &closes)
    }
}

// MARK: what follows from several counters

extension Counts {
    var requestsAnswered: UInt64 { RequestOutcome.allCases.reduce(0) { $0 &+ self[$1] } }
    var clientsOpen: UInt64 { self[.clientConnectionsAccepted] &- self[.clientConnectionsClosed] }
    var tunnelsOpened: UInt64 { self[.tunnels] &+ self[.upgrades] }
    var tunnelsOpen: UInt64 { tunnelsOpened &- self[.tunnelsClosed] }

    var originsBusy: UInt64 {
        let (open, idle) = (self[.originConnectionsOpen], self[.originConnectionsIdle])
        return open > idle ? open - idle : 0
    }

    /// Bytes that clients got and that no origin had to send.
    package var bytesSaved: UInt64 {
        let (sent, fetched) = (self[.bytesToClients], self[.bytesFromOrigins])
        return min(self[.bytesFromCache], sent > fetched ? sent - fetched : 0)
    }

    /// Hits among the requests that the store or an origin answered; nil if there were none.
    package var requestHitRatio: Double? {
        var hits: UInt64 = 0
        var answered: UInt64 = 0
        for outcome in RequestOutcome.allCases where outcome.countsForHitRatio {
            answered &+= self[outcome]
            if outcome.isFromCache { hits &+= self[outcome] }
        }
        return answered == 0 ? nil : Double(hits) / Double(answered)
    }

    /// The part of the bytes sent to clients that came from the store; nil before the first byte.
    package var byteHitRatio: Double? {
        let sent = self[.bytesToClients]
        return sent == 0 ? nil : min(1, Double(self[.bytesFromCache]) / Double(sent))
    }
}
