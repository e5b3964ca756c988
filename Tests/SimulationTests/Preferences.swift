/// What a client accepts, as it means it (RFC 9110 §12.5): tokens in its order, weights in thousandths.
struct Preferences: Equatable {
    struct Member: Equatable {
        var token: String
        var weight: Int
    }
    var members: [Member]

    /// The weight of a token, by its name or by `*`; nil: nothing is said of it.
    func weight(_ token: String) -> Int? {
        let own = members.filter { $0.token == token }.map(\.weight).max()
        return own ?? members.first { $0.token == "*" }?.weight
    }

    /// Most wanted first; among equals the order stands.
    var ranked: [Member] {
        members.enumerated().sorted { ($1.element.weight, $0.offset) < ($0.element.weight, $1.offset) }.map(\.element)
    }

    /// Whether an origin can tell them apart, where the order among equals says nothing (`Accept-Encoding`).
    func meansTheSame(_ other: Preferences, orderCounts: Bool) -> Bool {
        if orderCounts { return ranked == other.ranked }
        func sorted(_ members: [Member]) -> [Member] {
            members.sorted { ($0.weight, $0.token) < ($1.weight, $1.token) }
        }
        return sorted(members) == sorted(other.members)
    }

    /// One of the ways to write it.
    func text(_ chance: inout Chance, orderCounts: Bool) -> String {
        var order = Array(orderCounts ? members : ranked)
        if !orderCounts, order.count > 1, order[0].weight == order[1].weight, chance.oneIn(2) { order.swapAt(0, 1) }
        return order.map { member in
            var text = chance.oneIn(4) ? member.token.uppercased() : member.token
            if member.token == "gzip", chance.oneIn(6) { text = "x-gzip" }
            switch member.weight {
            case 1000: return chance.oneIn(4) ? text + ";q=1.0" : text
            case 0: return text + ";q=0"
            default: return text + ";q=0.\(member.weight / 100)"
            }
        }.joined(separator: chance.oneIn(3) ? "," : ", ")
    }

    static func randomEncodings(_ chance: inout Chance) -> Preferences? {
        let lists: [[(String, Int)]?] = [
            nil, [("gzip", 1000)], [("gzip", 1000), ("br", 1000)], [("identity", 1000)], [("gzip", 500), ("br", 1000)],
            [("gzip", 0)], [("gzip", 1000), ("identity", 0)], [("*", 1000)], [("gzip", 500), ("identity", 1000)],
        ]
        return chance.pick(lists).map { list in Preferences(members: list.map { Member(token: $0.0, weight: $0.1) }) }
    }

    static func randomLanguages(_ chance: inout Chance) -> Preferences? {
        let lists: [[(String, Int)]?] = [
            nil, [("en", 1000)], [("de", 1000)], [("de", 1000), ("en", 500)], [("en", 1000), ("de", 1000)],
            [("de", 1000), ("en", 1000)], [("fr", 1000), ("de", 300)],
        ]
        return chance.pick(lists).map { list in Preferences(members: list.map { Member(token: $0.0, weight: $0.1) }) }
    }
}
