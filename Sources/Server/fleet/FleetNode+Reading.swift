import EventLoop
import Fleet
import Message
import Redis
import Storage

/// A response that an exchange looks for.
struct SharedQuestion: Sendable {
    let zone: String
    let tier: Tiers
    let key: StorageKey
    let keyBytes: [UInt8]
    let asked: MonotonicTime
    /// Of the tier, when the exchange began to look.
    let invalidations: Int
    /// Called once, on the thread of the node.
    let wake: Wake
}

/// Reads stored responses from Redis into memory.
///
/// A read has 20 ms in all. What does not come in time, or is not what this fleet has written, is a miss. Requests for the same key share one read.
extension FleetNode {
    static let readMax = Duration.milliseconds(20)
    /// All bodies of a key together, as many variants as fit, the latest first.
    private static let bodyBytesMax = SharedRecord.bodyBytesMax

    func read(_ question: SharedQuestion) {
        let name = SharedKeys.record(zone: question.zone, key: question.keyBytes, hash: terms.hash)
        if reads[name] != nil {
            reads[name]?.append(question.wake)
            return
        }
        guard mayRead(name, question.keyBytes), !hasChanged(question), let wait = timeLeft(question) else {
            return turnAway(question)
        }
        guard link.isOpen, isTrustworthy, serverClock.latest(now: loop.now.nanoseconds) != nil,
            let permit = circuit.permit(now: loop.now.nanoseconds)
        else {
            readGate.close(loop.now)
            return turnAway(question)
        }
        reads[name] = [question.wake]
        link.send([redisWord("HGETALL"), name], within: wait) { [unowned self] result in
            settle(permit, result)
            guard case .success(let reply) = result else { return end(name, found: 0) }
            found(records(in: reply, question), question, name)
        }
    }

    private func turnAway(_ question: SharedQuestion) {
        figures.withLock { $0.unasked += 1 }
        question.wake()
    }

    /// Whether what Redis has is not from before an unsafe request to this node that it may not know of.
    private func mayRead(_ name: [UInt8], _ keyBytes: [UInt8]) -> Bool {
        !removals.contains(name) && !invalidations.areUnderWay(for: keyBytes)
    }

    private func hasChanged(_ question: SharedQuestion) -> Bool {
        peers?.hasChanged(zone: question.zone, key: question.keyBytes, now: loop.now) ?? false
    }

    private func timeLeft(_ question: SharedQuestion) -> Duration? {
        let left = FleetNode.readMax - loop.now.duration(since: question.asked)
        return left > .zero ? left : nil
    }

    private func settle(_ permit: Circuit.Permit, _ result: Result<RedisReply, RedisFailure>) {
        let outcome: Circuit.Outcome
        switch result {
        case .success: outcome = .success
        case .failure: outcome = .failure(jitter: .random(in: 0...UInt64.max))
        }
        circuit.settle(permit, outcome, now: loop.now.nanoseconds)
        if case .failure(.late) = result { figures.withLock { $0.late += 1 } }
    }

    private func end(_ name: [UInt8], found count: Int) {
        figures.withLock { if count > 0 { $0.hits += 1 } else { $0.misses += 1 } }
        for wake in reads.removeValue(forKey: name) ?? [] { wake() }
    }

    // MARK: what was found

    /// The records of a key that may be used, as many as fit, the latest first.
    private func records(in reply: RedisReply, _ question: SharedQuestion) -> [SharedRecord] {
        guard let values = reply.array else {
            if let code = reply.errorCode { figures.withLock { $0.refused[code, default: 0] += 1 } }
            return []
        }
        var room = FleetNode.bodyBytesMax
        return stride(from: 1, to: values.count, by: 2).compactMap { values[$0].data }
            .compactMap { record(in: $0, question) }.sorted { storedAt($0) > storedAt($1) }.prefix { record in
                room -= record.bodyLength
                return room >= 0
            }
    }

    /// By the clock of this node.
    private func storedAt(_ record: SharedRecord) -> Int64 {
        record.storedAt.saturatingAdd(clockAhead(of: record) ?? 0)
    }

    private func record(in value: [UInt8], _ question: SharedQuestion) -> SharedRecord? {
        do throws(SharedRecordError) {
            let record = try SharedRecord.decode(
                value, zone: question.zone, key: question.keyBytes, hash: terms.hash)
            if isPurged(record) {
                figures.withLock { $0.purged += 1 }
                return nil
            }
            return record
        } catch {
            figures.withLock { $0.refused[error.rawValue, default: 0] += 1 }
            return nil
        }
    }

    private func found(_ records: [SharedRecord], _ question: SharedQuestion, _ name: [UInt8]) {
        let parted = records.filter { !$0.parts.isEmpty }
        guard !parted.isEmpty, let wait = timeLeft(question) else {
            return adopt(records.filter(\.parts.isEmpty).map { ($0, [$0.shortBody[...]]) }, question, name)
        }
        let names = parted.flatMap { record in
            record.parts.map { SharedKeys.part(zone: question.zone, of: record.id, number: $0.number) }
        }
        link.send([redisWord("MGET")] + names, within: wait) { [unowned self] result in
            if case .failure(.late) = result { figures.withLock { $0.late += 1 } }
            var values = ((try? result.get())?.array ?? [])[...]
            var whole = records.filter(\.parts.isEmpty).map { ($0, [$0.shortBody[...]]) }
            for record in parted {
                let own = values.prefix(record.parts.count)
                values = values.dropFirst(record.parts.count)
                if let body = parts(of: record, in: own) { whole.append((record, body)) }
            }
            adopt(whole, question, name)
        }
    }

    /// Nil if a part is missing or is not the right one.
    private func parts(of record: SharedRecord, in values: ArraySlice<RedisReply>) -> [ArraySlice<UInt8>]? {
        guard values.count == record.parts.count else { return nil }
        var body: [ArraySlice<UInt8>] = []
        for (part, value) in zip(record.parts, values) {
            // It has expired, or was evicted.
            guard let value = value.data else { return nil }
            do throws(SharedRecordError) {
                body.append(try record.openPart(part, value, hash: terms.hash))
            } catch {
                figures.withLock { $0.refused[error.rawValue, default: 0] += 1 }
                return nil
            }
        }
        return body
    }

    private func adopt(_ found: [(SharedRecord, [ArraySlice<UInt8>])], _ question: SharedQuestion, _ name: [UInt8]) {
        var count = 0
        var bytes = 0
        // The earliest first, so that the latest ends up as the newest.
        for (record, body) in found.reversed() where !isPurged(record) && mayRead(name, question.keyBytes) {
            guard let ahead = clockAhead(of: record) else { continue }
            guard
                question.tier.adopt(
                    shared: ResponseForm(attributes: attributes(of: record), head: record.head), movedBy: ahead,
                    question.key, question.keyBytes, body: body, since: question.invalidations)
            else { continue }
            count += 1
            bytes += record.bodyLength
        }
        figures.withLock { $0.bytesRead += UInt64(bytes) }
        end(name, found: count)
    }
}
