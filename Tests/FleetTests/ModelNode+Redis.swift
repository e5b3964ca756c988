import Fleet

// What FleetNode+Reading and FleetNode+Writing do.
extension ModelNode {
    private static let readMax: UInt64 = 20_000_000
    private static let wait: UInt64 = 2_000_000_000

    private func name(of key: ModelKey) -> [UInt8] {
        SharedKeys.record(zone: "default", key: key.bytes, hash: hash)
    }

    // MARK: reading

    func readShared(_ key: ModelKey, _ wake: @escaping () -> Void) {
        let name = name(of: key)
        let before = invalidations
        if reads[name] != nil {
            reads[name]?.append(wake)
            return
        }
        guard link.isOpen, isTrustworthy, !removals.contains(name), !hasChanged(key),
            let permit = circuit.permit(now: world.now)
        else { return wake() }
        reads[name] = [wake]
        link.send(within: ModelNode.readMax) {
            $0.records[name]
        } then: { [unowned self] reply, failure in
            let outcome: Circuit.Outcome = failure == nil ? .success : .failure(jitter: world.random())
            circuit.settle(permit, outcome, now: world.now)
            if let value = reply ?? nil { adopt(value, key, name, since: before) }
            for waiting in reads.removeValue(forKey: name) ?? [] { waiting() }
        }
    }

    private func adopt(_ value: [UInt8], _ key: ModelKey, _ name: [UInt8], since before: Int) {
        guard let record = try? SharedRecord.decode(value, zone: "default", key: key.bytes, hash: hash),
            !isPurged(record, key), !removals.contains(name), invalidations == before || world.breaks(.storesOutdated),
            memory[key] == nil
        else { return }
        let words = String(decoding: record.head, as: UTF8.self).split(separator: " ").compactMap { Int($0) }
        world.trace("\(self.name): version \(words[0]) of /\(key.url) comes from Redis")
        memory[key] = ModelStored(
            ModelResponse(
                url: key.url, version: words[0], user: words.count > 1 ? words[1] : nil, storedAt: record.storedAt,
                expiresAt: record.expiresAt))
    }

    // MARK: writing

    func share(_ stored: ModelStored, _ key: ModelKey) {
        guard key.isShareable || world.breaks(.sharesWhatIsPersonal) else { return }
        world.after(world.microseconds(1...300), on: self) { [unowned self] in
            guard link.isOpen, follower.position != nil, world.now >= writesPausedUntil,
                waitingWrites.add(stored, bytes: 1)
            else { return }
            writeNext()
        }
    }

    private func writeNext() {
        while writesUnderWay < 2, let stored = waitingWrites.next() { perform(stored) }
    }

    private func perform(_ stored: ModelStored) {
        let response = stored.response
        guard let key = memory.first(where: { $0.value === stored })?.key, !isMarking,
            let position = follower.position,
            let record = SharedRecord(
                id: SharedRecordID(high: world.random(), low: world.random()), zone: "default", key: key.bytes,
                status: 200, storedAt: response.storedAt, expiresAt: response.expiresAt, position: position,
                mediaType: [], tags: [],
                head: Array("\(response.version)\(response.user.map { " \($0)" } ?? "")".utf8), bodyLength: 0,
                shortBody: []),
            SharedExpiry.seconds(
                storedAt: response.storedAt, expiresAt: response.expiresAt, now: world.seconds, grace: 0) != nil
        else { return }
        writesUnderWay += 1
        let (name, value) = (name(of: key), record.encode(hash: hash).head)
        let world = world
        link.send(within: ModelNode.wait) { redis in
            world.judge.write(response, key.bytes, world)
            return redis.set(name, value)
        } then: { [unowned self] reply, _ in
            writesUnderWay -= 1
            if reply != true {
                writesPausedUntil = world.now + 1_000_000_000
                waitingWrites.dropAll()
            }
            writeNext()
        }
    }

    // MARK: removing

    /// FleetDesk.remove
    func removeShared(_ key: ModelKey) {
        guard key.isShareable else { return }
        noteChange(key)
        world.after(world.microseconds(1...300), on: self) { [unowned self] in
            let name = name(of: key)
            removals.insert(name)
            if link.isOpen { unlink(name) }
        }
    }

    private func unlink(_ name: [UInt8]) {
        link.send(within: ModelNode.wait) {
            $0.unlink(name)
        } then: { [unowned self] reply, _ in
            if reply == true { removals.remove(name) }
        }
    }

    func sendRemovals() {
        guard link.isOpen else { return }
        for name in removals.sorted(by: { $0.lexicographicallyPrecedes($1) }) { unlink(name) }
    }
}
