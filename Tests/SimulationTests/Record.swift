import Caching
import Message

/// A stored response of the model: what Caching made of it, and where it truly comes from.
final class Record {
    let uri: Int
    let cached: CachedResponse
    let fields: Fields
    let secondaryKey: SecondaryKey?
    let codingVariant: CodingVariant?
    let coding: CodingTerms
    let body: ModelBody
    /// The answer that brought the head, and those that renewed it since.
    let lineage: [OriginAnswer]
    /// To whom the origin gave it, or said that it suits them.
    let askers: [ClientRequest]
    /// Purged softly, or found to be outdated.
    let isOutdated: Bool

    init(
        _ request: ClientRequest, _ cached: CachedResponse, _ fields: Fields, _ body: ModelBody, _ answer: OriginAnswer
    ) {
        uri = request.uri
        self.cached = cached
        self.fields = fields
        self.body = body
        lineage = [answer]
        askers = [request]
        isOutdated = false
        secondaryKey = cached.vary == .none ? nil : SecondaryKey(cached.vary, request: request.fields)
        codingVariant = CodingVariant(cached.vary, request: request.fields)
        coding = CodingTerms(cached, fields: fields, uri: Array("/\(request.uri)".utf8))
    }

    private init(
        _ other: Record, _ cached: CachedResponse, _ fields: Fields, _ lineage: [OriginAnswer],
        request: ClientRequest? = nil, isReselected: Bool = false, isOutdated: Bool = false
    ) {
        askers = (isReselected ? [] : other.askers) + lineage.suffix(1).map(\.request)
        uri = other.uri
        self.cached = cached
        self.fields = fields
        self.lineage = lineage
        self.isOutdated = isOutdated
        body = other.body
        secondaryKey =
            request.map { cached.vary == .none ? nil : SecondaryKey(cached.vary, request: $0.fields) }
            ?? other.secondaryKey
        codingVariant = request.map { CodingVariant(cached.vary, request: $0.fields) } ?? other.codingVariant
        coding = CodingTerms(cached, fields: fields, uri: Array("/\(other.uri)".utf8))
    }

    /// A new head over the same body; `answer` alone where the head is all its own.
    func renewed(_ cached: CachedResponse, _ fields: Fields, by answer: OriginAnswer, isWhole: Bool = false) -> Record {
        Record(self, cached, fields, isWhole ? [answer] : lineage + [answer])
    }

    func renewed(for request: ClientRequest) -> Record { Record(self, cached, fields, lineage, request: request) }

    /// The origin selects by other fields now: it is known to suit this request, and no other.
    func reselected(for request: ClientRequest) -> Record {
        Record(self, cached, fields, lineage, request: request, isReselected: true)
    }

    var outdated: Record { Record(self, cached.outdated(), fields, lineage, isOutdated: true) }

    func suits(_ request: ClientRequest) -> Bool {
        guard body.state != .failed else { return false }
        guard let secondaryKey else { return true }
        return secondaryKey.matches(request.fields)
            || codingVariant?.serves(request.fields, request.cache, coding) ?? false
    }

    /// What its bytes have to be.
    var truth: [UInt8] { lineage[0].status == 204 ? [] : lineage[0].representation?.content ?? [] }

    /// Length of the whole; nil: not known yet.
    var length: Int? { body.state == .complete ? body.bytes.count : body.expected }
}
