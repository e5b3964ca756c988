/// How many queries are open, and whose they are. Nobody has more of them than are left for others, so whoever asks for a thousand names that no
/// server answers still leaves half of the places free, and the next one like that a quarter.
struct QueryPlaces {
    private let countMax: Int
    private(set) var count = 0
    private var counts: [SocketAddress: Int] = [:]

    init(countMax: Int) { self.countMax = countMax }

    /// Takes a place.
    ///
    /// - Parameter asker: nil for this process itself, which may take each that is free.
    /// - Returns: false if there is none.
    mutating func take(for asker: SocketAddress?) -> Bool {
        let free = countMax - count
        guard free > 0 else { return false }
        if let asker {
            let own = counts[asker] ?? 0
            guard own < free else { return false }
            counts[asker] = own + 1
        }
        count += 1
        return true
    }

    mutating func give(back asker: SocketAddress?) {
        precondition(count > 0, "a place is given back once")
        count -= 1
        guard let asker else { return }
        guard let own = counts[asker], own > 0 else { preconditionFailure("a place is given back once") }
        counts[asker] = own > 1 ? own - 1 : nil
    }
}
