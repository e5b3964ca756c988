/// What an origin says in `Cache-Control` (RFC 9111 §5.2.2), as it means it; times in seconds.
struct OriginDirectives: Equatable {
    var noStore = false
    var noCache = false
    var isPrivate = false
    var isPublic = false
    var mustRevalidate = false
    var proxyRevalidate = false
    var immutable = false
    var maxAge: Int64?
    var sMaxAge: Int64?
    var staleWhileRevalidate: Int64?
    var staleIfError: Int64?

    /// Never served stale, whatever happens (§4.2.4).
    var forbidsStale: Bool { mustRevalidate || proxyRevalidate || noCache || sMaxAge != nil }

    /// The answer to a request with credentials may be reused (§3.5).
    var sharesAuthorized: Bool { isPublic || mustRevalidate || sMaxAge != nil }

    static func random(_ chance: inout Chance) -> OriginDirectives {
        var result = OriginDirectives()
        // Half of the world is simple.
        if chance.oneIn(2) {
            result.maxAge = chance.pick([5, 10, 30, 60, 300])
            return result
        }
        result.noStore = chance.oneIn(16)
        result.noCache = chance.oneIn(14)
        result.isPrivate = chance.oneIn(14)
        result.isPublic = chance.oneIn(5)
        result.mustRevalidate = chance.oneIn(7)
        result.proxyRevalidate = chance.oneIn(16)
        result.immutable = chance.oneIn(16)
        result.maxAge = chance.perhaps(75, [0, 1, 5, 10, 30, 60, 60, 300])
        result.sMaxAge = chance.perhaps(15, [0, 1, 10, 60, 120])
        result.staleWhileRevalidate = chance.perhaps(20, [1, 10, 60])
        result.staleIfError = chance.perhaps(20, [0, 1, 30, 300])
        return result
    }

    /// For what is made for one client: nobody else gets it without the origin being asked.
    mutating func restrictToOne(_ chance: inout Chance) {
        (sMaxAge, staleWhileRevalidate, staleIfError, maxAge) = (nil, nil, nil, nil)
        switch chance.below(3) {
        case 0: noCache = true
        case 1: maxAge = 0
        default: break
        }
    }

    /// As sent; nil where there is nothing to say.
    var text: String? {
        var members: [String] = []
        if noStore { members.append("no-store") }
        if noCache { members.append("no-cache") }
        if isPrivate { members.append("private") }
        if isPublic { members.append("PUBLIC") }
        if mustRevalidate { members.append("must-revalidate") }
        if proxyRevalidate { members.append("proxy-revalidate") }
        if immutable { members.append("immutable") }
        if let maxAge { members.append("max-age=\(maxAge)") }
        if let sMaxAge { members.append("s-maxage=\"\(sMaxAge)\"") }
        if let staleWhileRevalidate { members.append("stale-while-revalidate=\(staleWhileRevalidate)") }
        if let staleIfError { members.append("Stale-If-Error=\(staleIfError)") }
        return members.isEmpty ? nil : members.joined(separator: ", ")
    }
}

/// What a client asks of caches (RFC 9111 §5.2.1); times in seconds.
struct Wishes: Equatable {
    var noCache = false
    var noStore = false
    var onlyIfCached = false
    var maxAge: Int64?
    var minFresh: Int64?
    /// `.max`: however stale.
    var maxStale: Int64?
    var staleIfError: Int64?

    static func random(_ chance: inout Chance) -> Wishes {
        var result = Wishes()
        guard chance.percent(35) else { return result }
        result.noCache = chance.oneIn(8)
        result.noStore = chance.oneIn(16)
        result.onlyIfCached = chance.oneIn(8)
        result.maxAge = chance.perhaps(20, [0, 1, 10, 60])
        result.minFresh = chance.perhaps(15, [0, 1, 10, 60])
        result.maxStale = chance.perhaps(30, [0, 5, 60, .max])
        result.staleIfError = chance.perhaps(15, [1, 30, 600])
        return result
    }

    var text: String? {
        var members: [String] = []
        if noCache { members.append("no-cache") }
        if noStore { members.append("no-store") }
        if onlyIfCached { members.append("only-if-cached") }
        if let maxAge { members.append("max-age=\(maxAge)") }
        if let minFresh { members.append("min-fresh=\(minFresh)") }
        if let maxStale { members.append(maxStale == .max ? "max-stale" : "max-stale=\(maxStale)") }
        if let staleIfError { members.append("stale-if-error=\(staleIfError)") }
        return members.isEmpty ? nil : members.joined(separator: ", ")
    }
}
