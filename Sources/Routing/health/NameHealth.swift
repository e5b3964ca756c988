package import Message

/// Which names the name servers have been silent about lately, so that not every request waits for them.
///
/// A name that was silent once has a `Circuit`: its look-ups fail at once, and after a pause one of them tries. Servers that were silent about
/// several names in a row, with no answer in between, are taken for silent: look-ups of other names try as well. They are not refused, because
/// whoever chooses names could make servers seem silent. A look-up that tries waits for a moment only (`Permit.attempt`).
///
/// Servers are a text that names the set that is asked. Times are those of a clock that never goes back, since any moment.
package struct NameHealth: Sendable {
    package enum Permit: Equatable, Sendable {
        /// Ask, and wait as long as the request may.
        case ask
        /// Ask, and wait for a moment: servers that are well answer within it.
        case attempt
        /// Do not ask.
        case refusal
    }

    /// What came of asking for a name.
    package enum Outcome: Equatable, Sendable {
        /// An answer, be it that the name does not exist.
        case answer
        /// An answer to one of several questions. The others are open.
        case partialAnswer
        /// A failure that took no time: nothing is gained by not asking. It does not say whether the servers are well.
        case quickFailure
        /// Nothing came in time, or a failure that took long.
        case silence
    }

    /// What is worth a line in the log.
    package enum News: Equatable, Sendable {
        case nameSilent, serversSilent, nameAnswered, serversAnswered
    }

    /// A name about which its servers have been silent.
    package struct Entry: Equatable, Sendable {
        package let name: String
        package let servers: String
        package let since: WallTime
        /// After so long the next look-up tries. Zero: at once.
        package let pauseLeft: Duration
    }

    private struct Silence: Equatable, Sendable {}

    private struct Servers: Sendable {
        /// How many names have been found silent since the last answer to anything.
        var silentInARow = 0
        var names = HealthTable<String, Silence>(countMax: NameHealth.namesMax)

        func areSilent(_ terms: Circuit.Terms) -> Bool { silentInARow >= terms.failuresMax }
    }

    /// Beyond so many names of the same servers, one of them is forgotten.
    package static let namesMax = 1024
    /// More sets of servers than a configuration has. Each change of resolv.conf may make a new one.
    package static let serversMax = 64

    private var servers: [String: Servers] = [:]

    package init() {}

    /// - Parameter terms: of the circuit of origins. `failuresMax` is the number of names in a row after which servers are taken for silent; for a
    ///   name, once suffices.
    package mutating func permit(_ name: String, of key: String, now: Duration, _ terms: Circuit.Terms) -> Permit {
        guard let record = servers[key] else { return .ask }
        guard record.names.entry(of: name, now: now, terms.ofName) != nil else {
            return record.areSilent(terms) ? .attempt : .ask
        }
        return servers[key]?.names.isDown(name, now: now, terms.ofName) == true ? .refusal : .attempt
    }

    package mutating func note(
        _ outcome: Outcome, of name: String, by key: String, now: Duration, wallTime: WallTime, _ terms: Circuit.Terms
    ) -> News? {
        switch outcome {
        case .answer, .partialAnswer: answered(name, key, isWhole: outcome == .answer, terms)
        case .quickFailure: forget(name, key, terms)
        case .silence: silent(name, key, now, wallTime, terms)
        }
    }

    private mutating func answered(_ name: String, _ key: String, isWhole: Bool, _ terms: Circuit.Terms) -> News? {
        guard let record = servers[key] else { return nil }
        if record.areSilent(terms) {
            // What was silent with them is tried at once.
            servers[key] = nil
            return .serversAnswered
        }
        servers[key]?.silentInARow = 0
        return isWhole ? forget(name, key, terms) : nil
    }

    @discardableResult
    private mutating func forget(_ name: String, _ key: String, _ terms: Circuit.Terms) -> News? {
        guard let wasSilent = servers[key]?.names.succeeded(name, terms.ofName) else { return nil }
        if let record = servers[key], record.names.count == 0, record.silentInARow == 0 { servers[key] = nil }
        return wasSilent ? .nameAnswered : nil
    }

    private mutating func silent(
        _ name: String, _ key: String, _ now: Duration, _ wallTime: WallTime, _ terms: Circuit.Terms
    ) -> News? {
        if servers[key] == nil, servers.count >= NameHealth.serversMax, let other = servers.first {
            servers[other.key] = nil
        }
        var record = servers[key] ?? Servers()
        defer { servers[key] = record }
        let wereSilent = record.areSilent(terms)
        guard record.names.failed(name, Silence(), now: now, wallTime: wallTime, terms.ofName) else { return nil }
        record.silentInARow += 1
        guard !wereSilent else { return nil }
        return record.areSilent(terms) ? .serversSilent : .nameSilent
    }

    /// The entry of a name, whatever servers were asked for it.
    package func entry(of name: String, now: Duration, _ terms: Circuit.Terms) -> Entry? {
        for (key, record) in servers {
            if let entry = record.names.entry(of: name, now: now, terms.ofName) { return Entry(name, key, entry) }
        }
        return nil
    }

    /// All names about which servers have been silent, the one that was so first at the front.
    package func entries(now: Duration, _ terms: Circuit.Terms) -> [Entry] {
        servers.flatMap { key, record in
            record.names.down(now: now, terms.ofName).map { Entry($0.subject, key, $0.entry) }
        }.sorted { ($0.since, $0.name) < ($1.since, $1.name) }
    }
}

extension NameHealth.Entry {
    fileprivate init<Failure>(_ name: String, _ servers: String, _ entry: HealthTable<String, Failure>.Entry) {
        self.init(name: name, servers: servers, since: entry.since, pauseLeft: entry.pauseLeft)
    }
}

extension Circuit.Terms {
    fileprivate var ofName: Circuit.Terms { Circuit.Terms(failuresMax: 1, pause: pause, pauseMax: pauseMax) }
}
