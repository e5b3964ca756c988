import Fleet

// What FleetNode+Reading and FleetNode+Writing do.
extension ModelNode {
    private static let readMax: UInt64 = 20_000_000
    private static let wait: UInt64 = 2_000_000_000

    func name(of key: ModelKey) -> [UInt8] {
        SharedKeys.record(zone: "default", key: key.bytes, hash: secret)
    }

    // MARK: reading

    func readShared(_ request: ModelRequest, _ wake: @escaping () -> Void) {
        let key = request.key
        let name = name(of: key)
        let before = invalidations
        if reads[name] != nil {
            reads[name]?.append(wake)
            return
        }
        guard link.isOpen, isTrustworthy, mayRead(name, key), !hasChanged(key),
            let permit = circuit.permit(now: world.now)
        else { return wake() }
        reads[name] = [wake]
        link.send(within: ModelNode.readMax) {
            $0.records[name]
        } then: { [unowned self] reply, failure in
            let outcome: Circuit.Outcome = failure == nil ? .success : .failure(jitter: world.random())
            circuit.settle(permit, outcome, now: world.now)
            // By their fields, so that a seed gives the same again.
            let values = ((reply ?? nil) ?? [:]).sorted { $0.key.lexicographicallyPrecedes($1.key) }
            for (_, value) in values { adopt(value, request, name, since: before) }
            for waiting in reads.removeValue(forKey: name) ?? [] { waiting() }
        }
    }

    private func mayRead(_ name: [UInt8], _ key: ModelKey) -> Bool {
        world.breaks(.readsRedisAfterChange)
            || (!removals.contains(name) && !changes.areUnderWay(for: key.bytes))
    }

    private func adopt(_ value: [UInt8], _ request: ModelRequest, _ name: [UInt8], since before: Int) {
        let key = request.key
        guard let record = try? SharedRecord.decode(value, zone: "default", key: key.bytes, hash: secret),
            !isPurged(record, key), mayRead(name, key), invalidations == before || world.breaks(.storesOutdated)
        else { return }
        let words = String(decoding: record.head, as: UTF8.self).split(separator: " ").map { Int($0) }
        var slot = ModelSlot(key: key, variant: words[2])
        if world.breaks(.adoptsForTheAsker), slot.variant != nil { slot.variant = request.variant }
        guard memory[slot] == nil else { return }
        world.trace("\(self.name): version \(words[0] ?? 0) of /\(key.url) comes from Redis")
        let ahead =
            world.breaks(.ignoresClocks)
            ? 0 : record.clockAhead(serverNow: world.serverMilliseconds, now: seconds * 1000)
        memory[slot] = ModelStored(
            ModelResponse(
                url: key.url, version: words[0] ?? 0, user: words[1], variant: words[2],
                isCut: words[3] == 1, storedAt: record.storedAt, expiresAt: record.expiresAt,
                bornAt: UInt64(words[4] ?? 0)
            ).moved(by: ahead), isOutdated: words[5] == 1)
    }

    // MARK: writing

    func share(_ stored: ModelStored, _ key: ModelKey) {
        guard key.isShareable || world.breaks(.sharesWhatIsPersonal), !ModelOrigin.isLong(key.url) else { return }
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
        func word(_ number: Int?) -> String { number.map { "\($0)" } ?? "-" }
        let head =
            "\(response.version) \(word(response.user)) \(word(response.variant)) \(response.isCut ? 1 : 0)"
            + " \(response.bornAt) \(stored.isOutdated ? 1 : 0)"
        guard let slot = memory.first(where: { $0.value === stored })?.key, !isMarking,
            let position = follower.position,
            let record = SharedRecord(
                id: SharedRecordID(high: world.random(), low: world.random()), zone: "default", key: slot.key.bytes,
                status: 200, storedAt: response.storedAt, expiresAt: response.expiresAt,
                written: .init(byServer: world.serverMilliseconds, byNode: seconds * 1000), position: position,
                mediaType: [], tags: [],
                head: Array(head.utf8), bodyLength: 0,
                shortBody: []),
            SharedExpiry.seconds(
                storedAt: response.storedAt, expiresAt: response.expiresAt, now: seconds, grace: 0) != nil
        else { return }
        writesUnderWay += 1
        let (name, value) = (name(of: slot.key), record.encode(hash: secret).head)
        let world = world
        link.send(within: ModelNode.wait) { redis in
            world.judge.write(response, slot.key.bytes, world)
            return redis.set(name, Array(word(response.variant).utf8), value)
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

    /// FleetDesk.beginInvalidating
    func hide(_ key: ModelKey) {
        noteChange(key)
        removals.insert(name(of: key))
    }

    func unlink(_ name: [UInt8], found: @escaping () -> Void = {}) {
        link.send(within: ModelNode.wait) {
            $0.unlink(name)
        } then: { [unowned self] reply, _ in
            guard let count = reply ?? nil else { return }
            removals.remove(name)
            if count > 0 { found() }
        }
    }

    func sendRemovals() {
        guard link.isOpen else { return }
        for name in removals.sorted(by: { $0.lexicographicallyPrecedes($1) }) { unlink(name) }
    }
}
