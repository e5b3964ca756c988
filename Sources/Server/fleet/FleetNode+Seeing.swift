import EventLoop
import Fleet
import Message
import Redis

/// Publishes what this node has counted, and reads what the others have, with each beat. Both are a courtesy: nothing else depends on them.
extension FleetNode {
    private static let wait = Duration.seconds(2)
    /// How long the Redis keeps a report that nobody renews, in seconds.
    static let reportSeconds = 120
    /// For so long a namesake that is seen no more is published.
    private static let namesakeMemory = Duration.seconds(60)

    // MARK: the connection

    func beginToListen() {
        figures.withLock {
            $0.awaySince = nil
            $0.seen.listens(now: loop.now.nanoseconds)
        }
        publishReport()
        lookForNodes { [unowned self] in readReports() }
    }

    func stopListening() {
        figures.withLock {
            $0.awaySince = $0.awaySince ?? loop.wallSeconds
            $0.seen.isDeaf(now: loop.now.nanoseconds)
        }
    }

    // MARK: this node

    func publishReport() {
        let hasNamesake = namesakeSeenAt.map { loop.now.duration(since: $0) < FleetNode.namesakeMemory } ?? false
        let isFollowing = figures.withLock { figures in
            figures.hasNamesake = hasNamesake
            return figures.isFollowing
        }
        guard link.isOpen else { return }
        lastReport += 1
        var numbers = effects.figures()
        numbers[.isFollowing] = isFollowing ? 1 : 0
        numbers[.hasNamesake] = hasNamesake ? 1 : 0
        guard
            let report = NodeReport(
                node: terms.node, run: thisRun, release: effects.version, startedAt: effects.startedAt,
                saidAt: loop.wallMicroseconds / 1000, number: lastReport, figures: numbers)
        else { return }
        link.send(
            [redisWord("SETEX"), SharedKeys.report(of: terms.node), Array("\(FleetNode.reportSeconds)".utf8)],
            value: report.encode(hash: terms.hash), within: FleetNode.wait
        ) { _ in }
    }

    // MARK: the others

    /// Reads the reports of the nodes in the register.
    func readReports() {
        let now = loop.now
        var generator = SystemRandomNumberGenerator()
        let (names, presentCount) = figures.withLock { figures in
            figures.seen.forget(now: now.nanoseconds)
            let present = figures.known.present(now: now.nanoseconds).map(\.name).filter { $0 != terms.node }
            return (figures.seen.choice(among: present, using: &generator), present.count)
        }
        guard !names.isEmpty else { return figures.withLock { $0.unreadable = 0 } }
        link.send([redisWord("MGET")] + names.map { SharedKeys.report(of: $0) }, within: FleetNode.wait) {
            [unowned self] result in
            guard let values = (try? result.get())?.array, values.count == names.count else { return }
            hear(zip(names, values).map { ($0, $1.data) }, of: presentCount)
        }
    }

    private func hear(_ values: [(name: String, value: [UInt8]?)], of count: Int) {
        var reports: [NodeReport] = []
        for (name, value) in values {
            guard let value else { continue }
            do throws(NodeReportError) {
                reports.append(try NodeReport.decode(value, of: name, hash: terms.hash))
            } catch {}
        }
        figures.withLock { figures in
            figures.unreadable = count - reports.count
            for report in reports { figures.seen.hear(report, now: loop.now.nanoseconds) }
        }
    }
}
