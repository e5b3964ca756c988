import Testing

/// Those who judge the proxy are judged here: what they let pass, and what not.
@Suite("What a crash test knows")
struct OracleTests {
    private let resource = Resource(number: 5)

    private func answer(_ version: Int, of resource: Resource, part: Range<Int>? = nil) -> Answer {
        let length = resource.length(version, .en)
        let part = part ?? 0..<length
        var answer = Answer()
        answer.status = part == 0..<length ? 200 : 206
        answer.isWhole = true
        answer.fields = [
            "x-version": "\(version)", "cache-status": "larder; hit",
            "content-range": "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(length)",
        ]
        answer.fields["etag"] = resource.entityTag(version, .en)
        answer.fields["last-modified"] = resource.lastModified(version)
        let start = (resource.start(version, .en) + part.lowerBound) % Noise.period
        answer.body = Array(Noise.bytes[start..<start + part.count])
        return answer
    }

    @Test func `the right bytes of a version that may be served are right`() {
        #expect(Question(resource).fault(in: answer(3, of: resource), versions: 2...3) == nil)
    }

    @Test func `an older version is none that may be served`() {
        #expect(Question(resource).fault(in: answer(1, of: resource), versions: 2...3) != nil)
    }

    @Test func `one wrong byte is found, and where it came from`() throws {
        let long = try #require((0..<100).map { Resource(number: $0) }.first { $0.length(1, .en) > 5000 })
        var wrong = answer(1, of: long)
        wrong.body[4000] ^= 4
        #expect(Question(long).fault(in: wrong, versions: 1...1)?.contains("byte 4000 of ") == true)
        let other = Noise.bytes[long.start(2, .en) + 100..<long.start(2, .en) + 116]
        #expect(
            Resource.origins(of: other, among: 100, versionMax: 2).contains("\(long.path) version 2 en offset 100"))
    }

    @Test func `a body that ends too early, of another length, or of two versions is wrong`() {
        var short = answer(2, of: resource)
        short.body.removeLast()
        #expect(Question(resource).fault(in: short, versions: 2...2) != nil)
        short.isWhole = false
        #expect(
            Question(resource).fault(in: short, versions: 2...2) == nil, "what broke off is right as far as it goes")
        var mixed = answer(2, of: resource)
        mixed.fields["x-version"] = "1"
        #expect(Question(resource).fault(in: mixed, versions: 1...2) != nil)
    }

    @Test func `a part is the part that was asked for, of the version that was asked for`() throws {
        let long = try #require((0..<100).map { Resource(number: $0) }.first { $0.length(1, .en) > 5000 })
        var question = Question(long)
        question.range = .between(100, through: 299)
        #expect(question.fault(in: answer(1, of: long, part: 100..<300), versions: 1...1) == nil)
        #expect(question.fault(in: answer(1, of: long, part: 100..<301), versions: 1...1) != nil)
        question.ifRange = 2
        #expect(question.fault(in: answer(1, of: long, part: 100..<300), versions: 1...1) != nil)
    }

    @Test func `an invalidation that was not committed may be undone by a kill, a purge never`() {
        let world = World()
        let start = ContinuousClock.now
        world.told(5, version: 3, isDurable: true)
        world.told(5, version: 4, isDurable: false)
        #expect(world.begin(Question(resource)).versionMin == 4)
        _ = world.killed(committed: start)
        #expect(world.begin(Question(resource)).versionMin == 3)
        world.told(5, version: 5, isDurable: false)
        _ = world.killed(committed: ContinuousClock.now)
        #expect(world.begin(Question(resource)).versionMin == 5)
    }

    /// An answer to a request that is sent now.
    private func took(_ world: World, _ answer: Answer) {
        world.took(answer, to: Question(resource), since: world.begin(Question(resource)))
    }

    @Test func `what was served from the store is not followed by something older, and has to be there after a kill`() {
        let world = World()
        _ = world.change(5)
        took(world, answer(2, of: resource))
        #expect(world.begin(Question(resource)).versionMin == 2)
        let stored = world.killed(committed: ContinuousClock.now)
        #expect(stored.map(\.value.version) == [2])
        #expect(world.begin(Question(resource)).versionMin == 1)
        took(world, answer(2, of: resource))
        world.told(5, version: world.change(5), isDurable: false)
        #expect(world.killed(committed: ContinuousClock.now).isEmpty)
    }

    @Test func `what is stored while it is being removed need not be there, nor what was fetched anew since`() {
        let world = World()
        world.beginRemoval([5])
        took(world, answer(1, of: resource))
        world.endRemoval([5])
        #expect(world.killed(committed: ContinuousClock.now).isEmpty)
        took(world, answer(1, of: resource))
        world.beginRemoval([5])
        world.endRemoval([5])
        #expect(world.killed(committed: ContinuousClock.now).isEmpty)
        // The answer had begun before the removal, and ended after it.
        let beginning = world.begin(Question(resource))
        world.beginRemoval([5])
        world.endRemoval([5])
        world.took(answer(1, of: resource), to: Question(resource), since: beginning)
        #expect(world.killed(committed: ContinuousClock.now).isEmpty)
    }

    @Test func `what the origin was asked for again has to be there once a client has it`() {
        let world = World()
        let representation = Question(resource).representation
        took(world, answer(1, of: resource))
        // The process is killed before the client has an answer.
        world.beginFetch(representation)
        world.endFetch(representation)
        #expect(world.killed(committed: ContinuousClock.now).isEmpty && world.tally.forgotten == 1)
        world.beginFetch(representation)
        took(world, answer(1, of: resource))
        #expect(world.killed(committed: ContinuousClock.now).isEmpty, "a hit from before the fetch")
        var miss = answer(1, of: resource)
        miss.fields["cache-status"] = "larder; fwd=vary-miss; fwd-status=200; stored"
        took(world, miss)
        world.endFetch(representation)
        #expect(world.killed(committed: ContinuousClock.now).count == 1)
    }

    private func sample(_ milliseconds: Int, commits: Int, waiting: Int = 0) -> Watch.Sample {
        Watch.Sample(
            at: Self.start + .milliseconds(milliseconds), commits: commits, waitingBytes: waiting, evicted: 0,
            refusedBusy: 0, isOn: true, isLoaded: true)
    }
    private static let start = ContinuousClock.now

    @Test func `committed is what came before two commits, or before a long silence`() {
        func committed(_ samples: [Watch.Sample], by milliseconds: Int) -> Duration? {
            Watch.committed(
                samples, sync: .milliseconds(200), by: Self.start + .milliseconds(milliseconds)
            ).map { $0 - Self.start }
        }
        #expect(committed([], by: 100) == nil)
        // The one that ran at 1000 may not have had it, the next has.
        #expect(committed([sample(1000, commits: 1), sample(1200, commits: 2)], by: 1300) == nil)
        #expect(
            committed([sample(1000, commits: 1), sample(1200, commits: 3)], by: 1300) == .milliseconds(700))
        #expect(
            committed([sample(1000, commits: 1, waiting: 9), sample(1200, commits: 3)], by: 1300) == nil,
            "something waited to be written")
        #expect(committed([sample(1000, commits: 1)], by: 2399) == nil)
        #expect(committed([sample(1000, commits: 1)], by: 2401) == .milliseconds(700), "nothing to commit")
    }
}
