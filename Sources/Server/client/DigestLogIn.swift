import Access
import Authentication
import Credentials
import Framing
import LogIns
import Message
import Rules

/// A log-in by Digest on a connection whose next hits take the short way. Each of their requests has a digest, which is checked here without
/// allocating.
final class DigestLogIn {
    private let proven: ProvenDigest<OpenSSLRunningHash>
    // The calls from here change none of it: the unchecked accesses are exclusive.
    @exclusivity(unchecked) private var claim = DigestClaim()
    @exclusivity(unchecked) private var text: [UInt8] = []

    /// The value of `Proxy-Authentication-Info` for the request that was used last. Its memory is used again.
    var information: [UInt8] { unsafe text }

    /// - Parameter value: the field value with which `identity` was proven.
    /// - Returns: nil if requests have to be examined in full.
    init?(_ value: ArraySlice<UInt8>, of identity: Identity, _ snapshot: Snapshot, now: Duration) {
        guard
            let proven = snapshot.authenticator?.provenDigest(
                value, as: identity, now: now, OpenSSLRunningHash.self)
        else { return nil }
        self.proven = proven
    }

    /// Whether a request has the right digest. Its count is not used up.
    ///
    /// - Parameter bytes: the head, to which the ranges of `head` refer.
    func isProven(_ head: borrowing RequestHead, _ bytes: borrowing Span<UInt8>, now: Duration) -> Bool {
        guard
            let found = proven.claim(
                in: head.fields, method: head.methodRange, target: head.targetRange, bytes, now: now)
        else { return false }
        unsafe claim = found
        return true
    }

    /// Uses up the count of the request that was found proven last, and makes `information` for its answer. Returns false if the count has been used.
    func use(_ bytes: borrowing Span<UInt8>, _ worker: Worker) -> Bool {
        let now = worker.uptime
        guard unsafe proven.use(claim, worker.credentials, now: now) else { return false }
        unsafe text.removeAll(keepingCapacity: true)
        unsafe proven.addInformation(for: claim, bytes, now: now, to: &text)
        return true
    }
}
