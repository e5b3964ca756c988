package import Message
package import Rules

/// The clients that did not accept Larder's certificate for a host, because they do not trust its authority or pin another one.
///
/// Bounded in number and in time. The owner locks it: all workers share one.
package struct LeafRefusals: Sendable {
    /// A client, and the host whose certificate it did not accept.
    package struct Key: Hashable, Sendable {
        /// The user's name, otherwise the client's address. Nil for a client of a Unix socket.
        package let client: String?
        package let host: DestinationHost

        package init(client: String?, host: DestinationHost) {
            self.client = client
            self.host = host
        }
    }

    /// What a client did.
    package enum Signal: Equatable, Sendable, CustomStringConvertible {
        /// It sent this alert (RFC 8446 §6.2).
        case alert(UInt8)
        /// It closed the connection before it sent a request. Some clients do so in place of an alert, others when they opened the
        /// connection in advance and have no use for it. So it counts from the second time within `endsWindow`.
        case ended

        /// `alert 48, unknown_ca`.
        package var description: String {
            switch self {
            case .alert(let code): "alert \(code), \(Signal.names[code] ?? "unnamed")"
            case .ended: "it closed the connection twice before a request"
            }
        }

        /// The alerts by which clients refuse a certificate (RFC 8446 §6).
        static let names: [UInt8: String] = [
            42: "bad_certificate", 43: "unsupported_certificate", 45: "certificate_expired", 46: "certificate_unknown",
            48: "unknown_ca",
        ]
    }

    package struct Entry: Sendable, Equatable {
        /// How often, since the first time.
        package var count: Int
        package var last: Signal
        package var lastAt: WallTime
        /// Whether the signals prove a refusal.
        package var isCertain: Bool
    }

    /// The alerts that count as a refusal.
    package static let alerts = Set(Signal.names.keys)
    package static let countMax = 10_000
    package static let endsWindow = Duration.seconds(60)

    private var table: RecentTable<Key, Entry>

    package init(countMax: Int = LeafRefusals.countMax) { table = RecentTable(countMax: countMax) }

    package var count: Int { table.count }
    package var isEmpty: Bool { table.count == 0 }

    /// Remembers a signal. Returns true if it makes a refusal certain that was not before, which is worth a message.
    package mutating func note(_ signal: Signal, of key: Key, now: Moment) -> Bool {
        let earlier = table.entry(key, now: now)
        let isCertain: Bool
        switch signal {
        case .alert(let code):
            guard LeafRefusals.alerts.contains(code) else { return false }
            isCertain = true
        case .ended:
            isCertain =
                earlier?.isCertain == true || table.age(key, now: now).map { $0 <= LeafRefusals.endsWindow } ?? false
        }
        let entry = Entry(count: (earlier?.count ?? 0) + 1, last: signal, lastAt: now.wallTime, isCertain: isCertain)
        table.set(key, entry, now: now)
        return isCertain && earlier?.isCertain != true
    }

    /// The client has accepted the certificate: it trusts the authority now.
    package mutating func forget(_ key: Key) { table.remove(key) }

    /// Whether the client has refused the certificate for the host within the last day.
    package func contains(_ key: Key, now: Moment) -> Bool {
        table.entry(key, now: now)?.isCertain ?? false
    }

    /// All certain refusals, the latest first.
    package func list(now: Moment) -> [(key: Key, entry: Entry)] {
        table.list(now: now).filter(\.entry.isCertain)
    }
}
