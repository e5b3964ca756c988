import EventLoop
import Fleet
import Message
import Redis
import Storage

/// A response that is to be written to Redis.
struct SharedWrite: Sendable {
    let zone: String
    let tier: Tiers
    let record: StoredRecord
    /// Tells variants of one key apart: the same for responses that replace each other.
    let variant: [UInt8]
    /// In seconds: how long a response that has become stale is kept, because it can be validated.
    let grace: Int64
}

/// Writes stored responses to Redis.
///
/// At most 64 writes wait, and 8 are under way. More are dropped: a response that is not shared is a miss elsewhere.
extension FleetNode {
    private static let underWayMax = 8
    /// No write begins while so many bytes are under way: a read waits behind them, and has 20 ms.
    private static let bytesUnderWayMax = 256 << 10
    /// How long the server may take for one command of a write.
    private static let wait = Duration.seconds(2)
    private static let pauseAfterRefusal = Duration.seconds(1)
    private static let removalsMax = 10_000
    /// More variants of a key are not kept: all are dropped then.
    private static let variantsMax = 16

    func write(_ write: SharedWrite) {
        guard link.isOpen, follower.position != nil, !writesArePaused,
            waitingWrites.add(write, bytes: write.record.body.length)
        else { return figures.withLock { $0.writesDropped += 1 } }
        writeNext()
    }

    private var writesArePaused: Bool {
        guard let until = writesPausedUntil else { return false }
        if loop.now >= until { writesPausedUntil = nil }
        return writesPausedUntil != nil
    }

    func dropWrites() {
        figures.withLock { $0.writesDropped += UInt64(waitingWrites.count) }
        waitingWrites.dropAll()
    }

    private func writeNext() {
        while writesUnderWay < FleetNode.underWayMax, bytesUnderWay < FleetNode.bytesUnderWayMax,
            let write = waitingWrites.next()
        { perform(write) }
    }

    private func perform(_ write: SharedWrite) {
        // The order matters. A purge that this node has applied up to the position has removed or replaced the response in memory; one that comes later is
        // known by its id, and readers compare it with the position. While everything is being marked as stale, the position is ahead of what was done.
        guard !isMarking, let position = follower.position, let form = write.tier.form(ofShared: write.record),
            let serverNow = serverClock.earliest(now: loop.now.nanoseconds),
            let (record, body) = sharedRecord(
                of: write, form, SharedRecord.Moment(byServer: serverNow, byNode: loop.wallMicroseconds / 1000),
                position),
            let seconds = SharedExpiry.seconds(
                storedAt: record.storedAt, expiresAt: record.expiresAt, now: loop.wallSeconds, grace: write.grace)
        else { return }
        writesUnderWay += 1
        bytesUnderWay += record.bodyLength
        let (head, parts) = record.encode(hash: terms.hash)
        let name = SharedKeys.record(zone: write.zone, key: write.record.keyBytes, hash: terms.hash)
        let expiry = Array("\(seconds)".utf8)
        var refusal: String?
        func note(_ result: Result<RedisReply, RedisFailure>) {
            guard case .success(let reply) = result else {
                refusal = refusal ?? "no-reply"
                return
            }
            if let code = reply.errorCode { refusal = refusal ?? code }
        }
        // Parts come first: who finds the head finds them. They live a little longer than the head.
        let partExpiry = Array("\(seconds + 60)".utf8)
        for part in parts {
            let value = record.sealPart(part, Array(body[part.range]), hash: terms.hash)
            let partName = SharedKeys.part(zone: write.zone, of: record.id, number: part.number)
            link.send([redisWord("SETEX"), partName, partExpiry], value: value, within: FleetNode.wait, then: note)
        }
        link.send([redisWord("HSET"), name, write.variant], value: head, within: FleetNode.wait, then: note)
        link.send([redisWord("EXPIRE"), name, expiry], within: FleetNode.wait, then: note)
        link.send([redisWord("HLEN"), name], within: FleetNode.wait) { [unowned self] result in
            note(result)
            if let count = (try? result.get())?.int, count > FleetNode.variantsMax { unlink(name) }
            written(bytes: record.bodyLength, refusal)
        }
    }

    private func sharedRecord(
        of write: SharedWrite, _ form: ResponseForm, _ written: SharedRecord.Moment, _ position: StreamPosition
    ) -> (SharedRecord, [UInt8])? {
        let body = write.record.body.copyOfBytes
        let isShort = body.count <= SharedRecord.shortBodyBytesMax
        let id = SharedRecordID(high: .random(in: 0...UInt64.max), low: .random(in: 0...UInt64.max))
        let record = SharedRecord(
            id: id, zone: write.zone, key: write.record.keyBytes, status: form.attributes.status,
            storedAt: form.attributes.storedAt, expiresAt: form.attributes.expiresAt, written: written,
            position: position,
            mediaType: form.attributes.mediaType, tags: form.attributes.tags, head: form.head,
            bodyLength: body.count, shortBody: isShort ? body : [])
        return record.map { ($0, body) }
    }

    private func written(bytes: Int, _ refusal: String?) {
        writesUnderWay -= 1
        bytesUnderWay -= bytes
        figures.withLock { figures in
            if let refusal {
                figures.writesRefused[refusal, default: 0] += 1
            } else {
                figures.writes += 1
                figures.bytesWritten += UInt64(bytes)
            }
        }
        if refusal != nil {
            // Such as OOM and READONLY: it will refuse the next one too.
            writesPausedUntil = loop.now.advanced(by: FleetNode.pauseAfterRefusal)
            dropWrites()
        }
        writeNext()
    }

    // MARK: removing

    /// Removes a response that left the store of this node because it must not be served any more. Until Redis has removed it, this node does not read it.
    func remove(zone: String, _ keyBytes: [UInt8]) {
        if let name = hide(zone: zone, keyBytes), link.isOpen { unlink(name) }
    }

    /// Reads a response no more, until it is removed.
    ///
    /// - Returns: its name. Nil: too many are to be removed.
    @discardableResult
    func hide(zone: String, _ keyBytes: [UInt8]) -> [UInt8]? {
        let name = SharedKeys.record(zone: zone, key: keyBytes, hash: terms.hash)
        guard removals.count < FleetNode.removalsMax || removals.contains(name) else {
            hasForgottenRemovals = true
            return nil
        }
        removals.insert(name)
        return name
    }

    /// - Parameter found: called if there was something under the name.
    func unlink(_ name: [UInt8], found: @escaping () -> Void = {}) {
        link.send([redisWord("UNLINK"), name], within: FleetNode.wait) { [unowned self] result in
            guard case .success(.integer(let count)) = result else { return }
            removals.remove(name)
            if count > 0 { found() }
        }
    }

    /// Removes what could not be removed while there was no connection.
    func sendRemovals() {
        guard link.isOpen else { return }
        for name in removals { unlink(name) }
        guard hasForgottenRemovals else { return }
        hasForgottenRemovals = false
        announceEverythingStale()
    }
}
