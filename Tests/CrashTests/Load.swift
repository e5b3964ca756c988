import Foundation
import ProgramUnderTest
import Synchronization

/// Clients of one life of the proxy: they ask, change, purge, and judge each answer as it comes.
final class Load: Sendable {
    let world: World
    let origin: Origin
    let larder: Larder
    /// Resources in play: 0..<this.
    let resourceCount: Int
    /// Files of the store were damaged: what is lost of a body that can not be asked for again breaks answers off.
    let isDamaged: Bool
    private let isEnding = Atomic<Bool>(false)
    private let isOver = Atomic<Bool>(false)

    init(_ world: World, _ origin: Origin, _ larder: Larder, resourceCount: Int, isDamaged: Bool = false) {
        self.world = world
        self.origin = origin
        self.larder = larder
        self.resourceCount = resourceCount
        self.isDamaged = isDamaged
    }

    /// From now on answers may break off: the process is told to end.
    func expectEnd() { isEnding.store(true, ordering: .sequentiallyConsistent) }
    /// No new requests.
    func stop() { isOver.store(true, ordering: .sequentiallyConsistent) }

    /// Runs until it is stopped or the proxy is gone. Blocks.
    func run(threads: Int, seed: UInt64) {
        inThreads(threads) { [self] number in
            var client = Client(self, Dice(seed: seed &+ UInt64(number) &* 7919))
            while !isOver.load(ordering: .relaxed), client.act() {}
        }
    }

    // MARK: one request

    /// Asks over a connection, and judges what comes. Throws when it broke off, which is a fault where nobody ended the process.
    /// - Parameter told: false: read no further.
    func ask(
        _ question: Question, over stream: Stream, told: (Int) -> Bool = { _ in true }
    ) throws(BrokenOff) -> Answer {
        let beginning = world.begin(question)
        do throws(BrokenOff) {
            do throws(SocketError) {
                try stream.send(question.head(origin: origin.port))
            } catch {
                throw BrokenOff(part: nil, reason: error)
            }
            let answer = try readAnswer(stream, to: question.method, told: told)
            judge(answer, to: question, beginning)
            return answer
        } catch {
            // The head is that of an answer, and its bytes are right, even if not all came.
            if let part = error.part { judge(part, to: question, beginning) }
            world.count { $0.broken += 1 }
            // What the origin has no longer can not be completed.
            let isGone = error.part.flatMap { question.version(of: $0) } != world.version(question.resource.number)
            let isLost = isDamaged && question.resource.validator == .none
            if !isEnding.load(ordering: .sequentiallyConsistent), error.part == nil || !isGone && !isLost {
                world.fault(
                    "\(question.summary) broke off: \(error.reason), after \(error.part?.body.count ?? -1) bytes; "
                        + "fields \(error.part?.fields ?? [:]); the origin's last "
                        + "\(origin.asks(question.resource.number).suffix(5).map(\.description))"
                        + (error.reason == .timedOut ? "; under way \(transfers)" : ""))
            }
            throw error
        }
    }

    /// What the proxy has under way, which shows what a client that got nothing was waiting for.
    private var transfers: String {
        (try? larder.admin("GET", "/transfers")).map { String(decoding: $0.body, as: UTF8.self) } ?? "is not known"
    }

    private func judge(_ answer: Answer, to question: Question, _ beginning: World.Beginning) {
        if isEnding.load(ordering: .sequentiallyConsistent), answer.status >= 502 { return }
        let versionMin = beginning.versionMin
        let versions = versionMin...max(versionMin, world.version(question.resource.number))
        if let fault = question.fault(in: answer, versions: versions) {
            world.fault("\(question.summary): \(fault); fields \(answer.fields)")
        } else {
            world.took(answer, to: question, since: beginning)
        }
    }
}

extension Question {
    var summary: String {
        "\(method) \(resource.path) \(variant)\(resource.isChunked ? " chunked" : "")"
            + "\(range.map { " \($0.text)" } ?? "")\(ifRange.map { " if-range \($0)" } ?? "")"
            + "\(ifNot.map { " if-not \($0)" } ?? "")\(cacheControl.map { " \($0)" } ?? "")"
    }
}

/// One thread of the load: a connection, and what it was told last.
private struct Client {
    let load: Load
    var dice: Dice
    private var stream: Stream?
    private var versions: [Int: Int] = [:]

    init(_ load: Load, _ dice: Dice) {
        self.load = load
        self.dice = dice
    }

    /// - Returns: false: the proxy is gone.
    mutating func act() -> Bool {
        if stream == nil {
            guard let made = try? load.larder.connect() else { return false }
            stream = made
        }
        // Some are asked for more often than others.
        let number = min(dice.below(load.resourceCount), dice.below(load.resourceCount))
        var question = Question(Resource(number: number))
        if dice.oneIn(3) { question.language = .de }
        switch dice.below(100) {
        case 0..<52: return ask(question)
        case 52..<70: return askPart(&question)
        case 70..<78:
            question.ifNot = versions[number]
            return ask(question)
        case 78..<82:
            question.method = "HEAD"
            return ask(question)
        case 82..<86:
            // At times there is something new of which the proxy hears by this question only.
            if dice.oneIn(2) { _ = load.world.change(number) }
            question.cacheControl = "no-cache"
            // What comes takes the place of what is stored, and may be written later than that is removed.
            load.world.beginRemoval([number])
            defer { load.world.endRemoval([number]) }
            return ask(question)
        case 86..<90: return leaveEarly(question)
        case 90..<96: return post(question)
        case 96..<99: return purge([number], ["url": url(Resource(number: number).path)])
        default: return dice.oneIn(2) ? purgeGroup(number) : purgeTree()
        }
    }

    private mutating func ask(_ question: Question) -> Bool {
        guard let stream, let answer = try? load.ask(question, over: stream) else {
            stream = nil
            return true
        }
        if let version = question.version(of: answer) { versions[question.resource.number] = version }
        if answer.closes { self.stream = nil }
        return true
    }

    private mutating func askPart(_ question: inout Question) -> Bool {
        let length = question.resource.length(
            load.world.version(question.resource.number), question.variant)
        switch dice.below(4) {
        case 0: question.range = .from(dice.below(length + 2))
        case 1: question.range = .last(1 + dice.below(length + 1))
        default:
            let first = dice.below(length + 1)
            question.range = .between(first, through: first + dice.below(max(1, length - first)))
        }
        if dice.oneIn(2) { question.ifRange = versions[question.resource.number] }
        return ask(question)
    }

    /// A client that does not wait for the end.
    private mutating func leaveEarly(_ question: Question) -> Bool {
        guard let stream else { return true }
        let enough = dice.below(200_000)
        _ = try? load.ask(question, over: stream) { $0 < enough }
        self.stream = nil
        return true
    }

    private mutating func post(_ question: Question) -> Bool {
        guard let stream else { return true }
        let number = question.resource.number
        let place = "127.0.0.1:\(load.origin.port)"
        load.world.beginRemoval([number])
        defer { load.world.endRemoval([number]) }
        do {
            try stream.send(
                "POST http://\(place)\(question.resource.path) HTTP/1.1\r\nHost: \(place)\r\nContent-Length: 3\r\n\r\nnew"
            )
            let answer = try readAnswer(stream, to: "POST")
            if answer.status == 204, let version = answer.fields["x-version"].flatMap({ Int($0) }) {
                load.world.told(number, version: version, isDurable: false)
            } else {
                load.refused("POST \(question.resource.path): status \(answer.status)")
            }
        } catch {
            load.refused("POST \(question.resource.path): \(error)")
            self.stream = nil
        }
        return true
    }

    private func url(_ path: String) -> String { "http://127.0.0.1:\(load.origin.port)\(path)" }

    private mutating func purgeGroup(_ number: Int) -> Bool {
        let tag = Resource(number: number).tag
        return purge((0..<load.resourceCount).filter { Resource(number: $0).tag == tag }, ["tag": tag])
    }

    private mutating func purgeTree() -> Bool {
        purge(
            (0..<load.resourceCount).filter { Resource(number: $0).path.hasPrefix("/a/b/1") }, ["prefix": url("/a/b/1")]
        )
    }

    /// There is something new, and the operator says so.
    private mutating func purge(_ numbers: [Int], _ conditions: [String: String]) -> Bool {
        load.world.beginRemoval(numbers)
        defer { load.world.endRemoval(numbers) }
        let changed = numbers.map { ($0, load.world.change($0)) }
        do {
            if try load.larder.purge(conditions) {
                for (number, version) in changed { load.world.told(number, version: version, isDurable: true) }
            } else {
                load.refused("purge of \(conditions)")
            }
        } catch {
            load.refused("purge of \(conditions): \(error)")
        }
        return true
    }
}

extension Load {
    /// What nobody refuses but a proxy that ends.
    fileprivate func refused(_ what: String) {
        if !isEnding.load(ordering: .sequentiallyConsistent) { world.fault(what) }
    }
}
