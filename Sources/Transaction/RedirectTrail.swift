package import Message

/// What becomes of a redirect to which a rule of `origins` applies (RFC 9110 §15.4).
package enum RedirectStep: Equatable, Sendable {
    /// Larder makes the next request itself, and its answer becomes the client's.
    case follow(Following)
    /// The client gets the redirect.
    case passOn(Reason)
    case refuse(Refusal)

    /// The request that follows a redirect. It has no content.
    package struct Following: Equatable, Sendable {
        package let target: TargetURI
        /// It is a GET, whatever the request before was. Otherwise it has the same method.
        package let becomesGet: Bool
        /// It goes to the same scheme, host and port, which may know what the client has sent to them.
        package let isSameOrigin: Bool
    }

    /// Why a redirect is not followed.
    package enum Reason: Equatable, CaseIterable, Sendable {
        /// It has no `Location`, or several.
        case locationMissing
        /// `Location` is no reference to an http or https URI, or it has userinfo (RFC 9110 §4.2.4).
        case locationInvalid
        /// It leads from https to http, where everybody on the way can read and change what comes.
        case insecure
        /// The next request would need the content again, which Larder does not keep.
        case content
        /// The content of this request has not been sent to its end.
        case contentUnfinished
        /// A request that is not safe would reach another origin than the one that the client named (RFC 9110 §15.4).
        case unsafe
        /// The client asked for another protocol, which belongs to one connection.
        case upgrade
        /// The client is a browser. It would take what another origin sends for something of the origin that it named, with all rights that
        /// follow from that (RFC 6454), and it follows redirects itself.
        case browser
        /// The next request would exceed the limits for requests of clients, such as that for the length of a target.
        case beyondLimits

        package var text: StaticString {
            switch self {
            case .locationMissing: "it does not have one Location"
            case .locationInvalid: "its Location is no http or https URI without userinfo"
            case .insecure: "it leads from https to http"
            case .content: "the content of the request would have to be sent again"
            case .contentUnfinished: "the content of the request has not been sent to its end"
            case .unsafe: "a request that is not safe would go to another origin"
            case .upgrade: "the client asked for another protocol"
            case .browser: "the client is a browser"
            case .beyondLimits: "the next request would exceed the limits for requests"
            }
        }
    }

    /// Whether a response with this status redirects the request to the URI in `Location`. 300 leaves the choice to the client, and 304, 305
    /// and 306 do not redirect.
    package static func concerns(status: UInt16) -> Bool {
        switch status {
        case 301, 302, 303, 307, 308: true
        default: false
        }
    }
}

/// A redirect, and what of its request matters for following it.
package struct Redirect: Sendable {
    package enum Content: Equatable, Sendable {
        case none
        /// All of it has been sent to the origin.
        case sent
        case unfinished
    }
    package let status: UInt16
    /// The values of all lines of `Location`.
    package let locations: [ArraySlice<UInt8>]
    package let method: Method
    /// The method is safe (RFC 9110 §9.2.1), and no field asks for another.
    package let isSafe: Bool
    package let content: Content
    package let isUpgrade: Bool
    /// The request has `Sec-Fetch-Mode`, as browsers send it.
    package let isOfBrowser: Bool

    package init(
        status: UInt16, locations: [ArraySlice<UInt8>], method: Method, isSafe: Bool, content: Content = .none,
        isUpgrade: Bool = false, isOfBrowser: Bool = false
    ) {
        self.status = status
        self.locations = locations
        self.method = method
        self.isSafe = isSafe
        self.content = content
        self.isUpgrade = isUpgrade
        self.isOfBrowser = isOfBrowser
    }
}

/// The requests that were made for one request of a client because origins redirected it. The last one is the present one.
package struct RedirectTrail: Sendable {
    private struct Visit: Equatable, Sendable {
        let method: Method
        let target: TargetURI
    }
    /// At most as many as redirects may be followed, and one.
    private var visits: [Visit]

    /// - Parameter target: what the client asked for.
    package init(_ method: Method, _ target: TargetURI) { visits = [Visit(method: method, target: target)] }

    /// How many redirects were followed.
    package var count: Int { visits.count - 1 }

    /// The target of the present request.
    package var place: TargetURI { visits[visits.count - 1].target }

    /// Whether the present request goes to another origin than the one that the client named.
    package var isElsewhere: Bool { !place.isSameOrigin(as: visits[0].target) }

    /// Decides about a redirect that answers the present request.
    ///
    /// - Parameter countMax: how many redirects may be followed for one request of a client.
    package func step(_ redirect: Redirect, countMax: Int) -> RedirectStep {
        precondition(RedirectStep.concerns(status: redirect.status), "only a redirect is followed")
        if redirect.isOfBrowser { return .passOn(.browser) }
        if redirect.isUpgrade { return .passOn(.upgrade) }
        guard redirect.locations.count == 1 else { return .passOn(.locationMissing) }
        guard let target = place.resolving(redirect.locations[0]) else { return .passOn(.locationInvalid) }
        if place.scheme == .https, target.scheme == .http { return .passOn(.insecure) }
        let following = RedirectStep.Following(
            target: target, becomesGet: becomesGet(redirect), isSameOrigin: target.isSameOrigin(as: place))
        if following.becomesGet {
            if redirect.content == .unfinished { return .passOn(.contentUnfinished) }
        } else {
            if redirect.content != .none { return .passOn(.content) }
            if !redirect.isSafe, !following.isSameOrigin { return .passOn(.unsafe) }
        }
        if visits.contains(visit(following, redirect.method)) { return .refuse(.redirectLoop) }
        return count < countMax ? .follow(following) : .refuse(.tooManyRedirects)
    }

    /// The next request is made.
    package mutating func follow(_ following: RedirectStep.Following, _ method: Method) {
        visits.append(visit(following, method))
    }

    private func visit(_ following: RedirectStep.Following, _ method: Method) -> Visit {
        Visit(method: following.becomesGet ? .get : method, target: following.target)
    }

    /// 303 asks for a GET, or for a HEAD if this was one (§15.4.4). After a 301 or 302, clients have always turned POST into GET, and
    /// no other method (§15.4.2, §15.4.3).
    private func becomesGet(_ redirect: Redirect) -> Bool {
        switch (redirect.status, redirect.method) {
        // Of a GET with content, the next one is a GET without it.
        case (303, .get): redirect.content != .none
        case (303, .head): false
        case (303, _): true
        case (301, .post), (302, .post): true
        default: false
        }
    }
}
