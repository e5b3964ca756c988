/// The purges that began on this node and have not come back to it by the stream.
///
/// They are in force here, and the others may not know of them: neither the positions of nodes nor those of shared records count these purges. So as long
/// as there is one, other nodes are not asked, and a shared record that one of them concerns is not used.
///
/// ```
/// begin ──sent──▶ settle (the log has it, or has begun anew)
///   └──forget
/// ```
package struct PurgesUnderWay<Matcher> {
    /// - `matcher`: nil if it concerns everything.
    /// - `id`: of its entry; nil if the server has not taken it.
    /// - `beginnings`: how often the log had begun when the server took it.
    private var purges: [(ticket: UInt64, matcher: Matcher?, id: StreamID?, beginnings: Int)] = []
    private var lastTicket: UInt64 = 0
    private let sentMax: Int

    /// - Parameter sentMax: so many that the server has taken are told apart. The caller bounds the others.
    package init(sentMax: Int = 1_000) {
        precondition(sentMax > 0, "one stands for those that are too many")
        self.sentMax = sentMax
    }

    package var isEmpty: Bool { purges.isEmpty }
    package var count: Int { purges.count }

    /// Called before the purge is applied here.
    ///
    /// - Parameter matcher: nil if the purge concerns everything, or may do so.
    /// - Returns: what the other functions name the purge by.
    package mutating func begin(_ matcher: Matcher?) -> UInt64 {
        lastTicket += 1
        purges.append((lastTicket, matcher, nil, 0))
        return lastTicket
    }

    /// The server has taken the purge.
    package mutating func sent(_ ticket: UInt64, as id: StreamID, _ log: PurgeLog<Matcher>) {
        guard let index = purges.firstIndex(where: { $0.ticket == ticket }) else { return }
        purges[index].id = id
        purges[index].beginnings = log.beginnings
        let sent = purges.filter { $0.id != nil }
        guard sent.count > sentMax else { return }
        // The last of them comes back behind all others.
        purges.removeAll { $0.id != nil }
        purges.append((ticket, nil, sent.reduce(id) { max($0, $1.id ?? id) }, log.beginnings))
    }

    /// Another one stands for it, or it has not become a purge.
    package mutating func forget(_ ticket: UInt64) { purges.removeAll { $0.ticket == ticket } }

    /// Called when the log is complete up to its end. Purges that the server had taken before the log began anew are in it, or are lost with the data of the server; who
    /// has missed one then marks everything.
    package mutating func settle(_ log: PurgeLog<Matcher>) {
        purges.removeAll { purge in
            guard let id = purge.id else { return false }
            return log.end >= id || log.beginnings != purge.beginnings
        }
    }

    /// Whether one of them concerns a record, or may do so.
    package func concerns(_ isConcerned: (Matcher) -> Bool) -> Bool {
        purges.contains { $0.matcher.map(isConcerned) ?? true }
    }
}

extension PurgesUnderWay: Sendable where Matcher: Sendable {}
