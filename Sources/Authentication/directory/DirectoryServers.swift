import Message
/// Which directories have failed lately. One that has is avoided for a while, longer after each failure. Then one attempt at a time tries it again, so
/// that a directory that hangs does not hold up everybody once more.
package struct DirectoryServers: Sendable {
    private struct Trouble: Sendable {
        var failures: Int
        var avoidedUntil: Duration
        /// An attempt is finding out whether the directory works again. If it never says, others may try after this time.
        var triedUntil: Duration = .zero
    }
    private var troubles: [DirectoryURL: Trouble] = [:]

    static let pause = Duration.seconds(2)
    static let pauseMax = Duration.seconds(30)

    package init() {}

    /// The directory that an attempt asks next. Nil: there is none that could be asked now.
    ///
    /// - Parameters:
    ///   - tried: those that this attempt has asked already.
    ///   - limit: how long an attempt takes at most.
    package mutating func next(
        of urls: [DirectoryURL], after tried: Set<DirectoryURL>, now: Duration, limit: Duration
    ) -> DirectoryURL? {
        // Those of an earlier configuration.
        if troubles.count > urls.count { troubles = troubles.filter { urls.contains($0.key) } }
        for url in urls where !tried.contains(url) {
            guard let trouble = troubles[url] else { return url }
            guard trouble.avoidedUntil <= now, trouble.triedUntil <= now else { continue }
            troubles[url]?.triedUntil = now + limit
            return url
        }
        return nil
    }

    /// The directory has answered.
    ///
    /// - Returns: whether it had failed before.
    package mutating func succeeded(_ url: DirectoryURL) -> Bool { troubles.removeValue(forKey: url) != nil }

    /// - Returns: whether it had worked before.
    package mutating func failed(_ url: DirectoryURL, now: Duration) -> Bool {
        let known = troubles[url]
        // Attempts that were under way together fail together, and count once.
        if let known, known.avoidedUntil > now { return false }
        let failures = (known?.failures ?? 0) + 1
        let pause = min(DirectoryServers.pause * (1 << min(failures - 1, 10)), DirectoryServers.pauseMax)
        troubles[url] = Trouble(failures: failures, avoidedUntil: now + pause)
        return known == nil
    }
}

/// What a helper thread is asked about a user who is in no file.
package struct DirectoryQuestion: Sendable, Equatable {
    package let credentials: BasicCredentials
    /// Under which the answer is remembered: a keyed digest of settings, user and password.
    package let key: [UInt8]
}

/// What it found.
package enum DirectoryAnswer: Sendable, Equatable {
    case accepted(DirectoryUser)
    case refused
    /// No directory could be asked.
    case unavailable
}

/// The users whose passwords a directory has accepted, for all workers.
package struct DirectoryMemory: Sendable {
    private var users: ExpiringTable<[UInt8], DirectoryUser>
    private var lifetime: Duration = .zero

    /// The most users that are remembered. The oldest are forgotten first.
    private static let countMax = 16_384

    package init() { users = ExpiringTable(lifetime: .zero, countMax: DirectoryMemory.countMax) }

    func user(_ key: [UInt8], now: Duration) -> (value: DirectoryUser, expiry: Duration)? { users.value(key, now: now) }

    /// - Parameter lifetime: that of all entries. Another one than before forgets them.
    mutating func remember(_ user: DirectoryUser, _ key: [UInt8], for lifetime: Duration, now: Duration) {
        if lifetime != self.lifetime {
            self.lifetime = lifetime
            users = ExpiringTable(lifetime: lifetime, countMax: DirectoryMemory.countMax)
        }
        users.set(key, user, now: now)
    }
}
