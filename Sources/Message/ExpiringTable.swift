/// A bounded table whose values all have the same lifetime, so that the oldest one always expires next.
///
/// The caller passes the time, as a monotonic `Duration` since some fixed moment.
package struct ExpiringTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Held: Sendable {
        var value: Value
        var expiry: Duration
        var ticket: UInt64
    }
    private let lifetime: Duration
    private let countMax: Int
    private var held: [Key: Held] = [:]
    /// The keys in the order of their expiry, from `orderStart`. A key that is set again is added again; only its last ticket counts.
    private var order: [(key: Key, ticket: UInt64)] = []
    private var orderStart = 0
    private var lastTicket: UInt64 = 0

    package init(lifetime: Duration, countMax: Int) {
        precondition(countMax > 0)
        self.lifetime = lifetime
        self.countMax = countMax
    }

    package var count: Int { held.count }

    /// Returns nil if the key is not in the table or has expired.
    package func value(_ key: Key, now: Duration) -> (value: Value, expiry: Duration)? {
        guard let found = held[key], found.expiry > now else { return nil }
        return (found.value, found.expiry)
    }

    /// Sets the value and starts its lifetime. Removes expired values, and the oldest ones if there are too many.
    package mutating func set(_ key: Key, _ value: Value, now: Duration) {
        lastTicket += 1
        held[key] = Held(value: value, expiry: now + lifetime, ticket: lastTicket)
        order.append((key, lastTicket))
        while orderStart < order.count, isDue(order[orderStart], now: now) {
            let oldest = order[orderStart]
            if held[oldest.key]?.ticket == oldest.ticket { held[oldest.key] = nil }
            orderStart += 1
        }
        if order.count > 4 * countMax { forgetOldTickets() }
    }

    private func isDue(_ oldest: (key: Key, ticket: UInt64), now: Duration) -> Bool {
        guard let found = held[oldest.key], found.ticket == oldest.ticket else { return true }
        return found.expiry <= now || held.count > countMax
    }

    /// Keeps one ticket per key. The cost is proportional to the tickets that it removes.
    private mutating func forgetOldTickets() {
        order = order[orderStart...].filter { held[$0.key]?.ticket == $0.ticket }
        orderStart = 0
    }

    /// Changes the value of a key that is in the table, without changing when it expires.
    package mutating func update(_ key: Key, _ value: Value) { held[key]?.value = value }

    package mutating func removeAll() {
        held.removeAll()
        order.removeAll()
        orderStart = 0
    }
}

extension ExpiringTable where Value == Void {
    /// Adds the key. Returns false if it is in the table and has not expired; its lifetime goes on then.
    package mutating func insert(_ key: Key, now: Duration) -> Bool {
        guard value(key, now: now) == nil else { return false }
        set(key, (), now: now)
        return true
    }
}
