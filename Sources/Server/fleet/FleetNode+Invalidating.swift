import EventLoop
import Fleet
import Message
import Redis

/// Tells the other nodes what unsafe requests to this one have invalidated, by the stream of purges. `Invalidations` says when, and what is dropped. No request waits for it.
extension FleetNode {
    /// An unsafe request has invalidated a key on this node.
    func invalidate(_ key: [UInt8], in zones: [String], wasStored: Bool) {
        if !invalidations.add(key, wasStored: wasStored) { figures.withLock { $0.invalidationsDropped += 1 } }
        for zone in zones {
            let name = SharedKeys.record(zone: zone, key: key, hash: terms.hash)
            guard link.isOpen, removals.contains(name) else { continue }
            unlink(name) { [unowned self] in
                invalidations.wasStored(key)
                sendInvalidations()
            }
        }
        sendInvalidations()
    }

    /// Sends what may be sent by now. Called again when there is more to send later.
    func sendInvalidations() {
        guard link.isOpen else { return }
        let now = loop.now
        let keys = invalidations.take(now: now.nanoseconds)
        guard !keys.isEmpty else {
            guard let next = invalidations.nextAt(now: now.nanoseconds) else { return }
            return invalidationTimer.start(at: now.advanced(by: .nanoseconds(next - now.nanoseconds)))
        }
        let purge = InvalidatedKeys(run: thisRun, keys: keys)
        lastNumber += 1
        guard
            let entry = PurgeEntry(
                node: terms.node, number: lastNumber, issuedAt: loop.wallSeconds, purge: purge.bytes)
        else { preconditionFailure("the keys of an entry fit into it") }
        add(entry) { [unowned self] result in
            switch result {
            case .success(let id):
                invalidations.sent(as: id, log)
                settlePurges()
                figures.withLock { $0.invalidationsSent += UInt64(keys.count) }
                sendInvalidations()
            case .failure:
                // The next beat tries again.
                invalidations.refused()
            }
        }
    }
}
