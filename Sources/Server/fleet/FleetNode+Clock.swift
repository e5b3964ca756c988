import Accounts
import EventLoop
import Fleet
import Message
import Redis

/// Reads the clock of the server, with which the nodes date what they share (`ServerClock`).
extension FleetNode {
    private static let wait = Duration.seconds(2)

    func readServerClock() {
        let asked = loop.now
        link.send([redisWord("INFO"), redisWord("server")], within: FleetNode.wait) { [unowned self] result in
            guard case .success(let reply) = result else { return }
            let info = reply.data.map { String(decoding: $0, as: UTF8.self) } ?? ""
            guard let time = FleetNode.value(of: "server_time_usec", in: info).flatMap({ Int64($0) }) else {
                return noteSilentClock()
            }
            serverClock.read(
                microseconds: time, askedAt: asked.nanoseconds, answeredAt: loop.now.nanoseconds)
            compareClocks()
        }
    }

    /// Without its time nobody knows how old a shared response is, so nothing is shared.
    private func noteSilentClock() {
        guard !clocksDiffer else { return }
        clocksDiffer = true
        Diagnostics.warning(
            "fleet: \(terms.url) does not say its time (server_time_usec of INFO), so no responses are shared through it"
        )
    }

    private func compareClocks() {
        guard let ahead = serverClock.difference(of: loop.wallMicroseconds / 1000, now: loop.now.nanoseconds) else {
            return
        }
        let differ = ahead.magnitude > ServerClock.differenceMax
        guard differ != clocksDiffer else { return }
        clocksDiffer = differ
        guard differ else { return Diagnostics.info("fleet: the clock of this node agrees with that of the Redis") }
        Diagnostics.warning(
            "fleet: the clock of this node is \(ahead.magnitude / 1000).\(ahead.magnitude % 1000 / 100) s \(ahead > 0 ? "ahead of" : "behind") that of the Redis; run a time service on all machines"
        )
    }

    /// When an entry was added to a stream, by the clock of this node. It may be a little later, and is now if the time of the server is not known: what is older than the entry is not
    /// taken for newer.
    func time(of id: StreamID) -> WallTime {
        let now = WallTime(ticks: loop.wallTicks)
        guard let server = serverClock.earliest(now: loop.now.nanoseconds) else { return now }
        let age = min(max(server.saturatingSubtract(Int64(clamping: id.milliseconds)), 0), 1 << 50)
        return WallTime(secondsSinceEpoch: now.secondsSinceEpoch - age / 1000)
    }

    /// By how many seconds the clock of this node is ahead of the one that dated a record. Nil: the time of the server is not known.
    func clockAhead(of record: SharedRecord) -> Int64? {
        serverClock.latest(now: loop.now.nanoseconds).map {
            record.clockAhead(serverNow: $0, now: loop.wallMicroseconds / 1000)
        }
    }
}
