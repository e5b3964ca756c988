import Accounts
import Caching
import Forwarding
import Framing
import Message
import Settings
import Transaction

/// Redirects that Larder follows in the client's place (`redirects` in a rule of `origins`).
///
/// It is decided when an answer is about to begin, from whatever source. Each request on the way has an exchange of its own, for which everything
/// is decided anew: access, key, zone, look-up, credentials, route. The client's stream goes from one to the next.
extension Exchange {
    /// The requests before that of this exchange.
    struct Detour {
        /// What the client asked for.
        let first: OwnedRequest
        /// Ends with the request of this exchange.
        var trail: RedirectTrail

        /// What the client gets of the fields of the answer.
        func fields(_ fields: Fields) -> Fields {
            Redirected.fields(fields, from: trail.place, count: trail.count, isOtherOrigin: trail.isElsewhere)
        }
    }

    /// Follows the response with which the answer is about to begin, if it is a redirect and a rule says so. Returns false if the
    /// response is what the client gets; otherwise another exchange goes on, or the request was refused. Asked only if any rule follows
    /// redirects.
    func hasFollowed(_ status: UInt16, _ fields: Fields) -> Bool {
        // An answer that takes the place of one that has begun is what the client was to get already.
        guard !isAnswered, request.peer == nil, RedirectStep.concerns(status: status),
            var trail = detour?.trail ?? TargetURI(request.uri).map({ RedirectTrail(request.method, $0) })
        else { return false }
        let content: Redirect.Content = !request.hasBody ? .none : leavesRequestUnread ? .unfinished : .sent
        switch request.step(status, fields, content, on: trail, by: snapshot) {
        case .follow(let following):
            guard let next = request.following(following, by: snapshot, zones: zones, worker) else {
                return passOn(.beyondLimits)
            }
            trail.follow(following, request.method)
            handOver(to: next, Detour(first: detour?.first ?? request, trail: trail))
            return true
        case .passOn(let reason): return passOn(reason)
        case .refuse(let refusal):
            refuse(refusal)
            return true
        case nil: return false
        }
    }

    private func passOn(_ reason: RedirectStep.Reason) -> Bool {
        worker.debug(
            .requests, request.id,
            "\(Diagnostics.masked(request.uri)): the redirect is passed on, because \(reason.text)")
        return false
    }

    private func handOver(to next: OwnedRequest, _ detour: Detour) {
        precondition(!isAnswered, "a redirect is followed in place of an answer")
        worker.counters.add(.redirectsFollowed)
        if worker.learner != nil { worker.observeRedirect(of: request, snapshot) }
        worker.debug(
            .requests, request.id,
            "\(Diagnostics.masked(request.uri)): redirects to \(Diagnostics.masked(next.uri)), which is asked for")
        if let fetch {
            waiting = .nothing
            fetch.redirectFollowed()
        }
        stream.handOver(to: Exchange(after: self, next, detour))
        // The fetch comes to its end in this turn if the redirect is short, and its connection can carry the next request.
        let address = stream.address
        worker.loop.afterTurn { [worker] in worker.exchange(at: address)?.begin() }
    }

    /// The fields that replace those of a stored response in the answer to the client. Nil: none do.
    ///
    /// - Parameter ownFields: see `serve`.
    func fields(of record: StoredResponse, _ ownFields: Fields?) -> Fields? {
        guard let detour else { return ownFields }
        return detour.fields(ownFields ?? record.fields)
    }
}

extension OwnedRequest {
    /// What becomes of a redirect that answers this request. Nil if no rule follows it.
    func step(
        _ status: UInt16, _ fields: Fields, _ content: Redirect.Content, on trail: RedirectTrail, by snapshot: Snapshot
    ) -> RedirectStep? {
        guard let countMax = snapshot.origins.terms(for: access).redirectsMax else { return nil }
        let redirect = Redirect(
            status: status, locations: fields.all(.location), method: method, isSafe: cache.isSafe, content: content,
            isUpgrade: isUpgrade, isOfBrowser: isOfBrowser)
        return trail.step(redirect, countMax: countMax)
    }

    /// Whether it has the field with which browsers say what they make a request for. They send it over https and to loopback.
    fileprivate var isOfBrowser: Bool {
        fields.lines.contains { $0.name == .other && equalsIgnoringCase(fields.name(of: $0), "Sec-Fetch-Mode") }
    }

    /// The request that follows a redirect of this one. Returns nil if it exceeds the limits for requests.
    fileprivate func following(
        _ following: RedirectStep.Following, by snapshot: Snapshot, zones: [Zone], _ worker: Worker
    ) -> OwnedRequest? {
        var ownField: [UInt8] = []
        if case .field(let name, _, _)? = placeholderUse?.place { ownField = name }
        let bytes = Redirected.request(
            after: self, to: following.target,
            Redirected.Changes(
                becomesGet: following.becomesGet, isOtherOrigin: !following.isSameOrigin, ownField: ownField))
        var head = RequestHead()
        var progress = HeadProgress()
        do throws(FramingError) {
            let isWhole = try parseRequestHead(
                bytes.span, into: &head, progress: &progress, limits: snapshot.limits)
            precondition(isWhole, "a head ends with an empty line")
        } catch {
            worker.debug(.requests, id, "\(Diagnostics.masked(uri)): where it redirects to: \(error.reason)")
            return nil
        }
        var keyBytes: [UInt8] = []
        appendNormalisedURI(head.target, of: bytes.span, to: &keyBytes)
        // Without rules that choose one, there is the default zone only.
        let request = OwnedRequest(
            bytes: bytes, head: head, options: ConnectionOptions(head.fields, bytes: bytes.span), bodyLength: .none,
            cache: CacheRequest(method: head.method, fields: head.fields, bytes: bytes.span), keyBytes: keyBytes,
            key: worker.shared.key(of: keyBytes), client: client, identity: identity, listener: listener,
            destination: worker.destinations.destination(bytes.span.extracting(head.target.hostRange)),
            zone: zones.first ?? zone,
            handling: snapshot.defaultHandling, id: id, tunnel: tunnel)
        request.readsDetails = readsDetails
        request.serverName = serverName
        request.connectionProof = connectionProof
        if !zones.isEmpty { request.applyRules(by: snapshot, zones: zones, worker.shared, now: worker.moment) }
        // A pin proves who the client is, as `Authorization` does: both stay with the origin. Behind another origin, nothing proves it.
        if following.isSameOrigin, let pin { request.pin(to: pin) }
        return request
    }
}
