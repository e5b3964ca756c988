import Accounts
import EventLoop
import Fleet
import Message
import Redis
import Settings
import Storage

/// A node of a fleet: everything that is done with Redis, on one thread. `FleetDesk` gives it jobs.
///
/// There are two connections, because one of them waits for purges (`XREAD BLOCK`). Files beside this one hold the reads, the writes and the purges.
final class FleetNode {
    let terms: FleetTerms
    let loop: EventLoop
    let figures: Locked<FleetFigures>
    let zones: Zones
    let resolver: Resolver
    /// For reads, writes and announcements.
    let link: RedisLink
    /// Waits for purges.
    let feed: RedisLink
    private var clock: Timer!

    // Reads (FleetNode+Reading.swift)
    let readGate: ReadGate
    var circuit = Circuit()
    var reads: [[UInt8]: [Wake]] = [:]

    // Writes (FleetNode+Writing.swift)
    var waitingWrites = WaitingWrites<SharedWrite>()
    var writesUnderWay = 0
    /// Of their bodies.
    var bytesUnderWay = 0
    /// No write begins before this time, because the server refused one.
    var writesPausedUntil: MonotonicTime?
    /// The names of responses that were removed here and perhaps are in Redis.
    var removals: Set<[UInt8]> = []
    /// Whether there were more removals than are remembered.
    var hasForgottenRemovals = false

    // Unsafe requests (FleetNode+Invalidating.swift)
    var invalidations = Invalidations()
    private(set) var invalidationTimer: PreciseTimer!

    /// That of the server (FleetNode+Clock.swift).
    var serverClock = ServerClock()
    /// Whether the log has said that the clocks differ.
    var clocksDiffer = false

    /// Limits and log-ins.
    private(set) var counting: FleetCounting!

    // Purges (FleetNode+Purging.swift)
    let effects: FleetEffects
    let applying: CallPool
    var follower: StreamFollower
    var log: PurgeLog<PurgeMatcher>
    /// Whether the log has all entries of the stream, and the feed brings those that follow.
    var feedIsComplete = false
    /// What the follower wants done, while everything is being marked as stale.
    var waitingActions: [StreamFollower.Action] = []
    var isMarking = false
    /// The server's name for its present run.
    var serverRun = ""
    /// Purges of this node that the server does not have yet, the oldest first.
    var announcements: [Announcement] = []
    /// The same, those that are being applied here, and those that the server has and this node has not read.
    let purgesUnderWay: Locked<PurgesUnderWay<PurgeMatcher>>
    /// The purge of everything that stands for announcements that were dropped.
    var ticketOfDropped: UInt64?
    var isAnnouncing = false
    var lastNumber: UInt64 = 0
    /// Whether the position may be kept over a restart.
    var mayRemember = true
    var pauses: [SpreadPause] = []
    /// Tells this run of the node apart from others with its name.
    let thisRun = String(decoding: hexadecimal((0..<4).map { _ in UInt8.random(in: 0...255) }), as: UTF8.self)
    /// Whether what the server has under the name of this node is of this run, unless another one writes there.
    var isRegistered = false
    var hasNamesake = false
    /// Up to where everything is applied, or marked as stale.
    var donePosition: StreamPosition?

    // Reports (FleetNode+Seeing.swift)
    var lastReport: UInt64 = 0
    var namesakeSeenAt: MonotonicTime?

    // Peers (FleetNode+Peers.swift)
    let peers: PeerDesk?
    /// `fleet.peers`. Nil: the nodes do not ask each other.
    var peersSetting: FleetPeersSetting?
    /// Whether a server at this address is this process.
    let isOwn: @Sendable (IPAddress, UInt16) -> Bool
    var peerAddresses: [String: [IPAddress]] = [:]
    /// The names that are being looked up.
    var namesAsked: Set<String> = []
    /// The names that the log has complained about.
    var namesMissed: Set<String> = []

    private static let beat = Duration.seconds(5)

    init(
        _ terms: FleetTerms, zones: Zones, effects: FleetEffects, counted: CountedTogether, position: StreamPosition?,
        figures: Locked<FleetFigures>, readGate: ReadGate, dns: Resolver.Options, peers: PeerDesk?,
        _ purgesUnderWay: Locked<PurgesUnderWay<PurgeMatcher>>,
        isOwn: @escaping @Sendable (IPAddress, UInt16) -> Bool
    ) throws {
        self.terms = terms
        self.peers = peers
        peersSetting = peers?.terms.peers
        self.purgesUnderWay = purgesUnderWay
        self.isOwn = isOwn
        self.zones = zones
        self.effects = effects
        self.figures = figures
        self.readGate = readGate
        loop = try EventLoop()
        resolver = try Resolver(loop: loop, options: dns)
        link = RedisLink(terms, loop: loop, resolver: resolver)
        feed = RedisLink(terms, loop: loop, resolver: resolver)
        applying = CallPool(name: "fleet-purge", threadsMax: 1, waitingMax: 64)
        follower = StreamFollower(position: position)
        log = PurgeLog(reached: position)
        clock = Timer { [unowned self] in beat() }
        invalidationTimer = PreciseTimer(loop) { [unowned self] in sendInvalidations() }
        counting = FleetCounting(terms, counted, loop: loop, link: link, figures: figures)
        figures.withLock {
            $0.node = terms.node
            $0.server = "\(terms.url)"
            $0.run = thisRun
            $0.awaySince = loop.wallSeconds
        }
    }

    /// Works until `stop`.
    func run() {
        link.start(
            RedisLink.Events(
                opened: { [unowned self] in linkOpened($0) },
                failed: { [unowned self] in linkFailed($0) }))
        feed.start(
            RedisLink.Events(
                opened: { [unowned self] in feedOpened($0) }, failed: { [unowned self] in feedFailed($0) }))
        loop.timers.schedule(clock, after: FleetNode.beat)
        publishPosition()
        lookForPeers()
        counting.start()
        loop.run()
    }

    func stop() {
        loop.timers.cancel(clock)
        invalidationTimer.stop()
        applying.close()
        for pause in pauses {
            pause.timer?.stop()
            pause.then(spread(of: nil, because: "this node stops"))
        }
        pauses = []
        counting.stop()
        link.stop()
        feed.stop()
        loop.stop()
    }

    private func beat() {
        loop.timers.schedule(clock, after: FleetNode.beat)
        lookForPeers()
        // In this order: what another node has written under the name of this one is seen before it is written over.
        lookForNodes { [unowned self] in readReports() }
        register()
        publishReport()
        readServerClock()
        // The server has refused them, or has not answered.
        sendRemovals()
        sendAnnouncements()
        sendInvalidations()
        ThreadMemory.collect()
    }

    // MARK: the connection

    private func linkOpened(_ info: String) {
        let version = FleetNode.value(of: "redis_version", in: info) ?? ""
        let isNews = figures.withLock { figures in
            figures.serverVersion = version
            figures.connections += 1
            defer { figures.lastFailure = nil }
            return figures.connections == 1 || figures.lastFailure != nil
        }
        if isNews {
            Diagnostics.info("fleet: connected to \(terms.url)\(version.isEmpty ? "" : ", version \(version)")")
        }
        link.isOfUse()
        serverClock.forget()
        readServerClock()
        readGate.open()
        counting.linkOpened()
        figures.withLock { $0.known.listens(now: loop.now.nanoseconds) }
        sendRemovals()
        sendAnnouncements()
        sendInvalidations()
        register()
        beginToListen()
    }

    private func linkFailed(_ reason: String) {
        let isNews = figures.withLock { figures in
            defer {
                figures.lastFailure = reason
                figures.serverVersion = nil
            }
            return figures.lastFailure != reason
        }
        if isNews {
            Diagnostics.warning(
                "fleet: \(terms.url): \(reason). Nothing is shared until it answers; clients are served as before")
        }
        isRegistered = false
        stopListening()
        dropWrites()
        answerAnnouncements(because: reason)
    }

    static func value(of name: String, in info: String) -> String? {
        info.split(whereSeparator: \.isNewline).first { $0.hasPrefix("\(name):") }.map {
            String($0.dropFirst(name.utf8.count + 1))
        }
    }
}
