import Caching
import Message
import Transaction

/// Worlds in which addresses are signed: the origin lets in whoever presents a signature that it gave, and the cache stores one response
/// for all signatures.
struct Signatures {
    /// One address for one resource. Several clients may get hold of it.
    struct Signature {
        let number: Int
        let uri: Int
        /// On the origin's clock. Nil: the origin never gave it.
        let expiry: Int64?
        var address: [UInt8] { Array("https://store.example/\(uri)?sig=\(number)".utf8) }
    }

    private(set) var given: [Signature] = []
    /// What the cache under test remembers.
    var access = ProvenAccess { $0 }
    /// What the origin has told the cache about whom, and when: the truth.
    private var proofs: [Proof] = []

    private struct Proof {
        let client: Int
        let signature: Int
        /// True time.
        let at: Int64
    }

    /// A signature that a client presents: a new one, an old one, one of another client, or one that nobody gave.
    ///
    /// A client that asks an origin for a file is redirected to a new one.
    mutating func pick(
        _ chance: inout Chance, client: Int, uri: Int, now: Int64, originClock: Int64, cacheClock: WallTime
    ) -> Signature {
        let known = given.filter { $0.uri == uri }
        if !known.isEmpty, chance.percent(60) { return chance.pick(known) }
        let isForged = chance.oneIn(4)
        let signature = Signature(
            number: given.count, uri: uri, expiry: isForged ? nil : originClock + Int64(chance.pick([5, 60, 2000])))
        given.append(signature)
        if !isForged, chance.oneIn(2) { prove(client, signature, now: now, cacheClock: cacheClock) }
        return signature
    }

    func accepts(_ signature: Signature, originClock: Int64) -> Bool {
        signature.expiry.map { originClock < $0 } ?? false
    }

    func finding(_ client: Int, _ signature: Signature, now: Int64, cacheClock: WallTime) -> ProvenAccess.Finding? {
        access.finding(.user("\(client)"), signature.address, now: .seconds(now), wallTime: cacheClock)
    }

    /// The origin has shown that the client may have what the address stands for.
    mutating func prove(_ client: Int, _ signature: Signature, now: Int64, cacheClock: WallTime) {
        access.note(
            .user("\(client)"), signature.address, ProvenAccess.Finding(isProven: true),
            expiry: signature.expiry.map { WallTime(secondsSinceEpoch: $0) }, now: .seconds(now), wallTime: cacheClock)
        proofs.append(Proof(client: client, signature: signature.number, at: now))
    }

    /// Whether the client had proven its access when its request was looked up, or has since.
    func hasProof(_ client: Int, _ signature: Signature, lookedUp: (now: Int64, clock: WallTime)) -> Bool {
        proofs.contains { proof in
            guard proof.client == client, proof.signature == signature.number else { return false }
            if proof.at >= lookedUp.now { return true }
            let isOver = signature.expiry.map { WallTime(secondsSinceEpoch: $0) <= lookedUp.clock } ?? false
            return !isOver && lookedUp.now < proof.at + 15 * 60
        }
    }
}

extension SimulatedExchange {
    /// The client is known, and nothing has been looked for: the part that `OwnedRequest.fold` plays in the server.
    func fold() {
        guard let signature = request.signature, request.method == .get, lookedUp == nil else { return }
        lookedUp = (world.trueTime, world.cacheClock)
        let finding = world.signatures.finding(client, signature, now: world.trueTime, cacheClock: world.cacheClock)
        var handling = request.unsignedHandling
        handling.fold(isProven: finding?.isProven ?? false, standsForImmutable: false, provesBodies: false)
        request.handling = handling
        world.note(handling.folding == .proven ? .foldedProven : .foldedUnproven)
        machine.apply(
            use: handling.use, storesParts: handling.storesParts, takesWhole: false,
            collapses: world.collapses && !handling.asksForAccess,
            asksForOriginState: request.ifMatch != nil && handling.ifMatch == .origin)
    }

    /// Why the client must not have what is stored. Nil if it may.
    var objectionToAccess: String? {
        guard let signature = request.signature else { return nil }
        guard let lookedUp else { return "an address that was not folded has no part in this" }
        let hasProof = world.signatures.hasProof(client, signature, lookedUp: lookedUp)
        return hasProof ? nil : "the client has not proven its access with signature \(signature.number)"
    }
}

extension SimulatedFetch {
    /// What the final head proves about the client that asked (`Fetch.noteAccess`).
    func noteAccess(_ status: UInt16) {
        guard let signature = request.signature, let client = asker, request.handling.folding == .unproven,
            [200, 203, 206, 304].contains(status)
        else { return }
        world.signatures.prove(client, signature, now: world.trueTime, cacheClock: world.cacheClock)
    }
}
