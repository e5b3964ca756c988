import Server

extension Statistics {
    /// What this node and the other nodes of its fleet have asked each other for since it was started. All zero if they do not ask each other.
    package struct Owners: Sendable, Equatable {
        package var asked: UInt64 = 0
        package var hits: UInt64 = 0
        package var fetched: UInt64 = 0
        package var passedOver: UInt64 = 0
        package var hedges: UInt64 = 0
        package var bytes: UInt64 = 0
        package var served: UInt64 = 0
        package var failures: [String: UInt64] = [:]
        package var refusals: [String: UInt64] = [:]
        /// Every node that owns responses, this one included.
        package var members: [Member] = []

        package struct Member: Sendable, Equatable {
            package var name: String
            package var weight: UInt64
            package var isOwn: Bool
            package var isAsked: Bool
        }

        package init() {}

        init(_ figures: PeerFigures) {
            asked = figures.asked
            hits = figures.hits
            fetched = figures.fetched
            passedOver = figures.passedOver
            hedges = figures.hedges
            bytes = figures.bytes
            served = figures.served
            failures = figures.failures
            refusals = figures.refusals
            members = figures.members.map {
                Member(name: $0.name, weight: UInt64($0.weight), isOwn: $0.isOwn, isAsked: $0.isAsked)
            }
        }

        func failures(_ reasons: String...) -> UInt64 { reasons.reduce(0) { $0 + (failures[$1] ?? 0) } }
        func refusals(_ reason: String) -> UInt64 { refusals[reason] ?? 0 }

        /// For `GET /stats`: `fleet_owners`.
        func writeMembers(to json: inout JSONWriter) {
            json.array { json in
                for member in members {
                    json.object {
                        $0.member("name", member.name)
                        $0.member("weight", member.weight)
                        $0.member("own", member.isOwn)
                        $0.member("asked", member.isAsked)
                    }
                }
            }
        }
    }
}

/// The rows of `owners`.
let ownerFigures: [Figure<Statistics.Owners>] = [
    Figure(
        "members", .gauge("members"), shown: .detail, help: "The nodes that own responses, this one included.",
        count: { UInt64($0.members.count) }),
    Figure(
        "asked", .counter("asked"), shown: .detail, help: "Requests of this node to others, for what they own.",
        count: \.asked),
    Figure(
        "hits", .counter("hits"), shown: .detail, help: "Those for which the other node had the response.",
        count: \.hits),
    Figure(
        "fetched", .counter("fetched"), shown: .detail,
        help: "Those for which the other node asked the origin.", count: \.fetched),
    Figure(
        "bytes_read", .counter("read_bytes"), unit: .bytes, shown: .detail,
        help: "Bytes of bodies that came from other nodes.", count: \.bytes),
    Figure(
        "passed_over", .counter("passed_over"), shown: .trouble,
        help: "Nodes that were not asked, because they had failed a moment ago.", count: \.passedOver),
    Figure(
        "hedges", .counter("hedges"), shown: .trouble,
        help: "How often a node said nothing for 50 ms, so that the origin was asked as well.", count: \.hedges),
    Figure(
        "unreachable", .counter("unreachable"), shown: .trouble,
        help: "Nodes to which no connection could be made within 250 ms.", count: { $0.failures("unreachable") }),
    Figure(
        "broken", .counter("broken"), shown: .trouble,
        help: "Nodes that did not answer: they were too late, their connection ended, or what they said made no sense.",
        count: { $0.failures("late", "broken") }),
    Figure(
        "broken_off", .counter("broken_off"), shown: .trouble,
        help:
            "Bodies from other nodes that broke off. Where the other node had the response stored, that counts as its failure; otherwise the origin may have broken off.",
        count: { $0.failures("broken_off") }),
    Figure(
        "unanswered", .counter("unanswered"), shown: .detail,
        help:
            "Nodes that had no answer: they lack a purge that this node has applied, have nothing stored, or something stale that validates nothing, or their rules or the origin refused the request.",
        count: { $0.failures("behind", "absent", "stale", "unanswered", "personal") }),
    Figure(
        "misconfigured", .counter("misconfigured"), shown: .trouble,
        help: "Nodes that refused this one: they have another secret, or a release that speaks another version.",
        count: { $0.failures("secret", "version", "malformed") }),
    Figure(
        "served", .counter("served"), shown: .detail, help: "Requests of other nodes that were taken.",
        count: \.served),
    Figure(
        "refused_behind", .counter("refused_behind"), shown: .detail,
        help: "Requests of other nodes that were refused, because a purge that they know was not applied here yet.",
        count: { $0.refusals("behind") }),
    Figure(
        "refused_secret", .counter("refused_secret"), shown: .trouble,
        help: "Requests of other nodes that were refused, because they have another secret or speak another version.",
        count: { $0.refusals("secret") + $0.refusals("version") + $0.refusals("malformed") }),
]
