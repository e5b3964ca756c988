import Storage
import Testing

@Suite("RFC 9111 §4 collapsed requests: transfers under way")
struct TransferTests {
    let tier = MemoryTier(budget: 4 << 20, shards: 2, objectMax: 1 << 20, variantsPerKeyMax: 4)
    let counter = Counter()

    private func leader(_ name: String, knownNewest: StoredRecord? = nil) throws -> Transfer {
        guard case .lead(let transfer) = tier.lead(name, knownNewest: knownNewest) else {
            throw Unexpected.notLeading
        }
        return transfer
    }

    private func follower(_ name: String) throws -> Transfer {
        guard case .follow(let transfer) = tier.lead(name) else { throw Unexpected.notFollowing }
        return transfer
    }

    private enum Unexpected: Error { case notLeading, notFollowing }

    @Test func `one leads, all others follow and are woken once`() throws {
        let leader = try leader("a")
        let followers = try (0..<3).map { _ in try follower("a") }
        for follower in followers { #expect(follower.follow(counter.wake, limit: 10) != nil) }
        #expect(leader.isLeader)
        #expect(followers.allSatisfy { !$0.isLeader && $0.outcome == nil })
        #expect(leader.followerCount == 3)
        #expect(tier.statistics.transferCount == 1)
        leader.resolve(.failed(code: 7))
        #expect(counter.count == 3)
        guard case .failed(7)? = followers[0].outcome else {
            Issue.record("the outcome is the leader's")
            return
        }
        #expect(tier.statistics.transferCount == 0)
    }

    @Test(arguments: 0..<10) func `keys whose hashes collide have transfers of their own`(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        // The same place in every table of up to 2⁴⁰ places.
        func key(_ number: Int) -> StorageKey { StorageKey(high: 0, low: UInt64(number) << 40) }
        func lead(_ number: Int) -> Leadership { tier.lead(key(number), [UInt8(number)], knownNewest: nil) }
        var leaders: [Int: Transfer] = [:]
        for _ in 0..<400 {
            let number = Int.random(in: 0..<30, using: &random)
            switch lead(number) {
            case .lead(let transfer):
                #expect(leaders[number] == nil)
                leaders[number] = transfer
            case .follow(let transfer):
                let leader = try #require(leaders[number])
                guard Bool.random(using: &random) else { continue }
                leader.resolve(.failed(code: Int32(number)))
                guard case .failed(Int32(number))? = transfer.outcome else { throw Unexpected.notFollowing }
                leaders[number] = nil
            case .lookAgain, .keptApart, .nobodyLeads: throw Unexpected.notLeading
            }
            #expect(tier.statistics.transferCount == leaders.count)
        }
        _ = unsafe [UInt8(7)].withUnsafeBytes { unsafe tier.invalidate(key(7), $0) }
        leaders[7]?.resolve(.notShared)
        tier.outdateTransfers()
        #expect(tier.statistics.transferCount == 0)
        #expect(leaders.values.allSatisfy { $0.isOutdated })
    }

    @Test func `requests for other keys lead transfers of their own`() throws {
        let first = try leader("a")
        let second = try leader("b")
        #expect(first.outcome == nil && second.outcome == nil)
    }

    @Test func `followers get the published record, and later requests find it`() throws {
        let leader = try leader("a")
        let follower = try follower("a")
        #expect(follower.follow(counter.wake, limit: 1) != nil)
        let body = try #require(tier.makeBody(expectedLength: 5))
        let record = TestRecord("a", body: body)
        #expect(tier.insert(record))
        leader.resolve(.published(record))
        guard case .published(let published)? = follower.outcome else {
            Issue.record("the record was published")
            return
        }
        #expect(published === record)
        guard case .lookAgain = tier.lead("a") else {
            Issue.record("something was stored since the look-up")
            return
        }
        // Another variant, or a request that may not use the record: it leads.
        _ = try self.leader("a", knownNewest: record)
    }

    @Test func `who may not lead follows, and begins nothing`() throws {
        func joins() -> Leadership { tier.lead(storageKey("a"), Array("a".utf8), knownNewest: nil, mayLead: false) }
        guard case .nobodyLeads = joins() else { throw Unexpected.notLeading }
        let leader = try leader("a")
        guard case .follow = joins() else { throw Unexpected.notFollowing }
        leader.abandon()
        guard case .nobodyLeads = joins() else { throw Unexpected.notLeading }
        #expect(tier.statistics.transferCount == 0)
    }

    @Test func `after a record was freshened, others look it up again`() throws {
        let old = try #require(tier.store("a", bytes: 3))
        let leader = try leader("a", knownNewest: old)
        #expect(tier.replace(old, with: TestRecord("a", body: old.body)))
        guard case .lookAgain = tier.lead("a", knownNewest: old) else {
            Issue.record("the newest record changed")
            return
        }
        leader.abandon()
    }

    @Test func `a key whose response was for one client alone is kept apart until the time is over`() throws {
        func leads(_ name: String, at now: Duration?) -> Bool {
            if case .lead = tier.lead(name, askedAt: now) { true } else { false }
        }
        func isKeptApart(_ name: String, at now: Duration) -> Bool {
            if case .keptApart = tier.lead(name, askedAt: now) { true } else { false }
        }
        try leader("a").resolve(.notShared, .refuted(until: .seconds(30)))
        #expect(isKeptApart("a", at: .seconds(29)))
        #expect(leads("a", at: .seconds(30)))
        // Who cannot do without a transfer leads one.
        #expect(leads("a", at: nil))
        #expect(leads("b", at: .seconds(29)))
        // A response for all ends it, and what shows nothing does not.
        try leader("a").resolve(.notShared)
        #expect(isKeptApart("a", at: .seconds(29)))
        try leader("a").resolve(.notShared, .proven)
        #expect(leads("a", at: .seconds(29)))
    }

    @Test func `more keys than there is room for are kept apart in part, and the others are not harmed`() throws {
        for number in 0..<20_000 { try leader("\(number)").resolve(.notShared, .refuted(until: .seconds(30))) }
        var count = 0
        for number in 0..<20_000 {
            switch tier.lead("\(number)", askedAt: .zero) {
            case .keptApart: count += 1
            case .lead: break
            case .follow, .nobodyLeads, .lookAgain: throw Unexpected.notLeading
            }
        }
        #expect((1...4_096).contains(count))
    }

    @Test func `if the leader leaves, everybody fetches alone`() throws {
        var leader: Transfer? = try leader("a")
        let follower = try follower("a")
        #expect(follower.follow(counter.wake, limit: 10) != nil)
        #expect(leader?.followerCount == 1)
        leader = nil
        #expect(counter.count == 1)
        guard case .notShared? = follower.outcome else {
            Issue.record("nobody shares")
            return
        }
        _ = try self.leader("a")
    }

    @Test func `a follower that leaves changes nothing`() throws {
        let leader = try leader("a")
        do { _ = try follower("a") }
        #expect(leader.outcome == nil)
        _ = try follower("a")
    }

    @Test func `the number of followers that wait is limited`() throws {
        let leader = try leader("a")
        let follower = try follower("a")
        let first = try #require(follower.follow(counter.wake, limit: 2))
        #expect(follower.follow(counter.wake, limit: 2) != nil)
        #expect(follower.follow(counter.wake, limit: 2) == nil)
        follower.cancel(first)
        #expect(follower.follow(counter.wake, limit: 2) != nil)
        leader.resolve(.notShared)
        #expect(counter.count == 2)
    }

    @Test func `a follower that comes after the outcome is woken at once`() throws {
        let leader = try leader("a")
        let follower = try follower("a")
        leader.resolve(.notShared)
        #expect(follower.follow(counter.wake, limit: 0) != nil)
        #expect(counter.count == 1)
    }

    @Test func `the first outcome stays`() throws {
        let leader = try leader("a")
        leader.resolve(.failed(code: 1))
        let next = try self.leader("a")
        leader.resolve(.notShared)
        guard case .failed(1)? = leader.outcome else {
            Issue.record("the outcome changed")
            return
        }
        #expect(next.outcome == nil)
        _ = try follower("a")
    }

    @Test func `a request for another key with the same hash leads alone`() throws {
        let running = try leader("a")
        let bytes = Array("x".utf8)
        for _ in 0..<2 {
            guard case .lead(let alone) = tier.lead(storageKey("a"), bytes, knownNewest: nil) else {
                Issue.record("it must not follow another key's transfer")
                return
            }
            alone.resolve(.notShared)
        }
        #expect(running.outcome == nil)
        _ = try follower("a")
    }
}
