/// One part of the memory tier, with its table, queues and transfers under way. One lock of `Shelves` protects it.
///
/// Eviction is S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023), in bytes:
///
///     new ──▶ small (10 %) ──used──▶ main ──used──▶ main again, one use less
///               │ not used             │ not used
///               ▼                      ▼
///             ghost (keys only)      gone           a key in ghost that comes back enters main
///
/// What other nodes of a fleet keep as their own has a third queue, `copies` (5 %), in which it goes round as long as it is used. Otherwise all nodes
/// would keep the same popular responses, and together hold little more than one of them.
///
/// In one more point this differs from the paper: heavy responses must have been used more than once (`usesToKeep`). A response whose body
/// still grows, or goes to the back store, is skipped, because evicting it would free nothing.
struct Shard {
    var table = RecordTable()
    private(set) var small = RecordQueue(.small)
    private(set) var main = RecordQueue(.main)
    private(set) var copies = RecordQueue(.copies)
    private(set) var ghost = GhostQueue()
    var transfers = TransferTable()
    var keptApart = KeptApart()
    private(set) var evictions = 0
    private(set) var evictedBytes = 0
    /// How often `admits` was called.
    private var questions: UInt32 = 0

    /// How many responses one call of `evict` examines. This keeps the time under the lock short.
    private static let stepsMax = 32

    enum Eviction { case evicted, progressed, nothing }

    /// What may be evicted: what is used makes no room for what nobody has asked for twice while there is anything else.
    enum Reach {
        /// The main queue is not touched.
        case unused
        /// The main queue is touched where the small one has no more than its share. What is still growing counts, although it cannot go.
        case inLine
        case all
    }

    var bytes: Int { small.bytes + main.bytes + copies.bytes }
    var recordCount: Int { small.count + main.count + copies.count }

    func free() {
        table.free()
        ghost.free()
    }

    /// Puts a response before the other variants of its key, and removes the variants that it replaces.
    /// - Returns: the removed variants: those that it replaces, and the oldest beyond `variantsMax`.
    mutating func insert(_ record: StoredRecord, variantsMax: Int, into doomed: inout Doomed) -> [StoredRecord] {
        let wasEvicted = ghost.take(record.key)
        guard var variants = unsafe record.keyBytes.withUnsafeBytes({ unsafe table.variants(record.key, $0) }) else {
            put(record, [record], toMain: wasEvicted, into: &doomed)
            return []
        }
        var displaced: [StoredRecord] = []
        var toMain = wasEvicted
        variants.removeAll { other in
            guard other !== record, record.replaces(other) else { return other === record }
            toMain = toMain || other.place == .main
            record.setFrequency(max(record.frequency, other.frequency))
            unlink(other)
            displaced.append(other)
            return true
        }
        if record.place != .nowhere { unlink(record) }
        variants.insert(record, at: 0)
        while variants.count > max(1, variantsMax), let last = variants.popLast() {
            unlink(last)
            displaced.append(last)
        }
        for other in displaced { other.revoke() }
        put(record, variants, toMain: toMain, into: &doomed)
        return displaced
    }

    /// Puts a response that was read from the back store behind the other variants of its key. Returns false if the same variant is in
    /// memory, or `variantsMax` variants are.
    mutating func adopt(_ record: StoredRecord, variantsMax: Int, into doomed: inout Doomed) -> Bool {
        let variants = unsafe record.keyBytes.withUnsafeBytes { unsafe table.variants(record.key, $0) } ?? []
        guard variants.count < max(1, variantsMax), !variants.contains(where: { $0.replaces(record) }) else {
            return false
        }
        put(record, variants + [record], toMain: ghost.take(record.key), into: &doomed)
        return true
    }

    private mutating func put(
        _ record: StoredRecord, _ variants: [StoredRecord], toMain: Bool, into doomed: inout Doomed
    ) {
        precondition(variants.contains { $0 === record }, "the list of variants contains the new response")
        record.weight = record.currentWeight
        if record.isCopy {
            copies.push(record)
        } else if toMain {
            main.push(record)
        } else {
            small.push(record)
        }
        table.set(variants, record.key, record.keyBytes, into: &doomed)
    }

    /// Replaces `old` by `new`, at the same place of its queue. Returns false if `old` is no longer in this shard.
    mutating func replace(_ old: StoredRecord, with new: StoredRecord, into doomed: inout Doomed) -> Bool {
        guard old.place != .nowhere, new.place == .nowhere else { return false }
        guard var variants = unsafe old.keyBytes.withUnsafeBytes({ unsafe table.variants(old.key, $0) }),
            let index = variants.firstIndex(where: { $0 === old })
        else { return false }
        new.setFrequency(old.frequency)
        new.setHits(old.hits)
        old.revoke()
        new.weight = new.currentWeight
        switch old.place {
        case .small: small.substitute(new, for: old)
        case .main: main.substitute(new, for: old)
        case .copies: copies.substitute(new, for: old)
        case .nowhere: preconditionFailure("it was found in a queue")
        }
        if variants.count == 1 {
            variants = [new]
        } else {
            variants.remove(at: index)
            variants.insert(new, at: 0)
        }
        table.set(variants, new.key, new.keyBytes, into: &doomed)
        return true
    }

    /// Returns false if the response was not in this shard.
    mutating func remove(_ record: StoredRecord, into doomed: inout Doomed) -> Bool {
        record.revoke()
        return takeOut(record, into: &doomed)
    }

    /// Removes a response, and remembers its key.
    mutating func forget(_ record: StoredRecord, into doomed: inout Doomed) {
        guard remove(record, into: &doomed) else { return }
        ghost.note(record.key, limit: main.count, into: &doomed)
    }

    private mutating func takeOut(_ record: StoredRecord, into doomed: inout Doomed) -> Bool {
        guard record.place != .nowhere else { return false }
        unlink(record)
        let variants = unsafe record.keyBytes.withUnsafeBytes { unsafe table.variants(record.key, $0) } ?? []
        let others = variants.count > 1 ? variants.filter { $0 !== record } : []
        table.set(others, record.key, record.keyBytes, into: &doomed)
        return true
    }

    mutating func removeAll(_ key: StorageKey, _ keyBytes: UnsafeRawBufferPointer, into doomed: inout Doomed) -> Int {
        guard let variants = unsafe table.variants(key, keyBytes) else { return 0 }
        for record in variants {
            record.revoke()
            unlink(record)
        }
        table.set([], key, variants[0].keyBytes, into: &doomed)
        return variants.count
    }

    /// Updates the weight of a response after its body has ended.
    mutating func reweigh(_ record: StoredRecord) {
        switch record.place {
        case .small: small.reweigh(record, to: record.currentWeight)
        case .main: main.reweigh(record, to: record.currentWeight)
        case .copies: copies.reweigh(record, to: record.currentWeight)
        case .nowhere: break
        }
    }

    /// Moves responses through the queues until one is evicted. Examines at most `stepsMax` of them.
    mutating func evict(_ reach: Reach, into doomed: inout Doomed) -> Eviction {
        var skipped = (small: 0, main: 0, copies: 0)
        var progressed = false
        for _ in 0..<Self.stepsMax {
            let smallHasSome = skipped.small < small.count
            let mainHasSome = skipped.main < main.count
            let copiesHaveSome = skipped.copies < copies.count
            let victim: StoredRecord?
            if copiesHaveSome, copies.bytes * Self.copiesShare > bytes || !(smallHasSome || mainHasSome) {
                victim = copies.last
            } else if smallHasSome, isSmallNext || !mainHasSome || reach == .unused {
                victim = small.last
            } else if mainHasSome, reach == .all || reach == .inLine && !isSmallNext {
                victim = main.last
            } else {
                victim = nil
            }
            guard let victim else { break }
            if victim.body.isOnItsWay {
                switch victim.place {
                case .small: skipped.small += 1
                case .main: skipped.main += 1
                case .copies: skipped.copies += 1
                case .nowhere: preconditionFailure("it was found in a queue")
                }
                rotate(victim)
            } else if victim.frequency >= usesToKeep(victim) {
                keep(victim)
                progressed = true
            } else {
                evict(victim, into: &doomed)
                return .evicted
            }
        }
        return progressed ? .progressed : .nothing
    }

    /// The small queue has more than its share.
    private var isSmallNext: Bool { small.bytes * 10 > bytes }

    /// Copies take one part of so many of a full memory. With three nodes and a zipf load, all nodes together make 1.04 times the requests to
    /// the origin of one with three times the memory (Benchmarks/fleet.py). With a tenth it was 1.08, and 1.30 without a bound.
    private static let copiesShare = 20

    /// Whether a body of the back store may replace one in memory: that of a response that has been used more than once, or that came back after it
    /// had been evicted.
    ///
    /// It may if the next response in line is in the small queue, and nobody has asked for that one again. Otherwise it may if the next one was not used
    /// since it was last examined. Only every eighth call examines one and takes one
    /// use from it. So a response that nobody requests is replaced after some time, and if all are requested equally often, bodies do
    /// not move to and fro. Responses without a body in memory are skipped: they take little memory, and reading their heads again
    /// costs as much as reading a body.
    mutating func admits(_ record: StoredRecord) -> Bool {
        guard record.frequency > 1 || record.place == .main else { return false }
        if isSmallNext, let next = small.last, next !== record, next.frequency == 0, !next.body.isOnItsWay {
            return true
        }
        questions &+= 1
        guard questions & 7 == 0 else { return false }
        for _ in 0..<Self.stepsMax {
            guard let victim = main.last ?? small.last ?? copies.last else { return true }
            if victim.body.isResident, !victim.body.isOnItsWay {
                guard victim.frequency > 0 else { return true }
                victim.setFrequency(victim.frequency - 1)
                rotate(victim)
                return false
            }
            rotate(victim)
        }
        return false
    }

    /// How often a response must have been used since it was last examined in order to stay. A heavy response takes the space of many
    /// others, so it must be used more often. With the zipf load of the benchmark this gives 2 percentage points more hits by requests,
    /// and 1 point less by bytes.
    private func usesToKeep(_ record: StoredRecord) -> UInt8 {
        let mean = bytes / max(1, recordCount)
        if record.weight <= 2 * mean { return 1 }
        return record.weight <= 8 * mean ? 2 : 3
    }

    private mutating func evict(_ victim: StoredRecord, into doomed: inout Doomed) {
        precondition(victim.place != .nowhere, "only a response in a queue is evicted")
        if victim.place == .small { ghost.note(victim.key, limit: main.count, into: &doomed) }
        evictions += 1
        evictedBytes += victim.weight
        _ = takeOut(victim, into: &doomed)
    }

    /// Moves a response that was used while it waited: from small to main, from main to main again. A copy remains one.
    private mutating func keep(_ record: StoredRecord) {
        precondition(record.frequency > 0, "only a response that was used is kept")
        record.setFrequency(record.place == .small ? 0 : record.frequency - 1)
        guard record.place == .small else { return rotate(record) }
        unlink(record)
        main.push(record)
    }

    private mutating func rotate(_ record: StoredRecord) {
        switch record.place {
        case .small:
            small.remove(record)
            small.push(record)
        case .main:
            main.remove(record)
            main.push(record)
        case .copies:
            copies.remove(record)
            copies.push(record)
        case .nowhere: preconditionFailure("only a response in a queue is moved")
        }
    }

    private mutating func unlink(_ record: StoredRecord) {
        switch record.place {
        case .small: small.remove(record)
        case .main: main.remove(record)
        case .copies: copies.remove(record)
        case .nowhere: break
        }
    }
}
