import Access
import Caching
import EventLoop
import Message
import Synchronization
import Transaction

/// What folding made of a request: its key leaves out a signature, or is that of an address that redirected here.
struct FoldedRequest {
    /// The client may have what is stored.
    let isProven: Bool
    let standsFor: RedirectSource?
    /// When the signature expires. Nil if that is not known.
    let expiry: WallTime?
}

extension OwnedRequest {
    /// Whose access is proven.
    var provingClient: ProvenAccess.Client {
        if let identity { return .user(identity.name) }
        return client.map { .address($0) } ?? .local
    }

    /// Whether `fold` can change anything. Asked for every request, so it costs two loads for most.
    func mayFold(_ proofs: SharedProofs) -> Bool { handling.keyRule != nil || proofs.isInUse }

    /// Gives the request the key of what its address stands for, if its signature may be left out of the key. Called once, before the look-up,
    /// when the client is known. Returns whether anything changed.
    func fold(by snapshot: Snapshot, _ shared: Shared, now: Duration, wallTime: WallTime) -> Bool {
        // Never across methods: an address is signed for one of them.
        guard method == .get, folded == nil, handling.authorization != .separate, cookies == nil, routeTag == nil
        else { return false }
        let names = snapshot.signatureNames(handling)
        guard names != nil || shared.provenAccess.isInUse else { return false }
        let signed = SignedAddress(uri, key: keyBytes, others: names ?? [])
        guard signed != nil || shared.provenAccess.isInUse else { return false }
        let finding = shared.provenAccess.finding(provingClient, uri, now: now, wallTime: wallTime)
        let key: [UInt8]
        if let source = finding?.standsFor {
            key = source.key
        } else if names != nil, let signed {
            key = signed.key
        } else {
            return false
        }
        let folded = FoldedRequest(
            isProven: finding?.isProven ?? false, standsFor: finding?.standsFor, expiry: signed?.expiry)
        fold(folded, key: key, shared)
        return true
    }
}

extension Snapshot {
    /// The parameters that are part of a signature where this handling applies. Nil if signatures are part of the key there.
    func signatureNames(_ handling: CacheHandling) -> [ParameterPattern]? {
        handling.keyRule == nil ? nil : cacheRules.keyRules(for: handling)?.signature
    }
}

/// The proofs of all workers.
final class SharedProofs: Sendable {
    private let proofs: Locked<ProvenAccess>
    /// Read for every request that looks for a stored response, so that it costs no lock while nothing is folded.
    private let hasNotes = Atomic(false)

    init(digest: @escaping @Sendable ([UInt8]) -> [UInt8]) { proofs = Locked(ProvenAccess(digest: digest)) }

    var isInUse: Bool { hasNotes.load(ordering: .relaxed) }

    func finding(
        _ client: ProvenAccess.Client, _ uri: [UInt8], now: Duration, wallTime: WallTime
    ) -> ProvenAccess.Finding? {
        guard isInUse else { return nil }
        return proofs.withLock { $0.finding(client, uri, now: now, wallTime: wallTime) }
    }

    func note(
        _ client: ProvenAccess.Client, _ uri: [UInt8], _ finding: ProvenAccess.Finding, expiry: WallTime?,
        now: Duration, wallTime: WallTime
    ) {
        proofs.withLock { $0.note(client, uri, finding, expiry: expiry, now: now, wallTime: wallTime) }
        hasNotes.store(true, ordering: .relaxed)
    }
}
