import Access
import Caching
import Forwarding
import Framing
import Message
import Rules
import Settings
import Routing
import Storage
import Transaction

/// A request that outlives the buffer it was read from: everything that waits for something works on this.
final class OwnedRequest {
    let received: ReceivedRequest
    let cache: CacheRequest
    /// The normalised target URI: identity in the log.
    let uri: [UInt8]
    /// What identifies the response in the store: the URI, or what the rules make of it.
    private(set) var keyBytes: [UInt8]
    private(set) var key: StorageKey
    let client: IPAddress?
    /// The cache it uses, and how.
    private(set) var zone: Zone
    private(set) var handling: CacheHandling
    var tier: Tiers { zone.tier }
    /// Who the client proved to be.
    var identity: Identity?
    /// The challenge of the scheme that wants another request from this client. Nil: a 407 offers all schemes.
    var challenge: [UInt8]?
    /// What is worth compressing; nil where nothing is compressed for this request.
    private var compressionSettings: CompressionSettings?
    /// The rules, where they look at the type of what is stored.
    private var snapshotOfTypes: Snapshot?
    private var cachedAccess: AccessRequest?

    init(
        received: ReceivedRequest, cache: CacheRequest,
        keyBytes: [UInt8], key: StorageKey, client: IPAddress?, destination: Destination?,
        zone: Zone, handling: CacheHandling
    ) {
        self.zone = zone
        self.handling = handling
        self.received = received
        self.cache = cache
        uri = keyBytes
        self.keyBytes = keyBytes
        self.key = key
        self.client = client
        self.destination = destination
    }

    var bytes: [UInt8] { received.bytes }
    var head: RequestHead { received.head }
    var options: ConnectionOptions { received.options }
    var bodyLength: BodyLength { received.bodyLength }
    // Written out: the same of `received` would each be a call into another module.
    var fields: Fields { Fields(bytes: received.bytes, section: received.head.fields) }
    var hasBody: Bool { received.hasBody }
    var method: Method { received.head.method }
    var methodText: ArraySlice<UInt8> { received.bytes[received.head.methodRange] }

    /// Whether the request may be sent again where its connection turns out to be dead: it is idempotent (RFC 9110 §9.2.2), whatever
    /// method the origin makes of it, and it has no body that is already consumed.
    var isReplayable: Bool { head.method.isIdempotent && !cache.overridesMethod && !hasBody }

    /// Where it goes; nil for a host that is none (400).
    let destination: Destination?

    /// The host as one looks it up: lower case or a canonical address, without brackets.
    var host: String { destination?.text ?? "" }

    /// The request as Access judges it.
    var access: AccessRequest {
        if let cachedAccess, cachedAccess.identity == identity { return cachedAccess }
        guard let destination else { preconditionFailure("a request without a host goes nowhere") }
        let made = AccessRequest(
            client: client, identity: identity, method: head.method,
            methodText: head.method == .other ? String(decoding: methodText, as: UTF8.self) : nil,
            scheme: head.target.scheme, destination: destination.host, port: head.target.port,
            isTunnel: head.method == .connect, pathAndQuery: bytes[head.target.pathRange])
        cachedAccess = made
        return made
    }

    /// Asks the rules of the cache; again when the user is known, where that matters to them.
    ///
    /// - Parameter zones: those of the snapshot.
    func applyRules(by snapshot: Snapshot, zones: [Zone], _ shared: Shared) {
        guard destination != nil, method != .connect else { return }
        let rules = snapshot.cacheRules
        handling = rules.handling(of: access, clientPolicy: clientPolicy(rules))
        zone = zones[handling.zone]
        snapshotOfTypes = rules.dependOnType ? snapshot : nil
        let compresses = handling.compression != .no || rules.dependOnType
        compressionSettings = compresses ? snapshot.configuration.cache.compression : nil
        let keyRules = rules.keyRules(for: handling)
        // The rules of an earlier asking may have made it.
        if keyRules == nil && keyBytes == uri { return }
        keyBytes = uri
        keyRules?.apply(to: &keyBytes)
        key = shared.key(of: keyBytes)
    }

    /// The same for its response; the zone and the key stay.
    func handling(of fields: Fields, by snapshot: Snapshot) -> CacheHandling {
        guard snapshot.cacheRulesDependOnType, destination != nil else { return handling }
        let rules = snapshot.cacheRules
        return rules.handling(
            of: access, responseType: fields.first(.contentType), keeping: handling,
            clientPolicy: clientPolicy(rules))
    }

    /// The same for a stored response.
    func handling(of record: StoredResponse, by snapshot: Snapshot) -> CacheHandling {
        handling(of: record.fields, by: snapshot)
    }

    private func clientPolicy(_ rules: CacheRules) -> HandlingChanges? {
        guard head.fields.present.contains(.larderPolicy), rules.heedsPolicy(of: client) else { return nil }
        return fields.joined(.larderPolicy).flatMap { LarderPolicy.parse($0) }
    }

    /// Whether and when such a response is compressed for this client, by the rules.
    func compression(of record: StoredResponse) -> CompressionUse {
        guard let settings = compressionSettings else { return .no }
        let handling = snapshotOfTypes.map { self.handling(of: record, by: $0) } ?? handling
        guard handling.compression != .no, let type = record.fields.first(.contentType),
            settings.types.contains(where: { $0.matches(type) })
        else { return .no }
        return handling.compression
    }

    var compressedLengthMin: UInt64 { compressionSettings?.sizeMin ?? Caching.compressedLengthMin }

    /// Bytes of the largest body that is stored for it, as far as is known without a response.
    var objectSizeMax: Int { objectSizeMax(handling) }

    /// - Parameter handling: with what the rules say of the response's type.
    func objectSizeMax(_ handling: CacheHandling) -> Int {
        handling.objectSizeMax.map { Int(clamping: $0) } ?? zone.objectSizeMax
    }

    /// The same of what memory alone takes.
    ///
    /// - Parameter handling: as above.
    func memoryObjectSizeMax(_ handling: CacheHandling) -> Int {
        min(objectSizeMax(handling), zone.memoryObjectSizeMax ?? .max)
    }

    /// What its machine has to know.
    func forMachine(_ snapshot: Snapshot) -> RequestMachine.Request {
        RequestMachine.Request(
            cache: cache, isTunnel: method == .connect, isUpgrade: isUpgrade, hasBody: hasBody,
            needsIdentity: snapshot.authenticator != nil,
            asksForOriginState: !head.fields.present.isDisjoint(with: [.ifMatch, .ifUnmodifiedSince]),
            collapses: snapshot.configuration.cache.collapse, use: handling.use,
            storesParts: handling.ranges != .pass)
    }

    /// What its retrieval has to know.
    func forRetrieval(_ snapshot: Snapshot) -> Retrieval.Request {
        Retrieval.Request(
            cache: cache, isUpgrade: isUpgrade, postTarget: method == .post ? TargetURI(uri) : nil,
            policy: snapshot.cachePolicy, limits: snapshot.limits)
    }

    /// It asks for another protocol that is passed on.
    private var isUpgrade: Bool {
        method == .get && head.minorVersion >= 1 && ForwardedHead.isUpgrade(options, fields)
    }

    /// Whether the origin may be asked on its behalf at all.
    var mayForward: Bool { !cache.directives.onlyIfCached && !handling.use.contains(.cacheOnly) }

    /// Where it goes.
    var origin: Origin { Origin(head.target.scheme, Endpoint(host: host, port: head.target.port)) }
}
