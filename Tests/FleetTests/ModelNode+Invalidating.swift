import Fleet

// What FleetNode+Invalidating does.
extension ModelNode {
    private static let wait: UInt64 = 2_000_000_000

    /// FleetDesk.invalidate
    func tell(_ key: ModelKey, wasStored: Bool, _ version: Int) {
        let bytes = key.bytes
        world.after(world.microseconds(1...300), on: self) { [unowned self] in
            _ = changes.add(bytes, wasStored: wasStored)
            changeVersions[bytes] = max(changeVersions[bytes, default: 1], version)
            let name = name(of: key)
            if link.isOpen, removals.contains(name) {
                unlink(name) { [unowned self] in
                    changes.wasStored(bytes)
                    sendChanges()
                }
            }
            sendChanges()
        }
    }

    func sendChanges() {
        guard link.isOpen, !world.breaks(.keepsChanges) else { return }
        let keys = changes.take(now: world.now)
        guard !keys.isEmpty else { return waitForChanges() }
        lastNumber += 1
        let number = lastNumber
        let purge = InvalidatedKeys(run: run, keys: keys)
        let entry = PurgeEntry(node: name, number: number, issuedAt: seconds, purge: purge.bytes)!
        let floors = Dictionary(
            uniqueKeysWithValues: keys.map { (ModelKey(bytes: $0).url, changeVersions[$0, default: 1]) })
        let (world, run) = (world, run)
        world.trace("\(name): tells of \(floors.keys.sorted())")
        link.send(within: ModelNode.wait) { [secret, index] redis -> StreamID? in
            let id = redis.add(entry.fields(hash: secret), world)
            if id != nil { world.judge.isSent(change: floors, run, number, isHeard: world.stranger != index) }
            return id
        } then: { [unowned self] reply, _ in
            guard let id = reply ?? nil else { return changes.refused() }
            changes.sent(as: id, log)
            settlePurges()
            sendChanges()
        }
    }

    private func waitForChanges() {
        guard !changesAreTimed, let next = changes.nextAt(now: world.now) else { return }
        changesAreTimed = true
        world.after(next - world.now, on: self) { [unowned self] in
            changesAreTimed = false
            sendChanges()
        }
    }

    /// RunningProxy.invalidateHere, for what other nodes tell.
    func applyChange(_ invalidated: InvalidatedKeys, _ number: UInt64, _ then: @escaping () -> Void) {
        guard invalidated.run != run else { return then() }
        let floors = world.judge.changeFloors(invalidated.run, number)
        onPurgeThread({}) { [unowned self] in
            guard !world.breaks(.skipsChanges) else { return }
            for key in invalidated.keys { invalidate(ModelKey(bytes: key)) }
        } _: { [unowned self] in
            world.trace("\(name): what was told of \(floors.keys.sorted()) is applied")
            changeFloors.merge(floors) { max($0, $1) }
            then()
        }
    }
}

extension ModelKey {
    /// Of a key that is shared.
    fileprivate init(bytes: [UInt8]) {
        let digits = String(decoding: bytes, as: UTF8.self).split(separator: "/").last ?? ""
        self.init(url: Int(digits)!, user: nil)
    }
}
