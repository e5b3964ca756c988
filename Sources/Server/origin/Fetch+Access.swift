import Caching
import Forwarding
import Message
import Rules
import Transaction

/// What the answers of origins prove about the access of clients to signed addresses (`ProvenAccess`).
extension Fetch {
    /// Notes what a final head proves: the origin let the client in, or sent it to another address.
    func noteAccess(_ response: ReceivedResponse) {
        switch response.status {
        case 200, 203, 206, 304:
            guard let folded = request.folded, !folded.isProven else { return }
            note(request.uri, ProvenAccess.Finding(isProven: true), expiry: folded.expiry)
        case 301, 302, 303, 307, 308:
            if request.method == .get || request.method == .head { noteRedirect(response) }
        default: break
        }
    }

    private func noteRedirect(_ response: ReceivedResponse) {
        let locations = response.fields.all(.location)
        guard locations.count == 1, let source = TargetURI(request.uri),
            let target = source.resolving(locations[0]), target != source
        else { return }
        let uri = target.normalised
        let names = snapshot.signatureNames(toGet: target, redirectedFrom: request)
        let signed = SignedAddress(uri, key: uri, others: names ?? [])
        if let source = redirectSource(response, to: signed) {
            // An origin that answers HEAD with a redirect has signed the address for HEAD, perhaps.
            note(
                uri, ProvenAccess.Finding(isProven: request.method == .get, standsFor: source), expiry: signed?.expiry)
        } else if names != nil, let signed, request.method == .get {
            note(uri, ProvenAccess.Finding(isProven: true), expiry: signed.expiry)
        }
    }

    /// The address of this request as what its redirect stands for. Nil if it may stand for something else tomorrow.
    ///
    /// It vouches for no other address than its own: what is fetched from where it redirects is stored under a key of its own, so an
    /// origin that redirects to others' addresses gains nothing. A digest proves the body, wherever it comes from. Without one, the
    /// redirect may lead to a page that asks for a log-in, so only the signature of the target may change.
    private func redirectSource(_ response: ReceivedResponse, to signed: SignedAddress?) -> RedirectSource? {
        let handling = request.handling(of: response.fields, by: snapshot)
        let digest = expectedDigests(snapshot.particulars(of: handling), handling, response.fields).only
        // A key of a digest is that of other addresses as well.
        let key = request.folded?.standsFor?.source ?? (request.sharedDigest == nil ? request.keyBytes : request.uri)
        if let digest { return RedirectSource(key, digest: digest) }
        guard handling.isImmutable, let signed else { return nil }
        return RedirectSource(key, to: signed)
    }

    private func note(_ uri: [UInt8], _ finding: ProvenAccess.Finding, expiry: WallTime?) {
        worker.shared.provenAccess.note(
            request.provingClient, uri, finding, expiry: expiry, now: worker.uptime, wallTime: worker.wallTime)
    }
}

extension Snapshot {
    /// The parameters that are part of a signature at the target of a redirect, if the origin that redirects is trusted with its addresses: the
    /// operator named both hosts in one rule, or in one use of a recipe. Anybody can redirect to a forged address of somebody else's store,
    /// and without TLS anybody on the way can say that the trusted origin did.
    fileprivate func signatureNames(toGet target: TargetURI, redirectedFrom request: OwnedRequest)
        -> [ParameterPattern]?
    {
        guard request.head.target.scheme == .https || target.scheme == .http,
            !request.handling.isDisputed, let source = request.handling.rule,
            let handling = handling(toGet: target, asker: request.access), !handling.isDisputed,
            let rule = handling.rule
        else { return nil }
        let (from, to) = (cacheRules.rules[source - 1], cacheRules.rules[rule - 1])
        let isOneUse = from.recipe != nil && from.recipe == to.recipe && from.line == to.line
        return source == rule || isOneUse ? signatureNames(handling) : nil
    }
}
