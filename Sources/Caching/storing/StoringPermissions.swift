import Message

/// What a rule had to allow so that a response is stored for all, beyond what RFC 9111 allows. It is stored with the response: rules can differ
/// by client, by method and after a reload, and whoever gets the response needs a rule that allows the same.
package struct StoringPermissions: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// It answers a request with `Authorization` and does not say that it is for everybody (RFC 9111 §3.5).
    static var credentials: Self { Self(rawValue: 1 << 0) }
    /// `Cache-Control` forbids to store it, or to use it without validation or when it is stale.
    static var againstOrigin: Self { Self(rawValue: 1 << 1) }
    /// The same, and a targeted field allows it (RFC 9213).
    static var byTargeted: Self { Self(rawValue: 1 << 2) }
    /// A targeted field forbids it, and `Cache-Control` allows it.
    static var againstTargeted: Self { Self(rawValue: 1 << 3) }
    /// It sets a cookie.
    static var cookies: Self { Self(rawValue: 1 << 4) }
    /// It came with a cookie that was taken out.
    static var droppedCookies: Self { Self(rawValue: 1 << 5) }

    /// - Parameters:
    ///   - received: the fields as they came.
    ///   - stored: those that are stored.
    ///   - response: the response as it is stored under `handling`.
    init(
        toStore response: CachedResponse, _ request: CacheRequest, received: Fields, stored: Fields,
        _ handling: CacheHandling
    ) {
        self = []
        if request.hasAuthorization, !allowsAuthorization(response.directives) { insert(.credentials) }
        formUnion(Self(forDirectivesOf: received, response.directives, handling))
        let setsCookie = stored.contains(.setCookie)
        guard setsCookie || received.contains(.setCookie), !maySetCookie(response, CacheHandling()) else { return }
        insert(setsCookie ? .cookies : .droppedCookies)
    }

    init(forDirectivesOf fields: Fields, _ heeded: ResponseDirectives, _ handling: CacheHandling) {
        self = []
        if !handling.heedsOriginDirectives, ResponseDirectives(fields).forbidsMore(than: heeded) {
            insert(handling.respectsCacheControl ? .byTargeted : .againstOrigin)
        }
        guard !(handling.respectsCacheControl && handling.heedsTargetedFields),
            let targeted = targetedDirectives(fields), targeted.forbidsMore(than: heeded)
        else { return }
        insert(handling.respectsCacheControl ? .againstTargeted : .againstOrigin)
    }

    init(from flags: StoredFlags, at index: Int) {
        self = []
        for bit in 0..<Self.count where flags[index + bit] { insert(Self(rawValue: 1 << UInt8(bit))) }
    }

    static var count: Int { 6 }
    func has(_ bit: Int) -> Bool { contains(Self(rawValue: 1 << UInt8(bit))) }
}

extension CacheHandling {
    /// What stored responses may need, to be reused under this handling.
    var permissions: StoringPermissions {
        var result: StoringPermissions = heedsTargetedFields ? .byTargeted : .againstTargeted
        if authorization != .standard { result.insert(.credentials) }
        if !respectsCacheControl {
            result.formUnion([.againstOrigin, .byTargeted, .againstTargeted])
            if ttl != nil { result.insert(.credentials) }
        }
        if storesCookies { result.insert(.cookies) }
        if dropsCookies { result.insert(.droppedCookies) }
        return result
    }
}

extension ResponseDirectives {
    /// Whether these forbid something that the others allow.
    fileprivate func forbidsMore(than other: ResponseDirectives) -> Bool {
        (objectionOfOrigin(self) != nil && objectionOfOrigin(other) == nil) || (noCache && !other.noCache)
            || (forbidsStale(self) && !forbidsStale(other))
    }
}
