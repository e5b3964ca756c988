package import Access
package import Authentication
package import Caching
package import Limiting
package import Message
import Rules

/// What a client connection keeps of the decisions about its last request, so that the next one to the same host is answered from memory
/// without asking the rules again.
///
/// It holds for requests that differ in path and query alone: same method, scheme, host and port, same identity, same client, same settings.
/// It never denies anything: where it does not lead, the request is decided about in full. `AccessPolicy.allowsEveryPath` and
/// `CacheRules.handlingOfPaths` say what the decisions depend on.
package final class ShortWay: Sendable {
    private let settings: UInt64
    private let method: Method
    private let scheme: Scheme
    private let port: UInt16
    /// As sent, without the port. The same host in another spelling is decided about in full.
    private let host: [UInt8]
    private let proof: ProvenCredentials?
    /// Each request proves its identity by itself (Digest).
    private let needsProof: Bool
    /// Until when the identity of the connection holds. Nil: for ever, or as long as `proof`.
    private let identityEnd: Duration?
    /// The name of the user. Nil if nobody had to prove anything.
    package let user: String?
    /// Nil: the rules have to look at each request.
    private let paths: HandlingOfPaths?
    /// A path that matches one of these has limits of its own.
    private let limitedPaths: [PathPattern]

    /// - Parameters:
    ///   - request: an allowed one, with the client and the identity of the connection.
    ///   - target: the target of `request`, in the head `bytes`.
    ///   - proof: how the request proved its identity. Nil if it did not have to: nobody must, or the connection has an identity.
    ///   - needsProof: each request has to prove this identity by itself, and `proof` is nil. Who keeps this checks them.
    ///   - settings: the number of the settings that `access`, `rules` and `limits` belong to. It grows with whatever takes a decision back.
    package init(
        for request: AccessRequest, _ target: RequestTarget, _ bytes: borrowing Span<UInt8>, proof: ProvenCredentials?,
        needsProof: Bool = false, settings: UInt64, access: AccessPolicy, rules: CacheRules,
        limits: LimitPlan = LimitPlan()
    ) {
        precondition(
            proof == nil || proof?.identity == request.identity, "a proof is of the identity that it is kept for")
        precondition(proof == nil || !needsProof, "one proof is enough")
        self.settings = settings
        self.proof = proof
        self.needsProof = needsProof
        identityEnd =
            proof == nil && !needsProof && request.identity?.scope == .connection ? request.identity?.expiry : nil
        method = request.method
        scheme = target.scheme
        port = target.port
        host = target.hostRange.map { bytes[$0] }
        user = request.identity?.name
        limitedPaths = limits.pathsOfConcern(like: request)
        paths =
            limitedPaths.count <= CacheRules.exceptionsMax ? ShortWay.paths(like: request, access, rules) : nil
    }

    private static func paths(
        like request: AccessRequest, _ access: AccessPolicy, _ rules: CacheRules
    ) -> HandlingOfPaths? {
        guard !request.isTunnel, request.method == .get || request.method == .head, access.allowsEveryPath(request),
            let paths = rules.handlingOfPaths(like: request), paths.handling.servesAsStored
        else { return nil }
        return paths
    }

    /// Whether the request differs in path and query alone from the one that this was made for.
    ///
    /// - Parameters:
    ///   - bytes: the head that the ranges refer to.
    ///   - now: the monotonic clock.
    ///   - isProven: the request has proven the identity by itself. It counts where this is needed.
    package func concerns(
        _ method: Method, _ target: RequestTarget, _ fields: FieldSection, _ bytes: borrowing Span<UInt8>,
        settings: UInt64, now: Duration, isProven: Bool = false
    ) -> Bool {
        guard settings == self.settings, method == self.method, target.scheme == scheme, target.port == port,
            isHost(host, bytes, target.hostRange)
        else { return false }
        if needsProof { return isProven }
        guard let proof else {
            return !fields.present.contains(.proxyAuthorization) && (identityEnd.map { now < $0 } ?? true)
        }
        return proof.areIn(fields, bytes, now: now)
    }

    /// How a response in memory may be served to a request that `concerns` accepts. Nil: the rules have to look at it.
    package func handling(of target: RequestTarget, _ bytes: borrowing Span<UInt8>) -> CacheHandling? {
        guard let paths else { return nil }
        guard !paths.exceptions.isEmpty || !limitedPaths.isEmpty else { return paths.handling }
        let pathAndQuery = target.pathRange
        var end = pathAndQuery.lowerBound
        while end < pathAndQuery.upperBound, bytes[end] != UInt8(ascii: "?") { end += 1 }
        // An empty path stands for "/".
        guard end > pathAndQuery.lowerBound else { return nil }
        let path = bytes.extracting(pathAndQuery.lowerBound..<end)
        // The patterns are compared with the path as sent, and an origin may take it for another one.
        if isAmbiguousPath(path) { return nil }
        for pattern in paths.exceptions where pattern.mayMatch(path) { return nil }
        for pattern in limitedPaths where pattern.mayMatch(path) { return nil }
        return paths.handling
    }
}

private func isHost(_ host: [UInt8], _ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Bool {
    areEqual(host.span, 0..<host.count, bytes, range)
}
