package import Message

/// Which next proxies have failed lately, for all requests.
package struct NextProxyHealth: Sendable {
    package struct Entry: Equatable, Sendable {
        package let failure: NextProxyFailure
        /// When it failed first, without a success since.
        package let since: WallTime
    }
    private struct Record {
        var circuit = Circuit()
        var entry: Entry?
    }
    private let terms: Circuit.Terms
    private var records: [NextProxy: Record] = [:]

    package init(_ terms: Circuit.Terms = .nextProxy) { self.terms = terms }

    /// Whether other routes should be tried first. False for all proxies that never failed, which costs nothing.
    package mutating func isDown(_ proxy: NextProxy, now: Duration) -> Bool {
        records[proxy]?.circuit.isOpen(now: now, terms) ?? false
    }

    /// - Returns: whether this is news.
    package mutating func failed(
        _ proxy: NextProxy, _ failure: NextProxyFailure, now: Duration, wallTime: WallTime
    ) -> Bool {
        var record = records[proxy] ?? Record()
        let isNews = record.circuit.failed(now: now, terms)
        record.entry = Entry(failure: failure, since: record.entry?.since ?? wallTime)
        records[proxy] = record
        return isNews
    }

    /// - Returns: whether this is news.
    package mutating func succeeded(_ proxy: NextProxy) -> Bool {
        guard !records.isEmpty, var record = records.removeValue(forKey: proxy) else { return false }
        return record.circuit.succeeded(terms)
    }

    /// The failure of a proxy that has not worked since. Nil for one that works as far as known.
    package func entry(of proxy: NextProxy) -> Entry? { records[proxy]?.entry }
}
