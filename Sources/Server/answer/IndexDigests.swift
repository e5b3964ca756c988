import Accounts
import Authentication
import Caching
import EventLoop
import JSON
import Message
import Releases
import Rules
import Storage

/// The digests that indexes promise of their files, as far as they have been read: for a day, of the files that were read about last.
///
/// An index is read on the blocking pool when it has been stored, and when it is served and was not read in the last twelve hours, as after a restart. A client that
/// asks for a file before that gets it unproven. Names are hashes with the secret of this process.
final class IndexDigests: Sendable {
    private struct State {
        var digests = ExpiringTable<StorageKey, [UInt8]>(lifetime: ReadIndexes.lifetime, countMax: 65_536)
        var read = ReadIndexes()
        /// The digests of stored files, by their keys.
        var found = ExpiringTable<StorageKey, FoundDigest>(lifetime: .seconds(86_400), countMax: 65_536)
        /// The files whose digests are being computed.
        var computing: Set<StorageKey> = []
        /// Files that were stored before an index promised anything of them, by the names that it would use.
        var unproven = ExpiringTable<StorageKey, UnprovenFile>(lifetime: .seconds(3600), countMax: 4096)
    }

    private struct FoundDigest {
        weak var body: Body?
        /// The number of the response on the disk, from which it comes back with another body.
        var id: StoredID?
        var digest: ExpectedDigest
    }

    private struct UnprovenFile {
        weak var record: StoredResponse?
        weak var zone: Zone?
        var algorithm: DigestRule.Algorithm
    }

    private let state = Locked(State())
    private let hash: @Sendable ([UInt8]) -> StorageKey

    init(hash: @escaping @Sendable ([UInt8]) -> StorageKey) { self.hash = hash }

    /// The digests that indexes of the scope promise of the file: none or one, unless its path can be read in several ways.
    ///
    /// - Parameter audience: for whom the file is (`OwnedRequest.audience`). An index that is for fewer promises nothing; of those that are for these
    ///   clients or more, the one that is for the fewest counts.
    func digests(
        of uri: [UInt8], _ scope: String, for audience: [[UInt8]], _ algorithm: DigestRule.Algorithm, now: Duration
    ) -> Set<ExpectedDigest> {
        let uris = PathReadings.names(ofURI: uri)
        for audience in audience.subsets.sorted(by: { $0.count > $1.count }) {
            let names = uris.map { name($0, scope, audience, algorithm) }
            let digits = state.withLock { state in names.compactMap { state.digests.value($0, now: now)?.value } }
            if !digits.isEmpty { return Set(digits.map { ExpectedDigest(algorithm, $0) }) }
        }
        return []
    }

    /// Reads a stored response, if it is an index that has not been read.
    func read(_ record: StoredResponse, of request: OwnedRequest, by snapshot: Snapshot, on worker: Worker) {
        let now = worker.uptime
        guard let index = PromisingIndex(record, of: request, by: snapshot),
            state.withLock({ $0.read.begins(record.key, record.body, now: now) })
        else { return }
        let worker = WorkerReference(worker)
        let isAccepted = worker.value.shared.pool.submit(
            { self.note(index.digests(), index.scope, index.audience, now: now) },
            then: { count, broken in
                for (record, zone) in broken { worker.value.removeBroken(record, from: zone) }
                worker.value.counters.add(.digestsPromised, count)
            }, on: worker.value.loop.inbox)
        if !isAccepted { state.withLock { $0.read.forget(record.key) } }
    }

    /// Returns how many there are, and the stored files that are not what was promised.
    private func note(
        _ promised: [(uri: [UInt8], algorithm: DigestRule.Algorithm, digits: [UInt8])], _ scope: String,
        _ audience: [[UInt8]], now: Duration
    ) -> (count: Int, broken: [(StoredResponse, Zone)]) {
        let named = promised.map { (name(PathReadings.name(ofURI: $0.uri), scope, audience, $0.algorithm), $0.digits) }
        let unproven = state.withLock { state in
            for (name, digits) in named { state.digests.set(name, digits, now: now) }
            return named.compactMap { name, digits in
                state.unproven.value(name, now: now).map { ($0.value, ExpectedDigest($0.value.algorithm, digits)) }
            }
        }
        let broken = unproven.compactMap { file, digest -> (StoredResponse, Zone)? in
            guard let record = file.record, let zone = file.zone, isBroken(record, promised: [digest], now: now) else {
                return nil
            }
            return (record, zone)
        }
        return (named.count, broken)
    }

    // MARK: stored files

    /// Notes the digest of a stored body.
    func note(_ digest: ExpectedDigest, of record: StoredResponse, now: Duration) {
        let found = FoundDigest(body: record.body, id: record.storedID, digest: digest)
        state.withLock { $0.found.set(record.key, found, now: now) }
    }

    /// Notes a file that was stored unproven. It is compared when an index that speaks of it has been read.
    func noteUnproven(
        _ record: StoredResponse, in zone: Zone, of uri: [UInt8], _ scope: String, for audience: [[UInt8]],
        _ algorithm: DigestRule.Algorithm, now: Duration
    ) {
        let names = PathReadings.names(ofURI: uri).flatMap { uri in
            audience.subsets.map { name(uri, scope, $0, algorithm) }
        }
        let file = UnprovenFile(record: record, zone: zone, algorithm: algorithm)
        state.withLock { state in for name in names { state.unproven.set(name, file, now: now) } }
    }

    /// Whether a stored file is the one that was promised.
    func verdict(on record: StoredResponse, promised: Set<ExpectedDigest>, now: Duration) -> PromiseVerdict {
        let found = state.withLock { $0.found.value(record.key, now: now)?.value }
        let isSame = found.map { $0.body === record.body || $0.id != nil && $0.id == record.storedID } ?? false
        return PromiseVerdict(found: isSame ? found?.digest : nil, promised: promised)
    }

    /// Computes the digest of a stored file on the blocking pool. A file that is not the one that was promised leaves the store.
    func compare(_ record: StoredResponse, in zone: Zone, with promised: Set<ExpectedDigest>, on worker: Worker) {
        guard state.withLock({ $0.computing.insert(record.key).inserted }) else { return }
        let now = worker.uptime
        let worker = WorkerReference(worker)
        let isAccepted = worker.value.shared.pool.submit(
            {
                defer { _ = self.state.withLock { $0.computing.remove(record.key) } }
                return self.isBroken(record, promised: promised, now: now)
            }, then: { if $0 { worker.value.removeBroken(record, from: zone) } }, on: worker.value.loop.inbox)
        if !isAccepted { _ = state.withLock { $0.computing.remove(record.key) } }
    }

    /// Whether a stored file is known not to be the one that was promised. Blocks, and computes its digest if nobody knows it.
    private func isBroken(_ record: StoredResponse, promised: Set<ExpectedDigest>, now: Duration) -> Bool {
        let known = verdict(on: record, promised: promised, now: now)
        guard known == .unknown, let algorithm = promised.first?.algorithm else { return known == .broken }
        guard let proof = BodyProof(ExpectedDigest(algorithm, []), of: record.fields, at: record.keyBytes),
            unsafe record.body.readAll({ unsafe proof.add($0) })
        else { return false }
        proof.conclude()
        let digest = proof.found.first { promised.contains($0) } ?? proof.found[0]
        note(digest, of: record, now: now)
        return PromiseVerdict(found: digest, promised: promised) == .broken
    }

    private func name(
        _ uri: [UInt8], _ scope: String, _ audience: [[UInt8]], _ algorithm: DigestRule.Algorithm
    ) -> StorageKey {
        hash(Array("\(algorithm.rawValue) \(scope)\n".utf8) + audience.joined() + [UInt8(ascii: "\n")] + uri)
    }
}

extension Worker {
    /// Removes a stored file that an index contradicts, here and from what the fleet shares, and says so.
    func removeBroken(_ record: StoredResponse, from zone: Zone) {
        let uri = Diagnostics.masked(record.keyBytes.prefix { $0 != UInt8(ascii: "#") })
        Diagnostics.info("the index promises another body of \(uri): the stored one is removed")
        zone.tier.remove(record)
        shared.fleet?.remove(record.keyBytes, of: zone, now: loop.now)
    }
}

extension [[UInt8]] {
    /// All choices of some of these, in their order. There are three at most.
    fileprivate var subsets: [[[UInt8]]] { reduce([[]]) { all, one in all + all.map { $0 + [one] } } }
}

extension StoredResponse {
    /// The origin has chosen it by more than the forms that a client understands (`Vary`): by who the client is, perhaps.
    fileprivate var dependsOnClient: Bool {
        guard let vary = fields.joined(.vary) else { return false }
        var isSelected = false
        forEachListElement(vary[...]) { name in
            let isForm = ["accept", "accept-encoding", "accept-language", "user-agent", "origin"].contains {
                equalsIgnoringCase(name, $0.utf8)
            }
            if !isForm { isSelected = true }
        }
        return isSelected
    }
}

extension PathReadings {
    /// The URI with its path in the form that all spellings of a name have in common.
    ///
    /// - Parameter uri: normalised, so that it has an authority.
    fileprivate static func name(ofURI uri: [UInt8]) -> [UInt8] {
        let path = rangeOfPath(uri)
        return uri[..<path.lowerBound] + name(of: uri[path]) + uri[path.upperBound...]
    }

    /// The names, in this form, of all that an origin may take the URI for.
    fileprivate static func names(ofURI uri: [UInt8]) -> [[UInt8]] {
        let path = rangeOfPath(uri)
        return (names(of: uri[path]) ?? []).map { uri[..<path.lowerBound] + $0 + uri[path.upperBound...] }
    }

    private static func rangeOfPath(_ uri: [UInt8]) -> Range<Int> {
        let authority = uri.firstIndex(of: UInt8(ascii: ":")).map { min($0 + 3, uri.count) } ?? 0
        let end = uri.firstIndex(of: UInt8(ascii: "?")) ?? uri.count
        return (uri[authority..<max(authority, end)].firstIndex(of: UInt8(ascii: "/")) ?? end)..<end
    }
}

/// A stored index whose digests can be read.
private struct PromisingIndex: Sendable {
    let text: IndexText
    let kind: ReleaseKind
    let form: IndexForm
    let scope: String
    /// For whom the index is. Another client may be told something else by the origin.
    let audience: [[UInt8]]
    let uri: [UInt8]

    init?(_ record: StoredResponse, of request: OwnedRequest, by snapshot: Snapshot) {
        let handling = request.handling(of: record, by: snapshot)
        // What may be another document at the origin promises nothing.
        guard !handling.isDisputed, let kind = snapshot.cacheRules.releaseKind(of: handling), kind.isIndex,
            record.cached.status == 200,
            record.body.isComplete, !record.body.isWindowed,
            let form = record.fields.first(.contentType).flatMap({ IndexForm(contentType: $0) }),
            let scope = snapshot.cacheRules.indexScope(of: handling), !record.dependsOnClient
        else { return nil }
        text = IndexText(body: record.body, coding: StoredCoding(of: record.fields))
        (self.kind, self.form, self.scope) = (kind, form, scope)
        audience = request.audience
        uri = request.uri
    }

    /// What cannot be read promises nothing.
    func digests() -> [(uri: [UInt8], algorithm: DigestRule.Algorithm, digits: [UInt8])] {
        guard let base = TargetURI(uri), let text = try? text.decoded(),
            let promised = try? promisedDigests(text, kind, form)
        else { return [] }
        let directory = PathReadings.name(ofURI: base.normalised) + [UInt8(ascii: "/")]
        return promised.compactMap { digest in
            guard let file = base.resolving(digest.reference),
                let algorithm = DigestRule.Algorithm(rawValue: digest.algorithm.rawValue)
            else { return nil }
            // A document that may be anybody's speaks for what is below it alone.
            guard kind.isCertainOfIndex || PathReadings.name(ofURI: file.normalised).starts(with: directory) else {
                return nil
            }
            return (file.normalised, algorithm, digest.digits)
        }
    }
}
