package import Message

/// How origins have received the credentials, over all workers.
///
/// Credentials that an origin refuses three times in a row are not sent there again, so that nobody is locked out for Larder's sake. A new
/// secret ends that.
package struct CredentialLedger: Sendable {
    package static let refusalsMax = 3
    /// How many refusing origins are remembered, the latest.
    static let countMax = 1024

    package struct Key: Hashable, Sendable {
        package let credential: String
        package let origin: Origin

        package init(credential: String, origin: Origin) {
            self.credential = credential
            self.origin = origin
        }
    }

    package struct Entry: Sendable, Equatable {
        /// Refusals since the last success.
        package fileprivate(set) var refusals = 0
        /// When the first of them came.
        package fileprivate(set) var since: WallTime
        /// Tells the secrets of one credential apart.
        fileprivate let secretNumber: UInt64
        package var isGivenUp: Bool { refusals >= CredentialLedger.refusalsMax }
    }

    private var entries: [Key: Entry] = [:]

    package init() {}

    /// Nil if the origin has not refused the credential since it accepted it last.
    package func entry(of key: Key) -> Entry? { entries[key] }

    /// Whether the secret must not be sent to the origin any more.
    package func isGivenUp(_ key: Key, secretNumber: UInt64) -> Bool {
        guard let entry = entries[key], entry.secretNumber == secretNumber else { return false }
        return entry.isGivenUp
    }

    package mutating func accepted(_ key: Key) { entries[key] = nil }

    /// Counts a refusal. Returns the entry.
    package mutating func refused(_ key: Key, secretNumber: UInt64, now: WallTime) -> Entry {
        var entry = Entry(since: now, secretNumber: secretNumber)
        if let known = entries[key], known.secretNumber == secretNumber {
            entry = known
        } else if entries.count >= CredentialLedger.countMax {
            let oldest = entries.min { $0.value.since < $1.value.since }
            if let oldest { entries[oldest.key] = nil }
        }
        entry.refusals += 1
        entries[key] = entry
        return entry
    }

    /// Forgets the refusals of these credentials.
    package mutating func clear(_ credentials: [String]) {
        entries = entries.filter { !credentials.contains($0.key.credential) }
    }

    /// The origins that refuse a credential, by name.
    package func refusals(of credential: String) -> [(origin: Origin, entry: Entry)] {
        entries.filter { $0.key.credential == credential }.map { ($0.key.origin, $0.value) }
            .sorted { "\($0.origin.endpoint)" < "\($1.origin.endpoint)" }
    }
}
