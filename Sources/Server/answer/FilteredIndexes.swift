import Caching
import EventLoop
import Message
import Releases
import Storage

/// Indexes without the releases that are too young, each worked out once for all clients and workers.
///
/// The store holds indexes as the origin sent them. What a client gets of one follows from its body, the rule and the time; it is kept until the
/// stored body goes, or until the first release opens that was removed.
final class FilteredIndexes: Sendable {
    /// What is left of an index.
    struct Result: Sendable {
        enum Content: Sendable {
            /// Nothing had to be removed: the client gets what is stored, to the byte and with the validators of the origin.
            case asStored
            /// The index without what was removed, and its entity tag.
            case edited(Body, tag: [UInt8])
            /// The index cannot be read.
            case unreadable
            /// The bytes of the stored index have left the store, or are damaged.
            case gone
            /// Memory has no room for the result now.
            case noRoom
        }

        var content: Content
        var withheld: [Withheld] = []
        var hasUndated = false
        /// For which time it was worked out.
        var madeAt: WallTime
        /// The first moment at which the result may be another one.
        var changesAt: WallTime?

        /// If the clock was set back since then, the result has releases that are too young now.
        func holds(at now: WallTime) -> Bool {
            now + WallTime.tolerance >= madeAt && (changesAt.map { now < $0 } ?? true)
        }
    }

    enum Answer {
        case ready(Result)
        /// Another request works it out. The wake comes when it is done.
        case wait
        /// The caller works it out, and calls `finish`. The wake comes then as well.
        case begin
    }

    private struct Question: Hashable {
        let body: ObjectIdentifier
        let rule: ReleaseRule
    }

    private struct Entry {
        /// The body may go, and another one take its address.
        weak var body: Body?
        var result: Result?
        var waiting: [Wake] = []
    }

    /// So many results are kept at most.
    private static let entriesMax = 256
    private let entries = Locked<[Question: Entry]>([:])

    /// - Parameter wake: called when a result is there that is not there now.
    func ask(about body: Body, _ rule: ReleaseRule, now: WallTime, wake: @autoclosure () -> Wake) -> Answer {
        let question = Question(body: ObjectIdentifier(body), rule: rule)
        return entries.withLock { entries in
            if let entry = entries[question], entry.body === body {
                guard let result = entry.result else {
                    entries[question]?.waiting.append(wake())
                    return .wait
                }
                if result.holds(at: now) { return .ready(result) }
            }
            if entries.count >= Self.entriesMax { entries = entries.filter { $0.value.result == nil } }
            entries[question] = Entry(body: body, result: nil, waiting: [wake()])
            return .begin
        }
    }

    func finish(_ body: Body, _ rule: ReleaseRule, _ result: Result) {
        let question = Question(body: ObjectIdentifier(body), rule: rule)
        let waiting = entries.withLock { entries in
            let waiting = entries[question]?.waiting ?? []
            entries[question] = Entry(body: body, result: result)
            return waiting
        }
        for wake in waiting { wake() }
    }
}
