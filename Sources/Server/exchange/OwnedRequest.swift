import Access
import Accounts
import Authentication
import Caching
import Cookies
import Credentials
import Fleet
import Forwarding
import Framing
import Message
import Releases
import Rules
import Settings
import Routing
import Origins
import Storage
import Transaction

/// A request with a copy of its head, so that it outlives the worker's read buffer.
///
/// Everything that may wait works on this: exchanges, fetches, log lines. It belongs to one worker; helper threads never touch it.
final class OwnedRequest: ReceivedRequest {
    let cache: CacheRequest
    /// The normalised target URI, as the log shows it.
    let uri: [UInt8]
    /// The cache key: the URI, or what the key rules make of it.
    private(set) var keyBytes: [UInt8]
    private(set) var key: StorageKey
    let client: IPAddress?
    /// The listener by which the client came. Nil where this process itself is the client.
    let listener: ListenerTerms?
    /// That of what the client asked for; a request that follows a redirect has it too. Nil: no client asks, the way of such a request is explained.
    let id: RequestID?
    /// The ID of the CONNECT in whose tunnel the request came. Nil outside of opened tunnels.
    let tunnel: RequestID?
    /// The zone in which the request is looked up and its response is stored.
    private(set) var zone: Zone
    /// What the rules say, as far as the request alone decides it.
    ///
    /// Reading and setting it calls nothing: the unchecked access is exclusive.
    private(set) var handling: CacheHandling {
        get { unsafe uncheckedHandling }
        set { unsafe uncheckedHandling = newValue }
    }
    @exclusivity(unchecked) private var uncheckedHandling: CacheHandling
    /// What the rules say of the age of what the response offers. Nil where they say nothing.
    private(set) var releaseRule: ReleaseRule?
    /// Which release the request asks for depends on what the origin takes its path for. It is refused.
    private(set) var isReleaseUnclear = false
    var tier: Tiers { zone.tier }
    /// The user, once authentication has succeeded, with this request or with the CONNECT around it. Nil before, and where no
    /// authentication is configured.
    var identity: Identity?
    /// What proves the identity of the client's connection, or of the tunnel that this request opens. Nil if nothing does.
    var connectionProof: ConnectionProof?
    /// The credentials of the connection, if they have to be examined once more.
    private(set) var provesAgain: Secret?
    /// The client of the connection is no longer who it proved to be.
    private(set) var hasLostProof = false
    /// What the 407 to this request asks for, where that is not what it asks of everybody.
    var challenges: [[UInt8]]?
    /// Which types and sizes are compressed. Nil if nothing is compressed for this request.
    private var compressionSettings: CompressionSettings?
    /// The snapshot whose rules look at the type of a response. Nil if none of its rules does.
    private var snapshotOfTypes: Snapshot?
    /// `access`, once it has been asked for. An object: it is large, and most requests are never asked.
    private var madeAccess: MadeAccess?
    private final class MadeAccess {
        var value: AccessRequest
        init(_ value: AccessRequest) { self.value = value }
    }
    /// What the client named in the tunnel's first bytes, or in those of the tunnel in which the request came. Nil: see `RuleRequest`.
    var serverName: ServerName? { didSet { madeAccess = nil } }
    /// Some access rule looks at the details of requests. Set before `access` is read.
    var readsDetails = false
    /// The digest of all that is stored under the key. Nil if the key is not that of a digest.
    private(set) var sharedDigest: ExpectedDigest?
    /// What Larder itself proves to the origin. Nil: nothing.
    private(set) var credential: Credential?
    /// The name of the credential of a placeholder in the body, which is known when the body is whole.
    private(set) var credentialOfBody: String?
    /// The pin of the client connection at the origin. Nil: connections to the origin are shared.
    private(set) var pin: BoundIdentity?
    /// Nil: cookies are passed on as they are.
    private(set) var cookies: RequestCookies?
    /// What rules change in the fields before an origin gets them. Nil: nothing.
    var fieldChanges: FieldChanges?
    /// The placeholder in the head, which is replaced by `credential`.
    private(set) var placeholderUse: PlaceholderUse?
    /// Why the request is refused for what it has as a credential.
    private(set) var placeholderFault: PlaceholderFault?
    /// The end of the key if responses are stored for each credential. Nil otherwise, and if the request has no credentials.
    private(set) var credentialTag: [UInt8]?
    /// The routes of the request, if they are for some clients alone and decide what comes.
    private(set) var routeTag: [UInt8]?
    /// Where it stands whether an unsafe request has invalidated what the key has in common with those of other credentials, cookie jars and routes. Nil: the
    /// key has no part that says for whom a response is.
    private var commonKey: (marks: InvalidationMarks, key: StorageKey)?
    /// `InvalidationMarks.last` before the request to the origin was sent.
    var sentAfterInvalidation: UInt64 = 0
    /// An answer to this request did not have the digest that it should have.
    var hasMismatched = false
    /// Nil if the request has the key of its own address.
    private(set) var folded: FoldedRequest?
    /// What another node of the fleet says, or why it is not answered. Nil: the client is no node.
    private(set) var peer: AskingPeer?
    /// The target as received, if it is not that of the head.
    var receivedTarget: [UInt8]?
    /// Another node of the fleet owns the response, so that it stays in memory here.
    var isOwnedElsewhere = false
    /// How long the access rules have waited for the addresses of the host. The first connection to the host has so much less time.
    private(set) var nameWait = Duration.zero

    init(
        bytes: [UInt8], head: RequestHead, options: ConnectionOptions, bodyLength: BodyLength, cache: CacheRequest,
        keyBytes: [UInt8], key: StorageKey, client: IPAddress?, identity: Identity? = nil,
        listener: ListenerTerms? = nil, destination: Destination?, zone: Zone, handling: CacheHandling,
        id: RequestID?, tunnel: RequestID?
    ) {
        self.identity = identity
        self.zone = zone
        unsafe uncheckedHandling = handling
        self.cache = cache
        uri = keyBytes
        self.keyBytes = keyBytes
        self.key = key
        self.client = client
        self.listener = listener
        self.id = id
        self.tunnel = tunnel
        self.destination = destination
        super.init(bytes: bytes, head: head, options: options, bodyLength: bodyLength)
    }

    /// Takes what proves the identity of the client's connection.
    func take(_ proof: ConnectionProof?, _ standing: KeptProof.Standing) {
        connectionProof = proof
        switch standing {
        case .holds: break
        case .unknown(let credentials): provesAgain = credentials
        case .ended: hasLostProof = true
        }
    }

    func addNameWait(_ time: Duration) { nameWait += time }

    /// The wait for a connection that is opened now. The next connection has all of its time.
    func takeNameWait() -> Duration {
        defer { nameWait = .zero }
        return nameWait
    }

    /// What proves who uses the tunnel that this request opens. Nil if nobody had to prove anything.
    func provenTunnel(on worker: Worker) -> ConnectionProof? {
        if let connectionProof { return connectionProof }
        // A log-in of the connection (Negotiate) sends no credentials with this request.
        guard let identity, identity.scheme != .certificate, peer == nil else { return nil }
        let proof = ConnectionProof(
            identity, by: fields.first(.proxyAuthorization).map { Secret($0) }, on: ConnectionProof.Basis(worker))
        connectionProof = proof
        return proof
    }

    /// Whether the request may be sent again after its connection turned out to be dead: its method is idempotent (RFC 9110 §9.2.2)
    /// and not overridden by a field, and it has no body, which would have been consumed.
    var isReplayable: Bool { head.method.isIdempotent && !cache.overridesMethod && !hasBody }

    /// The host and port of the target. Nil if the host is invalid, which is refused with 400.
    let destination: Destination?

    /// The host in the form in which it is resolved: a name in lower case or a canonical address, without brackets.
    var host: String { destination?.text ?? "" }

    /// The request as Access sees it. Traps if the request has no valid host.
    var access: AccessRequest {
        if let madeAccess, madeAccess.value.identity == identity { return madeAccess.value }
        guard let destination else { preconditionFailure("a request without a host goes nowhere") }
        var made = AccessRequest(
            client: asker, identity: identity, method: head.method,
            methodText: head.method == .other ? String(decoding: methodText, as: UTF8.self) : nil,
            scheme: head.target.scheme, destination: destination.host, port: head.target.port,
            isTunnel: head.method == .connect, pathAndQuery: bytes[head.target.pathRange])
        made.listener = listenerName
        if let serverName { made.serverName = serverName }
        if readsDetails { made.details = details }
        madeAccess = MadeAccess(made)
        return made
    }

    /// Applies the cache rules: sets the handling, the zone and the cache key. Called again once the user is known, if any rule
    /// depends on the user. Not called after a look-up, because the look-up used the key.
    ///
    /// - Parameter zones: the zones that belong to `snapshot`.
    func applyRules(by snapshot: Snapshot, zones: [Zone], _ shared: Shared, now: Moment) {
        guard destination != nil, method != .connect else { return }
        let rules = snapshot.cacheRules
        handling = rules.handling(of: access, clientPolicy: clientPolicy(rules))
        if pin != nil { keepPrivate(&handling) }
        precondition(zones.indices.contains(handling.zone), "the zones and the rules belong to one snapshot")
        zone = zones[handling.zone]
        noteRelease(by: rules)
        snapshotOfTypes = rules.dependOnType ? snapshot : nil
        let compresses = (handling.compression != .no || rules.dependOnType) && peer == nil
        compressionSettings = compresses ? snapshot.configuration.cache.compression : nil
        let keyRules = rules.keyRules(for: handling)
        chooseCredential(snapshot, shared, now: now)
        // It has been asked for before, to choose the credential by.
        madeAccess?.value.details?.ownCredentials = ownCredentials
        credentialTag = tagForCredential(shared)
        cookies = snapshot.usesCookies ? chooseCookies(snapshot, shared) : nil
        noteFieldChanges(by: snapshot, now: now.wallTime)
        routeTag = snapshot.routesDependOnClient ? tagForRoute(snapshot) : nil
        // If the key is not the URI here, an earlier call made it.
        if keyRules == nil && credentialTag == nil && cookies == nil && routeTag == nil && keyBytes == uri { return }
        var made = uri
        keyRules?.apply(to: &made)
        let isForAll = credentialTag == nil && cookies == nil && routeTag == nil
        commonKey = isForAll ? nil : (shared.invalidationMarks, shared.key(of: made))
        if let credentialTag { made += credentialTag }
        if let cookies { made += cookies.use.keyTag }
        if let routeTag { made += routeTag }
        // What was fetched with cookies may not be for those who ask without them. The head is not what a digest proves, and a next proxy may have changed it.
        let digestKey = cookies == nil && routeTag == nil ? rules.digestKey(of: uri, handling) : nil
        sharedDigest = digestKey?.digest
        if let digestKey { made = digestKey.bytes }
        key = shared.key(of: made)
        keyBytes = made
    }

    private func chooseCredential(_ snapshot: Snapshot, _ shared: Shared, now: Moment) {
        let table = snapshot.credentials
        credential = nil
        guard !table.isEmpty else { return }
        if table.hasPlaceholders { examinePlaceholders(snapshot, shared, now: now) }
        guard credential == nil, placeholderFault == nil else { return }
        let bringsOwn = head.fields.present.contains(.authorization)
        credential = table.credential(
            for: access, bringsOwn: bringsOwn, provesOrigin: snapshot.origins.terms(for: access).tls.provesOrigin)
        guard credential == nil, Diagnostics.logs(.authentication), let withheld = withheldCredential(snapshot) else {
            return
        }
        shared.debug(
            .authentication, id,
            "credential \(withheld.rule.name): not sent with \(access.methodText) \(Diagnostics.masked(uri)), \(withheldReason)"
        )
    }

    /// The credential that would be sent if nobody on the way could read it.
    func withheldCredential(_ snapshot: Snapshot) -> Credential? {
        snapshot.credentials.withheld(
            for: access, provesOrigin: snapshot.origins.terms(for: access).tls.provesOrigin)
    }

    /// Why it is not sent.
    var withheldReason: String {
        head.target.scheme == .http
            ? "because it would go over http (plain_http: yes allows it)"
            : "because the rule of origins lets the origin prove nothing (plain_http: yes allows it)"
    }

    /// The names of the credentials of Larder's own that go out with the request, as far as they are known.
    var ownCredentials: [String] { [credential?.rule.name, credentialOfBody].compactMap { $0 } }

    /// The body has a placeholder of this credential. The access rules have to be asked again.
    func noteCredentialOfBody(_ name: String) {
        credentialOfBody = name
        madeAccess?.value.details?.ownCredentials = ownCredentials
    }

    private func chooseCookies(_ snapshot: Snapshot, _ shared: Shared) -> RequestCookies? {
        let terms = snapshot.origins.terms(for: access)
        guard let use = terms.cookies, let jar = shared.cookies.jar(named: use.jar) else { return nil }
        let isSecure = head.target.scheme == .https && terms.tls.provesOrigin
        return RequestCookies(
            use, jar, bringsOwn: use.clientUse == .merge && head.fields.present.contains(.cookie),
            origin: CookieOrigin(access.destination, target: bytes[head.target.pathRange], isSecure: isSecure))
    }

    private func tagForRoute(_ snapshot: Snapshot) -> [UInt8]? {
        snapshot.routes.keyTag(
            for: access, to: origin, provesOrigin: snapshot.origins.terms(for: access).tls.provesOrigin)
    }

    /// The parts of the key that say for whom a response is. Empty: for everybody.
    var audience: [[UInt8]] { [credentialTag, cookies?.use.keyTag, routeTag].compactMap(\.self) }

    private func examinePlaceholders(_ snapshot: Snapshot, _ shared: Shared, now: Moment) {
        placeholderUse = nil
        placeholderFault = nil
        let examination = PlaceholderExamination(
            fields, target: bytes[head.target.pathRange], shared.placeholders.index)
        let candidates =
            examination.placeholder == nil
            ? []
            : snapshot.credentials.placeholders(
                for: access, provesOrigin: snapshot.origins.terms(for: access).tls.provesOrigin)
        do throws(PlaceholderFault) {
            guard let found = try snapshot.credentials.use(examination, among: candidates, for: access, now: now) else {
                return
            }
            placeholderUse = found.use
            credential = found.credential
            // Of a part of a response, the secret might show a part.
            handling.ranges = .pass
        } catch {
            placeholderFault = error
        }
    }

    /// What Larder fetches with a credential of its own is for the requests that this credential matches: it has a key of its own as well.
    private func tagForCredential(_ shared: Shared) -> [UInt8]? {
        guard let credential, handling.authorization != .public else {
            return handling.authorization == .separate ? fields.joined(.authorization).map(shared.credentialTag) : nil
        }
        handling.authorization = .separate
        return Array("#credential:\(credential.rule.name)".utf8)
    }

    /// Has the request use the connections of a pin. What comes on them is for this client alone, whether or not the request itself has
    /// credentials: it is neither stored nor shared.
    func pin(to identity: BoundIdentity) {
        pin = identity
        keepPrivate(&handling)
    }

    private func keepPrivate(_ handling: inout CacheHandling) {
        handling.use.insert(.noRead)
        handling.use.insert(.noWrite)
    }

    /// Whether the request begins a pin if its client connection has none at the origin.
    var beginsPin: Bool { destination != nil && method != .connect && bindsConnection }

    /// Whose connections to the origin the request uses. Credentials of Larder's own have nothing to do with the client's connection.
    var boundIdentity: BoundIdentity? { credential == nil ? pin : nil }

    /// True if the request authenticates its whole connection, which HTTP forbids but NTLM and Negotiate do (RFC 4559 §6).
    /// No other client's request may use that connection, before or afterwards.
    var bindsConnection: Bool {
        credential == nil && head.fields.present.contains(.authorization)
            && fields.all(.authorization).contains(where: OwnedRequest.isBinding)
    }

    /// Whether the credentials or the challenge are of a scheme that authenticates connections.
    static func isBinding(_ credentials: ArraySlice<UInt8>) -> Bool {
        ["ntlm", "negotiate", "nego2", "kerberos"].contains { scheme in
            credentials.starts(with: scheme.utf8) { $0 | 0x20 == $1 }
        }
    }

    /// Takes what another node of the fleet says of its client, or why it is not answered.
    func take(_ result: Result<PeerQuestion, PeerObjection>) {
        peer = AskingPeer(result)
        identity = peerQuestion?.user.flatMap { Identity($0) }
    }

    /// Gives the request another key than that of its own address.
    func fold(_ folded: FoldedRequest, key keyBytes: [UInt8], _ shared: Shared) {
        self.folded = folded
        sharedDigest = nil
        handling.fold(
            isProven: folded.isProven, standsForImmutable: folded.standsFor != nil,
            provesBodies: folded.standsFor?.digest != nil)
        self.keyBytes = keyBytes
        key = shared.key(of: keyBytes)
    }

    /// The handling of a response with these fields. Rules that depend on its type apply now; zone and key do not change.
    func handling(of fields: Fields, by snapshot: Snapshot) -> CacheHandling {
        guard snapshot.cacheRulesDependOnType, destination != nil else { return handling }
        let rules = snapshot.cacheRules
        let ofResponse = rules.handling(
            of: access, responseType: fields.first(.contentType), keeping: handling,
            clientPolicy: clientPolicy(rules))
        precondition(ofResponse.zone == handling.zone, "a response is stored in the zone of its request")
        guard pin != nil else { return ofResponse }
        var own = ofResponse
        keepPrivate(&own)
        return own
    }

    /// Where a response that is handled so is kept.
    func storage(_ handling: CacheHandling) -> StoragePolicy {
        isCopy(handling) ? .session : handling.storage
    }

    /// Whether a response that is handled so is a copy of what another node keeps.
    func isCopy(_ handling: CacheHandling) -> Bool { isOwnedElsewhere && handling.storage == .permanent }

    /// The handling of a stored response.
    func handling(of record: StoredResponse, by snapshot: Snapshot) -> CacheHandling {
        handling(of: record.fields, by: snapshot)
    }

    /// The terms of a stored response under the rules that hold for this request.
    func terms(of record: StoredResponse) -> ReuseTerms {
        let handling = snapshotOfTypes.map { self.handling(of: record, by: $0) } ?? handling
        let terms = record.cached.terms(under: handling)
        guard let (marks, key) = commonKey, marks.isMarked(key, after: record.sentAfterInvalidation) else {
            return terms
        }
        return terms.doubted()
    }

    /// Whether the validator of a stored variant that does not match may be sent: a 304 would give it to this request.
    func mayValidate(_ record: StoredResponse) -> Bool {
        record.isCandidate && isEligible(terms(of: record), for: cache)
    }

    private func noteRelease(by rules: CacheRules) {
        (releaseRule, isReleaseUnclear) = (nil, false)
        guard handling.hasParticulars, peer == nil else { return }
        switch rules.releaseClaim(on: access, handling) {
        case .none: break
        case .rule(let rule): releaseRule = rule
        case .unclear: isReleaseUnclear = true
        }
    }

    private func clientPolicy(_ rules: CacheRules) -> HandlingChanges? {
        guard head.fields.present.contains(.larderPolicy), rules.heedsPolicy(of: client) else { return nil }
        return fields.joined(.larderPolicy).flatMap { LarderPolicy.parse($0) }
    }

    /// Whether and when the rules say that this stored response is compressed for the client.
    func compression(of record: StoredResponse) -> CompressionUse {
        guard let settings = compressionSettings else { return .no }
        let handling = snapshotOfTypes.map { self.handling(of: record, by: $0) } ?? handling
        guard handling.compression != .no, let type = record.fields.first(.contentType),
            settings.types.contains(where: { $0.matches(type) })
        else { return .no }
        return handling.compression
    }

    var compressedLengthMin: UInt64 { compressionSettings?.sizeMin ?? Caching.compressedLengthMin }

    /// The largest body in bytes that is stored for the request, before the type of the response is known.
    var objectSizeMax: Int { objectSizeMax(handling) }

    /// The largest body in bytes that is stored. `handling`: that of the response.
    func objectSizeMax(_ handling: CacheHandling) -> Int {
        handling.objectSizeMax.map { Int(clamping: $0) } ?? zone.objectSizeMax
    }

    /// The largest body in bytes that is stored in memory alone. `handling`: that of the response.
    func memoryObjectSizeMax(_ handling: CacheHandling) -> Int {
        min(objectSizeMax(handling), zone.memoryObjectSizeMax ?? .max)
    }

    /// Whether the request has conditions that only the origin can evaluate (RFC 9110 §13.1.1).
    var asksForOriginState: Bool {
        head.fields.present.contains(.ifUnmodifiedSince) || (hasIfMatch && handling.ifMatch == .origin)
    }

    var hasIfMatch: Bool { head.fields.present.contains(.ifMatch) }

    /// What the request's machine needs to know.
    func forMachine(_ snapshot: Snapshot, _ shared: Shared, now: Duration) -> RequestMachine.Request {
        RequestMachine.Request(
            cache: cache, isTunnel: method == .connect, isUpgrade: isUpgrade, hasBody: hasBody,
            needsIdentity: identity == nil && peer == nil
                && (provesAgain != nil || snapshot.asksForCredentials
                    || (snapshot.readsCredentials && head.fields.present.contains(.proxyAuthorization))),
            asksForOriginState: asksForOriginState,
            collapses: collapses(snapshot), use: handling.use,
            storesParts: handling.storesParts, takesWhole: takesWhole(shared, now: now))
    }

    /// Whether a part is wanted of a body that did not have its digest a moment ago. In parts that nothing proves, a client would get all of it.
    func takesWhole(_ shared: Shared, now: Duration) -> Bool {
        cache.hasRange && method == .get && shared.hasMismatched(self, now: now)
    }

    /// Whether the request may share an answer with others that are under way. Not if each client has to prove its access, and not if another node asks for news:
    /// what is under way may have been asked for before the news.
    func collapses(_ snapshot: Snapshot) -> Bool {
        if peer != nil, cache.directives.noCache { return false }
        return snapshot.configuration.cache.collapse && !handling.asksForAccess && pin == nil
    }

    /// What the request's retrieval needs to know.
    func forRetrieval(_ snapshot: Snapshot, _ terms: OriginTerms) -> Retrieval.Request {
        // A step of a log-in is worth something on its own connection alone.
        let isRepeated = !bindsConnection
        return Retrieval.Request(
            cache: cache, isUpgrade: isUpgrade && !terms.isHTTP10,
            postTarget: method == .post ? TargetURI(uri) : nil,
            policy: snapshot.cachePolicy, interimResponsesMax: snapshot.limits.interimResponsesMax,
            deadConnectionRetriesMax: isRepeated ? snapshot.limits.deadConnectionRetriesMax : 0,
            retriesMax: isRepeated ? terms.retriesMax : 0,
            reuse: boundIdentity != nil ? .always : terms.carriesBodies ? .withContent : .repeatable)
    }

    /// Whether the request has a body that ends when its client says so.
    var isLengthUnknown: Bool { if case .chunked = bodyLength { true } else { false } }

    /// Whether the origin may be asked for this request.
    var mayForward: Bool { !cache.directives.onlyIfCached && !handling.use.contains(.cacheOnly) }

    /// The origin that the target names.
    var origin: Origin { Origin(head.target.scheme, Endpoint(host: host, port: head.target.port)) }
}
