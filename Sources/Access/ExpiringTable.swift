/// A bounded table whose values all live equally long, so that the oldest is always the next to go.
///
/// Time is a monotonic `Duration` since any fixed moment, given by the caller.
struct ExpiringTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Held: Sendable {
        var value: Value
        var expiry: Duration
    }
    private let lifetime: Duration
    private let countMax: Int
    private var held: [Key: Held] = [:]
    /// In the order of expiry; a key set again stands here twice, and only its last expiry counts.
    private var order: [(key: Key, expiry: Duration)] = []
    private var orderStart = 0

    init(lifetime: Duration, countMax: Int) {
        precondition(countMax > 0)
        self.lifetime = lifetime
        self.countMax = countMax
    }

    var count: Int { held.count }

    /// Nil where it is not held or has expired.
    func value(_ key: Key, now: Duration) -> (value: Value, expiry: Duration)? {
        guard let found = held[key], found.expiry > now else { return nil }
        return (found.value, found.expiry)
    }

    /// Sets the value and starts its lifetime anew; what has expired goes, and the oldest where there are too many.
    mutating func set(_ key: Key, _ value: Value, now: Duration) {
        let expiry = now + lifetime
        held[key] = Held(value: value, expiry: expiry)
        order.append((key, expiry))
        while let oldest = orderStart < order.count ? order[orderStart] : nil,
            oldest.expiry <= now || held.count > countMax || order.count - orderStart > 2 * countMax
        {
            if held[oldest.key]?.expiry == oldest.expiry { held[oldest.key] = nil }
            orderStart += 1
        }
        if orderStart > countMax {
            order.removeFirst(orderStart)
            orderStart = 0
        }
    }

    /// Changes a value that is held and lets it expire when it would have.
    mutating func update(_ key: Key, _ value: Value) { held[key]?.value = value }

    mutating func removeAll() {
        held.removeAll()
        order.removeAll()
        orderStart = 0
    }
}
