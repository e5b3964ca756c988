package import Message

/// Which of many subjects have failed lately, for all requests: a `Circuit` for each.
package struct HealthTable<Subject: Hashable & Sendable, Failure: Equatable & Sendable>: Sendable {
    package struct Entry: Equatable, Sendable {
        package let failure: Failure
        /// When it failed first, without a success since.
        package let since: WallTime
        /// Whether requests fail, or go elsewhere, without trying it.
        package let isDown: Bool
        /// After so long the next request tries it. Zero: at once.
        package let pauseLeft: Duration
    }
    private struct Record {
        var circuit = Circuit()
        var failure: Failure
        let since: WallTime
    }
    private let countMax: Int
    private var records: [Subject: Record] = [:]

    /// - Parameter countMax: beyond so many subjects that do not work, one of the others is forgotten.
    package init(countMax: Int = 4096) {
        precondition(countMax > 0, "a table remembers something")
        self.countMax = countMax
    }

    /// How many subjects have failed, without a success since.
    package var count: Int { records.count }

    /// Whether a request should go elsewhere, or fail at once. False for all that never failed, which costs nothing. If it is false for
    /// one that failed, this request tries it for all others.
    package mutating func isDown(_ subject: Subject, now: Duration, _ terms: Circuit.Terms) -> Bool {
        guard !records.isEmpty else { return false }
        return records[subject]?.circuit.isOpen(now: now, terms) ?? false
    }

    /// - Returns: whether this is news.
    package mutating func failed(
        _ subject: Subject, _ failure: Failure, now: Duration, wallTime: WallTime, _ terms: Circuit.Terms
    ) -> Bool {
        if records[subject] == nil, records.count >= countMax { forgetOne(now: now, terms) }
        var record = records[subject] ?? Record(failure: failure, since: wallTime)
        let isNews = record.circuit.failed(now: now, terms)
        record.failure = failure
        records[subject] = record
        return isNews
    }

    /// - Returns: whether this is news.
    package mutating func succeeded(_ subject: Subject, _ terms: Circuit.Terms) -> Bool {
        guard !records.isEmpty, var record = records.removeValue(forKey: subject) else { return false }
        return record.circuit.succeeded(terms)
    }

    /// The state of a subject that has not worked since it failed. Nil for one that works as far as known.
    package func entry(of subject: Subject, now: Duration, _ terms: Circuit.Terms) -> Entry? {
        records[subject].map { entry(of: $0, now: now, terms) }
    }

    /// All subjects that have failed so often that requests do not try them, the one that failed first at the front.
    package func down(now: Duration, _ terms: Circuit.Terms) -> [(subject: Subject, entry: Entry)] {
        records.map { (subject: $0.key, entry: entry(of: $0.value, now: now, terms)) }.filter { $0.entry.isDown }
            .sorted { $0.entry.since < $1.entry.since }
    }

    private func entry(of record: Record, now: Duration, _ terms: Circuit.Terms) -> Entry {
        Entry(
            failure: record.failure, since: record.since, isDown: record.circuit.hasOpened(terms),
            pauseLeft: record.circuit.pauseLeft(now: now))
    }

    /// One that requests try anyway, if there is any.
    private mutating func forgetOne(now: Duration, _ terms: Circuit.Terms) {
        let index = records.firstIndex { !$0.value.circuit.hasOpened(terms) } ?? records.startIndex
        records.remove(at: index)
    }
}
