package import Routing
package import Message

/// How origins and next proxies have received the credentials, over all workers.
///
/// What one worker has learnt about a place, the others need not ask for (`LogIn.Acceptance`). Credentials that a place refuses three times in a
/// row are not sent there again, so that nobody is locked out for Larder's sake. A new secret ends that.
package struct CredentialLedger: Sendable {
    package static let refusalsMax = 3
    /// How many refusing places are remembered, the latest, and how many accepting ones.
    static let countMax = 1024

    package struct Key: Hashable, Sendable {
        package let credential: String
        package let place: LogInPlace

        package init(credential: String, at place: LogInPlace) {
            self.credential = credential
            self.place = place
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

    /// What is known before a request is sent.
    package enum Standing: Equatable, Sendable {
        case unknown
        case accepted(LogIn.Acceptance)
        /// The secret must not be sent to the origin any more.
        case givenUp
    }

    private var entries: [Key: Entry] = [:]
    private var acceptances: [Key: (acceptance: LogIn.Acceptance, secretNumber: UInt64)] = [:]

    package init() {}

    /// Nil if the place has not refused the credential since it accepted it last.
    package func entry(of key: Key) -> Entry? { entries[key] }

    /// How the origin stands towards this secret.
    package func standing(_ key: Key, secretNumber: UInt64) -> Standing {
        if let entry = entries[key], entry.secretNumber == secretNumber, entry.isGivenUp { return .givenUp }
        guard let known = acceptances[key], known.secretNumber == secretNumber else { return .unknown }
        return .accepted(known.acceptance)
    }

    /// - Parameter acceptance: nil if other workers learn nothing from it.
    package mutating func accepted(_ key: Key, _ acceptance: LogIn.Acceptance?, secretNumber: UInt64) {
        entries[key] = nil
        guard let acceptance else { return }
        // Any other: its next worker asks the origin again.
        if acceptances.count >= CredentialLedger.countMax, acceptances[key] == nil, let other = acceptances.first {
            acceptances[other.key] = nil
        }
        acceptances[key] = (acceptance, secretNumber)
    }

    /// Counts a refusal. Returns the entry.
    package mutating func refused(_ key: Key, secretNumber: UInt64, now: WallTime) -> Entry {
        acceptances[key] = nil
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

    /// Forgets the refusals of these credentials, and where they were accepted.
    package mutating func clear(_ credentials: [String]) {
        acceptances = acceptances.filter { !credentials.contains($0.key.credential) }
        entries = entries.filter { !credentials.contains($0.key.credential) }
    }

    /// The places that refuse a credential, by name.
    package func refusals(of credential: String) -> [(place: LogInPlace, entry: Entry)] {
        entries.filter { $0.key.credential == credential }.map { ($0.key.place, $0.value) }
            .sorted { $0.place.shortName < $1.place.shortName }
    }
}
