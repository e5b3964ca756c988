package import Message

/// What the edge fetches, to get a script or to learn that it has not changed.
package struct PACFetch: Equatable, Sendable {
    package let url: TargetURI
    /// The version in use. Nil: none.
    package let version: PACDownload.Version?

    package init(_ url: TargetURI, version: PACDownload.Version? = nil) {
        self.url = url
        self.version = version
    }

    /// The fields that make a request conditional (RFC 9110 §13.1.2, §13.1.3). Empty unless the version came from this very URL: elsewhere its
    /// validators mean nothing.
    package func conditions(at hop: TargetURI) -> [(name: String, value: String)] {
        guard let version, version.url == hop else { return [] }
        if let tag = version.entityTag { return [("If-None-Match", tag)] }
        if let date = version.lastModified { return [("If-Modified-Since", date)] }
        return []
    }

    /// What a response means for the fetch.
    package enum Hop: Equatable, Sendable {
        case read
        case unchanged
        case follow(TargetURI)
        case fail(PACFetchFault)
    }

    /// - Parameters:
    ///   - hop: where the response comes from.
    ///   - followed: how many redirects led there.
    package func hop(at hop: TargetURI, status: Int, location: String?, followed: Int) -> Hop {
        switch status {
        case 200: return .read
        case 304 where !conditions(at: hop).isEmpty: return .unchanged
        case 301, 302, 303, 307, 308:
            guard let next = location.flatMap({ hop.resolving($0.utf8) }) else { return .fail(.redirectNowhere) }
            // Whoever is on the way could put a script of their own in the place of one that https protects.
            guard next.scheme == .https || hop.scheme == .http else { return .fail(.redirectToPlain) }
            guard followed < PACLimits.redirectsMax else { return .fail(.redirects) }
            return .follow(next)
        default: return .fail(.status(status))
        }
    }
}

/// Why a script was not fetched.
package enum PACFetchFault: Error, Equatable, Sendable {
    case status(Int)
    case redirects
    case redirectNowhere
    case redirectToPlain
    case tooLong
    /// No answer. The text says why.
    case network(String)
    /// What came is no script that can be used.
    case unusable(String)
    /// Nobody has tried yet.
    case untried

    package var text: String {
        switch self {
        case .status(let status): "the server answers with status \(status)"
        case .redirects: "the server redirects more than \(PACLimits.redirectsMax) times"
        case .redirectNowhere: "the server redirects without a URL that can be followed"
        case .redirectToPlain: "the server redirects from https to http"
        case .tooLong: "it is longer than \(PACMessageBuffer.scriptBytesMax) bytes"
        case .network(let text): text
        case .unusable(let text): "it cannot be used: \(text)"
        case .untried: "nobody has tried yet"
        }
    }
}

/// The script at a URL: which version is in use, and when it is fetched again.
///
///     begin ──▶ answered ──unchanged, failed──▶ begin
///                  └──read──▶ accepted, refused ──▶ begin
///
/// Time is that of a clock that never goes back, since any moment; what people see is the time of day.
package struct PACDownload: Equatable, Sendable {
    /// A script as a server sent it, and by what the server tells whether it has changed (RFC 9110 §8.8).
    package struct Version: Equatable, Sendable {
        /// Where it came from, behind all redirects.
        package let url: TargetURI
        package let entityTag: String?
        package let lastModified: String?

        package init(from url: TargetURI, entityTag: String? = nil, lastModified: String? = nil) {
            self.url = url
            self.entityTag = entityTag
            self.lastModified = lastModified
        }
    }

    package enum Answer: Equatable, Sendable {
        case script([UInt8], Version)
        case unchanged
        case failed(PACFetchFault)
    }

    /// What the driver does with an answer.
    package enum Step: Equatable, Sendable {
        /// Reads the script. `accepted` or `refused` follows.
        case read([UInt8], Version)
        /// The version in use is the present one.
        ///
        /// - Parameter isNews: the attempt before had failed.
        case keep(isNews: Bool)
        /// - Parameter isNews: it did not fail like this before.
        case failed(PACFetchFault, isNews: Bool)
    }

    package struct Failure: Equatable, Sendable {
        package let fault: PACFetchFault
        /// The first of the failures without a success in between.
        package let since: WallTime
        fileprivate let count: Int
    }

    private enum State: Equatable { case idle, fetching, reading }

    package let url: TargetURI
    private var refresh: Duration
    private var state = State.idle
    private var dueAt = Duration.zero
    /// The version in use. Nil: there is no script.
    package private(set) var version: Version?
    /// When the server sent the version in use, or confirmed it.
    package private(set) var fetchedAt: WallTime?
    private var confirmedAt: Duration?
    /// Nil if the last attempt succeeded, or if there was none.
    package private(set) var failure: Failure?

    /// - Parameter refresh: how long after a success the script is fetched again.
    package init(_ url: TargetURI, refresh: Duration) {
        self.url = url
        self.refresh = refresh
    }

    /// Takes the setting of a new configuration.
    package mutating func adopt(refresh: Duration, now: Duration) {
        self.refresh = refresh
        dueAt = min(dueAt, now + refresh)
    }

    /// For how long the server has not confirmed the version in use. Nil: there is none.
    package func age(now: Duration) -> Duration? { confirmedAt.map { now - $0 } }

    /// The script is fetched as soon as possible.
    package mutating func expedite() { dueAt = .zero }

    /// - Returns: what to fetch. Nil if it is not time, or under way.
    package mutating func begin(now: Duration) -> PACFetch? {
        guard state == .idle, now >= dueAt else { return nil }
        state = .fetching
        return PACFetch(url, version: version)
    }

    package mutating func answered(_ answer: Answer, now: Duration, wallTime: WallTime) -> Step {
        precondition(state == .fetching, "what was not asked for is not answered")
        switch answer {
        case .script(let text, let version):
            state = .reading
            return .read(text, version)
        case .unchanged:
            let isNews = failure != nil
            succeeded(now, wallTime)
            return .keep(isNews: isNews)
        case .failed(let fault): return .failed(fault, isNews: failed(fault, now, wallTime))
        }
    }

    /// The script is in use from now on.
    package mutating func accepted(_ version: Version, now: Duration, wallTime: WallTime) {
        precondition(state == .reading, "a script is read first")
        self.version = version
        succeeded(now, wallTime)
    }

    /// The script cannot be used. The version before stays.
    ///
    /// - Returns: whether this is news.
    package mutating func refused(_ fault: PACFetchFault, now: Duration, wallTime: WallTime) -> Bool {
        precondition(state == .reading, "a script is read first")
        return failed(fault, now, wallTime)
    }

    private mutating func succeeded(_ now: Duration, _ wallTime: WallTime) {
        state = .idle
        fetchedAt = wallTime
        confirmedAt = now
        failure = nil
        dueAt = now + refresh
    }

    private mutating func failed(_ fault: PACFetchFault, _ now: Duration, _ wallTime: WallTime) -> Bool {
        state = .idle
        let isNews = failure?.fault != fault
        let count = (failure?.count ?? 0) + 1
        failure = Failure(fault: fault, since: failure?.since ?? wallTime, count: count)
        let pause = PACLimits.fetchPause * (1 << min(count - 1, 16))
        dueAt = now + min(pause, refresh)
        return isNews
    }
}
