package import Message

/// Requests that wait for the same thing, and the order in which they get it: clients take turns, and each client's own requests keep
/// their order. So a client that asks for a thousand things at once delays the others by one of them at a time.
///
/// If the queue is full, the last request of the client that has most of them makes room.
package struct FairQueue<Element> {
    private struct Entry {
        let element: Element
        let client: IPAddress?
        /// In each round every client that waits gets one turn.
        let round: UInt64
    }
    /// By round, and within a round in the order in which they came.
    private var entries: [Entry] = []
    private var counts: [IPAddress?: Int] = [:]
    /// The round of the request that left last.
    private var present: UInt64 = 0

    package init() {}

    package var count: Int { entries.count }
    package var isEmpty: Bool { entries.isEmpty }

    /// - Parameters:
    ///   - client: nil for requests of no client, which share their turns.
    ///   - countMax: how many may wait.
    /// - Returns: the one that has no place: this one, or another.
    package mutating func append(_ element: Element, from client: IPAddress?, countMax: Int) -> Element? {
        let own = counts[client] ?? 0
        var displaced: Element?
        if count >= countMax {
            guard let most = counts.values.max(), own + 1 < most,
                let index = entries.lastIndex(where: { counts[$0.client] == most })
            else { return element }
            displaced = remove(at: index)
        }
        // Its turns follow the present one, or those that it waits for already.
        let last = own > 0 ? entries.last { $0.client == client }?.round : nil
        let round = max(present, last.map { $0 + 1 } ?? present)
        entries.insert(Entry(element: element, client: client, round: round), at: end(ofRound: round))
        counts[client] = own + 1
        return displaced
    }

    /// Removes and returns the next one that satisfies the condition.
    package mutating func next(where isSuitable: (Element) -> Bool = { _ in true }) -> Element? {
        guard let index = entries.firstIndex(where: { isSuitable($0.element) }) else { return nil }
        let round = entries[index].round
        let element = remove(at: index)
        present = entries.isEmpty ? 0 : max(present, round)
        return element
    }

    private mutating func remove(at index: Int) -> Element {
        let entry = entries.remove(at: index)
        let left = counts[entry.client]! - 1
        counts[entry.client] = left == 0 ? nil : left
        return entry.element
    }

    /// The index behind all entries of a round and of those before it.
    private func end(ofRound round: UInt64) -> Int {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].round <= round { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
