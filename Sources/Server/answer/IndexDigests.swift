import Access
import Caching
import EventLoop
import JSON
import Message
import Releases
import Rules
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
        guard let index = PromisingIndex(record, of: request, by: snapshot),
            begins(record)
        else { return }
        let now = worker.uptime
        let worker = WorkerReference(worker)
        let isAccepted = worker.value.shared.pool.submit(
            { self.note(index.digests(), index.scope, index.audience, now: now) },
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
        _ promised: [(uri: [UInt8], algorithm: DigestRule.Algorithm, digits: [UInt8])], _ scope: String,
        _ audience: [[UInt8]], now: Duration
    ) -> Int {
        let named = promised.map { (name(PathReadings.name(ofURI: $0.uri), scope, audience, $0.algorithm), $0.digits) }
        state.withLock { state in
            for (name, digits) in named { state.digests.set(name, digits, now: now) }
        }
        return named.count
    }

    private func name(
        _ uri: [UInt8], _ scope: String, _ audience: [[UInt8]], _ algorithm: DigestRule.Algorithm
    ) -> StorageKey {
        hash(Array("\(algorithm.rawValue) \(scope)\n".utf8) + audience.joined() + [UInt8(ascii: "\n")] + uri)
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
