import EventLoop
import Foundation
import Glibc
import ProgramUnderTest
import Synchronization

/// Lives of one proxy after the other, each ended in another way.
final class Trial {
    let world = World()
    private let origin: Origin
    private var dice: Dice
    private let isMemoryOnly: Bool
    private let directory: String
    private var store = 0
    private var order: Larder.Order
    /// Resources in play with this store.
    private var resourceCount = 0
    /// Everything fits: nothing has to go for space.
    private var isRoomy = true
    /// What has to be served without asking the origin.
    private var expected: [World.Representation: World.Stored] = [:]
    /// How many the disk has refused because too much waited. They were in memory alone, and none of these.
    private var refusedCount = 0
    private(set) var history = ""
    private var roundsDone = 0
    private var resumed = 0
    private var damages = 0
    /// Of its size, what a store took at most.
    private var takenMax = 0.0
    /// This store was.
    private var isDamaged = false
    /// Removals may stand in no segment of this store any more, but in its book alone.
    private var isForgetful = false
    /// The next one for a download that is cut.
    private var nextDownload = 2000

    private let isVerbose = ProcessInfo.processInfo.environment["LARDER_CRASH_VERBOSE"] == "1"

    private let memoryMiB = ProcessInfo.processInfo.environment["LARDER_CRASH_MEMORY"].flatMap { Int($0) }

    private static let roundsPerStore = 5
    private static let threads = 4

    /// How a life ends.
    enum End: CaseIterable {
        case kill, terminate, duringStart, twice, duringDownload
    }

    init(seed: UInt64, isMemoryOnly: Bool) throws {
        dice = Dice(seed: seed)
        self.isMemoryOnly = isMemoryOnly
        origin = try Origin(world)
        directory = try makeTemporaryDirectory("larder-crash")
        order = Larder.Order(directory: directory)
        _ = Noise.bytes
    }

    /// Takes away what was made.
    func end() {
        origin.close()
        if !world.faults.isEmpty, ProcessInfo.processInfo.environment["LARDER_CRASH_KEEP"] == "1" {
            print("crash test: kept \(directory)")
        } else {
            try? FileManager.default.removeItem(atPath: directory)
        }
    }

    var summary: String {
        let tally = world.tally
        return """
            \(roundsDone) rounds, \(tally.answers) answers with \(tally.bytes >> 20) MiB checked \
            (\(tally.hits) hits, \(tally.parts) parts, \(tally.notModified) not modified, \(tally.broken) broken off), \
            \(tally.posts) invalidations, \(tally.purges) purges, \(tally.undone) undone by a kill; \
            \(tally.forgotten) forgotten in the same life; committed: \(tally.kept) kept, \(tally.lost) lost; \(resumed) downloads resumed, \(damages) times damaged, filled to \(Int(takenMax * 1000)) per mille
            """
    }

    private func note(_ text: String) {
        history += "\(text)\n"
        if isVerbose { print(text) }
    }

    /// Until something is wrong.
    func run(rounds: Int) {
        do {
            for number in 1...rounds {
                try round(number)
                guard world.faults.isEmpty else { return }
            }
        } catch {
            world.fault("\(error)")
        }
    }

    // MARK: one round

    private func round(_ number: Int) throws {
        if (number - 1) % Self.roundsPerStore == 0 { openStore() }
        let end: End =
            switch dice.below(12) {
            case 0, 1: .terminate
            case 2: .duringStart
            case 3: .twice
            case 4, 5: .duringDownload
            default: .kill
            }
        note("round \(number): store \(store), \(order.memoryMiB) MiB of memory, \(end)")
        if end == .duringStart || end == .twice { try killDuringStart(count: end == .twice ? 2 : 1) }
        let larder = try Larder(order)
        try verify(larder)
        let seed = dice.next()
        let limit = 0.2 + Double(dice.below(900)) / 1000
        if end == .duringDownload {
            try cutDownload(larder)
        } else {
            try live(larder, for: limit, seed: seed, end == .terminate ? SIGTERM : SIGKILL)
        }
        if !isMemoryOnly, dice.oneIn(4) { strike() }
        roundsDone += 1
    }

    /// A directory of its own, of another size.
    private func openStore() {
        store += 1
        isDamaged = false
        isForgetful = false
        isRoomy = !dice.oneIn(3)
        resourceCount = isRoomy ? 200 : 500
        // With 4 MiB, transfers under way and what waits for the disk often take all memory.
        order.memoryMiB = memoryMiB ?? (dice.oneIn(3) ? 4 : 8)
        if !isMemoryOnly {
            order.disk = Larder.Order.Disk(path: "\(directory)/store-\(store)", sizeMiB: isRoomy ? 200 : 64)
        }
        if store > 1 { try? FileManager.default.removeItem(atPath: "\(directory)/store-\(store - 1)") }
        expected = [:]
        world.damaged(isForgetful: false)
    }

    /// Under load, until it is ended.
    private func live(_ larder: Larder, for seconds: Double, seed: UInt64, _ signal: CInt) throws {
        let load = Load(world, origin, larder, resourceCount: resourceCount, isDamaged: isDamaged)
        let watch = Watch(larder, sync: .milliseconds(200))
        origin.breakOff(oneIn: 20)
        let isDone = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            load.run(threads: Self.threads, seed: seed)
            isDone.signal()
        }
        usleep(useconds_t(seconds * 1_000_000))
        if signal == SIGTERM {
            load.stop()
            isDone.wait()
        }
        load.expectEnd()
        refusedCount = try refusals(larder)
        let now = ContinuousClock.now
        larder.program.signal(signal)
        guard let status = larder.program.end(within: 20) else {
            larder.program.signal(SIGKILL)
            throw Failure(description: "larder did not end after signal \(signal): \(larder.program.errors)")
        }
        if status != (signal == SIGTERM ? 0 : 128 + SIGKILL) {
            world.fault("larder ended with status \(status) after signal \(signal): \(larder.program.errors)")
        }
        load.stop()
        if signal != SIGTERM { isDone.wait() }
        watch.stop()
        origin.breakOff(oneIn: 0)
        afterEnd(committed: signal == SIGTERM ? now : watch.committed(by: now), watch.last)
    }

    /// Responses that the disk has refused in this life.
    private func refusals(_ larder: Larder) throws -> Int {
        isMemoryOnly ? 0 : try eventually("the figures of the disk") { Watch.sample(larder) }.refusedBusy
    }

    /// What is promised for the next life.
    private func afterEnd(committed: ContinuousClock.Instant?, _ last: Watch.Sample?) {
        let stored = world.killed(committed: committed ?? ContinuousClock.now - .seconds(3600))
        expected = isMemoryOnly || committed == nil ? [:] : stored
        if let disk = order.disk {
            let taken = bytesTaken(below: disk.path)
            takenMax = max(takenMax, Double(taken) / Double(disk.sizeMiB << 20))
            if taken > disk.sizeMiB << 20 { world.fault("the store takes \(taken) bytes of \(disk.sizeMiB) MiB") }
        }
        note("  ended; \(expected.count) of \(stored.count) have to be there; last seen \(String(describing: last))")
    }

    /// Starts it and kills it before it is ready, or hardly after.
    private func killDuringStart(count: Int) throws {
        for _ in 0..<count {
            let program = try Larder.launch(order)
            usleep(useconds_t(dice.below(150_000)))
            program.signal(SIGKILL)
            guard program.end(within: 20) == 128 + SIGKILL else {
                throw Failure(description: "killed during start: \(program.exitStatus ?? -1), \(program.errors)")
            }
        }
    }

    private func strike() {
        let damage = Damage.allCases[dice.below(Damage.allCases.count)]
        guard let disk = order.disk, let what = damage.strike(disk.path, &dice) else { return }
        note("  \(what)")
        damages += 1
        isDamaged = true
        expected = [:]
        // A book that is damaged later is made from the segments again.
        isForgetful = isForgetful || damage.isForgetful
        world.damaged(isForgetful: isForgetful)
    }

    // MARK: after the start

    /// Asks for everything, and checks each answer; what was committed is served without asking the origin.
    private func verify(_ larder: Larder) throws {
        let load = Load(world, origin, larder, resourceCount: resourceCount, isDamaged: isDamaged)
        if !isMemoryOnly {
            _ = try eventually("the store is loaded") { Watch.sample(larder).map(\.isLoaded) == true ? true : nil }
        }
        let next = Atomic<Int>(0)
        let lost = Locked<[String]>([])
        let numbers = Array(0..<resourceCount).shuffled(using: &dice)
        let isComplete = dice.oneIn(2)
        let seed = dice.next()
        // Each has its own numbers, so that what the origin is asked is for that question.
        inThreads(2) { [world, origin, expected] thread in
            var dice = Dice(seed: seed &+ UInt64(thread))
            guard var stream = try? larder.connect() else { return world.fault("no connection after the start") }
            while true {
                let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard index < numbers.count, world.faults.isEmpty else { return }
                for language in Language.allCases {
                    var question = Question(Resource(number: numbers[index]))
                    question.language = language
                    let isExpected = expected[question.representation] != nil
                    guard isExpected || isComplete || dice.oneIn(4) else { continue }
                    if dice.oneIn(3) { question.range = .from(dice.below(70_000)) }
                    let before = origin.askCount(question.resource.number)
                    guard let answer = try? load.ask(question, over: stream) else {
                        guard let again = try? larder.connect() else { return world.fault("the proxy is gone") }
                        stream = again
                        continue
                    }
                    guard isExpected, answer.status == 200 || answer.status == 206 else { continue }
                    let asks = origin.asks(question.resource.number).dropFirst(before)
                    let isKept =
                        question.resource.isAlwaysValidated
                        ? question.resource.validator == .none
                            || asks.allSatisfy { $0.isConditional && $0.status == 304 } : asks.isEmpty
                    world.count { if isKept { $0.kept += 1 } else { $0.lost += 1 } }
                    if !isKept {
                        lost.withLock {
                            $0.append(
                                "\(question.summary): \(asks.map(\.description)) \(answer.fields)"
                                    + world.events(question.representation))
                        }
                    }
                    if answer.closes, let again = try? larder.connect() { stream = again }
                }
            }
        }
        let sample = Watch.sample(larder)
        let misses = lost.withLock { $0 }
        note("  verified; \(misses.count) lost, \(refusedCount) were refused; \(String(describing: sample))")
        if isRoomy, let first = misses.first {
            let all = "\(misses.count) of \(expected.count) that were called stored and were committed"
            world.fault("\(all) were asked of the origin; \(refusedCount) were refused as busy: \(first)")
        }
        expected = [:]
    }

    // MARK: a download that is cut

    /// Kills it in the middle of a large download; the client goes on in the next life, and what was there is not asked for again.
    private func cutDownload(_ larder: Larder) throws {
        let resource = nextLargeResource()
        let length = resource.length(world.version(resource.number), .en)
        let held = 300_000 + dice.below(length - 400_000)
        origin.hold(resource.number, at: held)
        defer { origin.release(resource.number) }
        let load = Load(world, origin, larder, resourceCount: resourceCount, isDamaged: isDamaged)
        let received = Atomic<Int>(0)
        let isDone = DispatchSemaphore(value: 0)
        let watch = Watch(larder, sync: .milliseconds(200))
        // A disk that is behind would refuse the download.
        if !isMemoryOnly { try watch.waitUntilCommitted() }
        let port = larder.port
        Thread.detachNewThread {
            if let stream = try? Stream.connect(port: port) {
                _ = try? load.ask(Question(resource), over: stream) {
                    received.store($0, ordering: .relaxed)
                    return true
                }
            }
            isDone.signal()
        }
        defer { isDone.wait() }
        _ = try eventually("\(held) bytes of \(resource.path)") {
            received.load(ordering: .relaxed) >= held ? true : nil
        }
        if !isMemoryOnly { try watch.waitUntilCommitted() }
        load.expectEnd()
        refusedCount = try refusals(larder)
        let now = ContinuousClock.now
        larder.program.signal(SIGKILL)
        guard larder.program.end(within: 20) != nil else { throw Failure(description: "SIGKILL did not kill") }
        watch.stop()
        afterEnd(committed: watch.committed(by: now), watch.last)
        note("  cut at \(held) of \(resource.path) with \(length) bytes")
        origin.release(resource.number)
        try resume(resource, from: held, length)
    }

    private func nextLargeResource() -> Resource {
        while true {
            nextDownload += 1
            let resource = Resource(number: nextDownload)
            guard resource.isLarge, !resource.isChunked, !resource.isVaried, !resource.isAlwaysValidated,
                resource.validator != .none
            else {
                continue
            }
            if resource.length(1, .en) > 1_500_000 { return resource }
        }
    }

    /// The client comes back for the rest, or for all of it.
    private func resume(_ resource: Resource, from held: Int, _ length: Int) throws {
        let larder = try Larder(order)
        let load = Load(world, origin, larder, resourceCount: resourceCount, isDamaged: isDamaged)
        let before = origin.askCount(resource.number)
        var question = Question(resource)
        if dice.oneIn(2) {
            question.range = .from(held)
            question.ifRange = 1
        }
        _ = try load.ask(question, over: try larder.connect())
        let firstMissing = held / 65_536 * 65_536
        let asks = origin.asks(resource.number).dropFirst(before)
        // What does not fit may have gone for something else, or was not taken.
        for ask in asks where isRoomy && !isMemoryOnly {
            guard let part = ask.range?.resolved(length), part.lowerBound >= firstMissing else {
                world.fault("cut at \(held), \(question.summary) asked the origin again: \(ask.description)")
                break
            }
        }
        resumed += 1
        load.expectEnd()
        larder.program.signal(SIGKILL)
        _ = larder.program.end(within: 20)
    }
}
