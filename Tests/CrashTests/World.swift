import EventLoop

/// What is true: the versions that the origin has, those that may still be served, and what should be in the store.
///
/// What the proxy promises, and so what is judged:
/// - A purge that was acknowledged is for ever: nothing older is served, whatever happens.
/// - An invalidation by a `POST` (RFC 9111 §4.4) holds at once; a kill may undo it while it was not committed.
/// - What a client was given from the store was in it; where that was committed before a kill it is there afterwards,
///   unless the disk refused it because too much waited.
final class World: Sendable {
    static let resourceCountMax = 4000

    typealias Instant = ContinuousClock.Instant

    private struct State {
        var versions = [Int](repeating: 1, count: resourceCountMax)
        /// Changes that the proxy was told of, per resource, oldest first.
        var changes: [Int: [Change]] = [:]
        /// What was served from the store in this life: nothing older may follow.
        var seen: [Representation: Int] = [:]
        /// What is in the store, by the last hit; a miss since then says that it is not.
        var stored: [Representation: Stored] = [:]
        /// Resources that are being removed, by how many at once: what is stored meanwhile may go with what was before.
        var removals: [Int: Int] = [:]
        /// How many removals of them have begun.
        var removalsBegun: [Int: Int] = [:]
        /// What the origin is sending, by how many at once. What was stored before may have gone for what comes.
        var fetches: [Representation: Int] = [:]
        /// What happened to each lately, for whoever has to explain a loss.
        var events: [Representation: [Event]] = [:]
        /// The moment by which all was committed in the life before this one.
        var committed = Instant.now
        var faults: [String] = []
        var tally = Tally()

        mutating func note(_ representation: Representation, _ text: @autoclosure () -> String) {
            if events[representation, default: []].count == eventsMax { events[representation]?.removeFirst() }
            events[representation, default: []].append(Event(at: .now, text: text()))
        }

        mutating func note(_ number: Int, _ text: String) {
            for language in Language.allCases { note(Representation(number: number, language: language), text) }
        }
    }

    private struct Event {
        var at: Instant
        var text: String
    }

    private static let eventsMax = 24

    private struct Change {
        var version: Int
        var at: Instant
        /// Acknowledged as durable.
        var isDurable: Bool
    }

    struct Representation: Hashable, Sendable {
        var number: Int
        var language: Language
    }

    struct Stored: Sendable {
        var version: Int
        /// When it was known to be stored.
        var at: Instant
    }

    /// What happened: a test that checks nothing should be noticed.
    struct Tally: Sendable {
        var answers = 0
        var bytes = 0
        var hits = 0
        var parts = 0
        var notModified = 0
        var broken = 0
        var posts = 0
        var purges = 0
        var kept = 0
        var lost = 0
        var undone = 0
        /// Was stored, and was fetched anew in the same life: it had left memory before it was on the disk.
        var forgotten = 0
    }

    private let state = Locked(State())

    // MARK: the origin's

    func version(_ number: Int) -> Int { state.withLock { $0.versions[number] } }

    /// - Returns: the new version. What is stored may go from now on.
    func change(_ number: Int) -> Int {
        state.withLock {
            $0.versions[number] += 1
            $0.note(number, "the origin changes it")
            for language in Language.allCases {
                $0.stored[Representation(number: number, language: language)] = nil
            }
            return $0.versions[number]
        }
    }

    /// A removal of these begins: until `endRemoval` nobody knows what of them is stored.
    func beginRemoval(_ numbers: [Int]) {
        state.withLock { state in
            for number in numbers {
                state.removals[number, default: 0] += 1
                state.removalsBegun[number, default: 0] += 1
                state.note(number, "a removal begins")
            }
        }
    }

    func endRemoval(_ numbers: [Int]) {
        state.withLock { state in
            for number in numbers {
                let left = state.removals[number, default: 1] - 1
                state.removals[number] = left == 0 ? nil : left
                state.note(number, "a removal has ended")
                for language in Language.allCases {
                    state.stored[Representation(number: number, language: language)] = nil
                }
            }
        }
    }

    /// The origin was asked for this. If it was stored, it had left memory before it was on the disk. What comes takes its place, and until a
    /// client has that, nobody knows what is stored.
    func beginFetch(_ representation: Representation) {
        state.withLock { state in
            state.fetches[representation, default: 0] += 1
            state.note(representation, "the origin is asked")
            if state.stored.removeValue(forKey: representation) != nil { state.tally.forgotten += 1 }
        }
    }

    /// The origin has sent it, or its connection was lost.
    func endFetch(_ representation: Representation) {
        state.withLock { state in
            let left = state.fetches[representation, default: 1] - 1
            state.fetches[representation] = left == 0 ? nil : left
            state.note(representation, "the origin has sent it")
        }
    }

    // MARK: the clients'

    /// What is known of a resource when a request for it is sent.
    struct Beginning: Sendable {
        /// The oldest version that may be served.
        var versionMin: Int
        /// How many removals had begun. Nil if one of them was under way.
        fileprivate var removals: Int?
    }

    func begin(_ question: Question) -> Beginning {
        state.withLock { state in
            let number = question.resource.number
            return Beginning(
                versionMin: max(
                    state.changes[number]?.last?.version ?? 1, state.seen[question.representation] ?? 1),
                removals: state.removals[number] == nil ? state.removalsBegun[number] ?? 0 : nil)
        }
    }

    /// The proxy was told, and said so: nothing older than `version` is served from now on.
    func told(_ number: Int, version: Int, isDurable: Bool) {
        let now = ContinuousClock.now
        state.withLock { state in
            // Two at once may be told in another order than they happened.
            let version = max(version, state.changes[number]?.last?.version ?? 1)
            state.changes[number, default: []].append(Change(version: version, at: now, isDurable: isDurable))
            if isDurable { state.tally.purges += 1 } else { state.tally.posts += 1 }
        }
    }

    /// An answer came, and was judged. What was removed after the request was sent may be what came.
    func took(_ answer: Answer, to question: Question, since beginning: Beginning) {
        let now = ContinuousClock.now
        let version = question.version(of: answer)
        state.withLock { state in
            state.tally.answers += 1
            state.tally.bytes += answer.body.count
            if answer.status == 206 { state.tally.parts += 1 }
            if answer.status == 304 { state.tally.notModified += 1 }
            let representation = question.representation
            state.note(
                representation,
                "\(question.summary): \(answer.status), \(answer.body.count) bytes, version \(version ?? 0), "
                    + "whole \(answer.isWhole), \(answer.fields["cache-status"] ?? "")")
            guard let version else { return }
            if answer.isHit {
                state.tally.hits += 1
                state.seen[representation] = max(version, state.seen[representation] ?? 0)
            }
            guard answer.isStored else { return }
            let isLatest = version == state.versions[question.resource.number]
            guard isLatest, answer.status == 200, question.method == "GET", answer.isWhole,
                state.removals[question.resource.number] == nil,
                beginning.removals == state.removalsBegun[question.resource.number] ?? 0,
                !answer.isHit || state.fetches[representation] == nil
            else { return }
            if state.stored[representation]?.version != version {
                state.stored[representation] = Stored(version: version, at: now)
                state.note(representation, "counts as stored")
            }
        }
    }

    func count(_ count: (inout Tally) -> Void) { state.withLock { count(&$0.tally) } }
    var tally: Tally { state.withLock { $0.tally } }

    // MARK: faults

    /// Of all that went wrong the first few are kept.
    func fault(_ text: String) {
        state.withLock { if $0.faults.count < 20 { $0.faults.append(text) } }
    }

    var faults: [String] { state.withLock { $0.faults } }

    /// What happened to it lately, in seconds before or after the moment by which all was committed in the life before this one.
    func events(_ representation: Representation) -> String {
        state.withLock { state in
            (state.events[representation] ?? []).map { event in
                "\n    \(event.at - state.committed) \(event.text)"
            }.joined()
        }
    }

    // MARK: kills

    /// The process was killed: what was not committed may be undone.
    /// - Parameter committed: all that had happened by then was durable.
    /// - Returns: what has to be in the store.
    func killed(committed: Instant) -> [Representation: Stored] {
        state.withLock { state in
            for (number, changes) in state.changes {
                let kept = changes.filter { $0.isDurable || $0.at <= committed }
                state.tally.undone += changes.count - kept.count
                state.changes[number] = kept.isEmpty ? nil : [kept[kept.count - 1]]
            }
            state.seen = [:]
            state.committed = committed
            let stored = state.stored.filter { $0.value.at <= committed }
            state.stored = [:]
            return stored
        }
    }

    /// The store was damaged, or is another one: nothing is known of it.
    /// - Parameter isForgetful: removals may have been undone by the damage.
    func damaged(isForgetful: Bool) {
        state.withLock {
            if isForgetful { $0.changes = [:] }
            $0.stored = [:]
            $0.seen = [:]
        }
    }
}

extension Question {
    var representation: World.Representation {
        World.Representation(number: resource.number, language: variant)
    }
}
