import Message

/// Failures to log in of one address or of one name, as nodes of a fleet tell each other: under a keyed hash, so that who reads it learns neither.
package struct SharedFailure: Equatable, Sendable {
    /// 128 bits.
    package let name: SipHash.Digest
    package let count: Int
    /// Whether it is the name of a user, and not an address.
    package let isOfUser: Bool

    package init(name: SipHash.Digest, count: Int, isOfUser: Bool) {
        self.name = name
        self.count = count
        self.isOfUser = isOfUser
    }
}

/// What all nodes of a fleet have counted of failures to log in, this one included, and what the others have not been told of.
struct FleetFailures: Sendable {
    private struct Key: Hashable {
        let high, low: UInt64
        let isOfUser: Bool

        init(_ name: SipHash.Digest, isOfUser: Bool) {
            high = name.high
            low = name.low
            self.isOfUser = isOfUser
        }

        var digest: SipHash.Digest { SipHash.Digest(low: low, high: high) }
    }

    private let hash: SipHash
    private let bounds: FailureCounts.Bounds
    private var sources: ExpiringTable<Key, Int>
    private var names: ExpiringTable<Key, Int>
    private var untold: [Key: Int] = [:]

    /// More addresses and names do not wait to be told: they count on this node alone.
    private static let untoldMax = 4_096

    init(_ hash: SipHash, _ bounds: FailureCounts.Bounds) {
        self.hash = hash
        self.bounds = bounds
        sources = ExpiringTable(lifetime: bounds.window, countMax: bounds.countMax)
        names = ExpiringTable(lifetime: bounds.nameWindow, countMax: bounds.countMax)
    }

    func ofSource(_ address: IPAddress?, now: Duration) -> (value: Int, expiry: Duration)? {
        address.flatMap { sources.value(key($0), now: now) }
    }

    func ofName(_ name: String, now: Duration) -> (value: Int, expiry: Duration)? { names.value(key(name), now: now) }

    /// Counts a failure on this node. Clients of Unix sockets are those of this machine, and no other node is told of them.
    ///
    /// - Returns: how often the address has failed, and whether it or the name begins to have to wait.
    mutating func failed(_ address: IPAddress?, as name: String?, now: Duration) -> (count: Int, begins: Bool) {
        var result = (count: 0, begins: false)
        if let address {
            let key = key(address)
            result.begins = count(key, 1, now: now)
            result.count = sources.value(key, now: now)?.value ?? 0
            note(key)
        }
        if let name {
            let key = key(name)
            if count(key, 1, now: now) { result.begins = true }
            note(key)
        }
        return result
    }

    private mutating func note(_ key: Key) {
        guard untold.count < FleetFailures.untoldMax || untold[key] != nil else { return }
        untold[key, default: 0] += 1
    }

    mutating func takeUntold(_ countMax: Int) -> [SharedFailure] {
        guard !untold.isEmpty else { return [] }
        let taken = untold.prefix(countMax).map {
            SharedFailure(name: $0.key.digest, count: $0.value, isOfUser: $0.key.isOfUser)
        }
        for failure in taken { untold[Key(failure.name, isOfUser: failure.isOfUser)] = nil }
        return taken
    }

    /// - Returns: whether somebody begins to have to wait.
    mutating func count(_ told: SharedFailure, now: Duration) -> Bool {
        count(Key(told.name, isOfUser: told.isOfUser), max(0, told.count), now: now)
    }

    private mutating func count(_ key: Key, _ more: Int, now: Duration) -> Bool {
        let most = key.isOfUser ? bounds.perNameMax : bounds.perSourceMax
        let count =
            key.isOfUser
            ? FailureCounts.count(key, more, in: &names, now: now)
            : FailureCounts.count(key, more, in: &sources, now: now)
        return count >= most && count - more < most
    }

    private func key(_ address: IPAddress) -> Key {
        let source = FailureCounts.Source(address).address ?? address
        return key(Array("\(source)".utf8), isOfUser: false)
    }

    private func key(_ name: String) -> Key { key(Array(name.utf8), isOfUser: true) }

    private func key(_ text: [UInt8], isOfUser: Bool) -> Key {
        let message = [isOfUser ? 1 : 0] + text
        return Key(hash.digest(of: message.span, 0..<message.count), isOfUser: isOfUser)
    }
}
