/// What a node remembers of keys, so that it asks other nodes rightly: a table of fixed size, in which a new note may take the place of an older one.
///
/// A note that is lost does little: a node is asked in vain, or a response is used that is as old as on the other nodes.
package struct PeerMemory: Sendable {
    package enum Note: UInt8, Equatable, Sendable {
        /// The response could not be stored.
        case passed
        /// Something unsafe was sent to the URL. It holds for its whole time: the first answer that is new may be evicted here, or may not have come to the stand-in.
        case changed
    }

    private struct Entry {
        var word: UInt64
        var note: Note
        var until: UInt64
    }

    private var entries: [Entry?]
    package static let countMax = 4096
    /// How long a note holds.
    package static let nanoseconds: UInt64 = 600_000_000_000

    package init() { entries = [] }

    private func place(_ word: UInt64) -> Int { Int(word % UInt64(PeerMemory.countMax)) }

    /// - Parameters:
    ///   - word: a hash of the key.
    ///   - now: nanoseconds of a clock that never goes back.
    package mutating func set(_ note: Note, for word: UInt64, now: UInt64) {
        if entries.isEmpty { entries = [Entry?](repeating: nil, count: PeerMemory.countMax) }
        entries[place(word)] = Entry(word: word, note: note, until: now + PeerMemory.nanoseconds)
    }

    package func note(of word: UInt64, now: UInt64) -> Note? {
        guard !entries.isEmpty, let entry = entries[place(word)], entry.word == word, now < entry.until else {
            return nil
        }
        return entry.note
    }
}
