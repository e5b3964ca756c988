import Access
import Caching
import EventLoop
import JSON
import Message
import Releases
import Storage

/// The digests that indexes promise of their files, as far as they have been read: for a day, of the files that were read about last.
///
/// An index is read on the blocking pool when it has been stored, and when it is served and was not read before, as after a restart. A client that
/// asks for a file before that gets it unproven. Names are hashes with the secret of this process.
final class IndexDigests: Sendable {
    private struct State {
        var digests = ExpiringTable<StorageKey, [UInt8]>(lifetime: .seconds(86_400), countMax: 65_536)
        var read: [StorageKey: ReadBody] = [:]
    }

    /// The stored body of an index that has been read, or is being read.
    private struct ReadBody {
        weak var body: Body?
    }

    private static let indexesMax = 4096
    private let state = Locked(State())
    private let hash: @Sendable ([UInt8]) -> StorageKey

    init(hash: @escaping @Sendable ([UInt8]) -> StorageKey) { self.hash = hash }

    /// The digest that an index of the scope promises of the file. Nil if none does.
    func digest(of uri: [UInt8], _ scope: String, _ algorithm: DigestRule.Algorithm, now: Duration) -> ExpectedDigest? {
        let name = name(uri, scope, algorithm)
        let digits = state.withLock { $0.digests.value(name, now: now)?.value }
        return digits.map { ExpectedDigest(algorithm, $0) }
    }

    /// Reads a stored response, if it is an index that has not been read.
    func read(_ record: StoredResponse, of request: OwnedRequest, by snapshot: Snapshot, on worker: Worker) {
        guard let index = PromisingIndex(record, of: request, by: snapshot),
            begins(record)
        else { return }
        let now = worker.uptime
        let worker = WorkerReference(worker)
        let isAccepted = worker.value.shared.pool.submit(
            { self.note(index.digests(), index.scope, now: now) },
            then: { worker.value.counters.add(.digestsPromised, $0) }, on: worker.value.loop.inbox)
        if !isAccepted { state.withLock { $0.read[record.key] = nil } }
    }

    private func begins(_ record: StoredResponse) -> Bool {
        let body = record.body
        return state.withLock { state in
            if state.read[record.key]?.body === body { return false }
            if state.read.count >= Self.indexesMax { state.read = state.read.filter { $0.value.body != nil } }
            if state.read.count >= Self.indexesMax { state.read = [:] }
            state.read[record.key] = ReadBody(body: body)
            return true
        }
    }

    /// Returns how many there are.
    private func note(
        _ promised: [(uri: [UInt8], algorithm: DigestRule.Algorithm, digits: [UInt8])], _ scope: String, now: Duration
    ) -> Int {
        let named = promised.map { (name($0.uri, scope, $0.algorithm), $0.digits) }
        state.withLock { state in
            for (name, digits) in named { state.digests.set(name, digits, now: now) }
        }
        return named.count
    }

    private func name(_ uri: [UInt8], _ scope: String, _ algorithm: DigestRule.Algorithm) -> StorageKey {
        hash(Array("\(algorithm.rawValue) \(scope)\n".utf8) + uri)
    }
}

/// A stored index whose digests can be read.
private struct PromisingIndex: Sendable {
    let text: IndexText
    let kind: ReleaseKind
    let form: IndexForm
    let scope: String
    let uri: [UInt8]

    init?(_ record: StoredResponse, of request: OwnedRequest, by snapshot: Snapshot) {
        let handling = request.handling(of: record, by: snapshot)
        guard let kind = snapshot.cacheRules.releaseKind(of: handling), kind.isIndex, record.cached.status == 200,
            record.body.isComplete, !record.body.isWindowed,
            let form = record.fields.first(.contentType).flatMap({ IndexForm(contentType: $0) }),
            let scope = snapshot.cacheRules.indexScope(of: handling)
        else { return nil }
        text = IndexText(body: record.body, coding: StoredCoding(of: record.fields))
        (self.kind, self.form, self.scope) = (kind, form, scope)
        uri = request.uri
    }

    /// What cannot be read promises nothing.
    func digests() -> [(uri: [UInt8], algorithm: DigestRule.Algorithm, digits: [UInt8])] {
        guard let base = TargetURI(uri), let text = try? text.decoded(),
            let promised = try? promisedDigests(text, kind, form)
        else { return [] }
        return promised.compactMap { digest in
            guard let file = base.resolving(digest.reference),
                let algorithm = DigestRule.Algorithm(rawValue: digest.algorithm.rawValue)
            else { return nil }
            return (file.normalised, algorithm, digest.digits)
        }
    }
}
