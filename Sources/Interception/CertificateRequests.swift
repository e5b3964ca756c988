package import Message

/// The origins that have asked for a certificate of the client. Larder had none to show, and the client's own does not
/// pass an opened tunnel.
///
/// Bounded in number and in time. The owner locks it: all workers share one.
package struct CertificateRequests: Sendable {
    package struct Entry: Sendable, Equatable {
        /// How many connections, since the first time.
        package var count: Int
        /// Whether the origin ended a connection because it got none. Others go on without a certificate.
        package var isRequired: Bool
        package var lastAt: WallTime

        package init(count: Int, isRequired: Bool, lastAt: WallTime) {
            self.count = count
            self.isRequired = isRequired
            self.lastAt = lastAt
        }
    }

    package static let countMax = 1024

    private var table: RecentTable<String, Entry>

    package init(countMax: Int = CertificateRequests.countMax) { table = RecentTable(countMax: countMax) }

    /// The origin has asked for a certificate when a connection was made.
    ///
    /// - Parameter host: a name in lower case or an address.
    package mutating func noteRequest(by host: String, now: Moment) {
        var entry = table.entry(host, now: now) ?? Entry(count: 0, isRequired: false, lastAt: now.wallTime)
        entry.count += 1
        entry.lastAt = now.wallTime
        table.set(host, entry, now: now)
    }

    /// An origin that had asked ended the connection, because it got no certificate. Returns true if that was not known, which is worth a message.
    package mutating func noteRefusal(by host: String, now: Moment) -> Bool {
        var entry = table.entry(host, now: now) ?? Entry(count: 1, isRequired: false, lastAt: now.wallTime)
        let isNews = !entry.isRequired
        entry.isRequired = true
        entry.lastAt = now.wallTime
        table.set(host, entry, now: now)
        return isNews
    }

    /// The latest first.
    package func list(now: Moment) -> [(host: String, entry: Entry)] {
        table.list(now: now).map { ($0.key, $0.entry) }
    }
}
