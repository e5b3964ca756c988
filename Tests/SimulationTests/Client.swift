import Caching
import Message

/// One client: it asks, remembers what it got, and asks again with that.
struct Client {
    let id: Int
    /// What it has, newest last.
    private var known: [(uri: Int, eTag: String?, modified: Int64?)] = []

    init(id: Int) { self.id = id }

    mutating func request(
        _ chance: inout Chance, resourceCount: Int, ranges: Int, _ handlings: [CacheHandling], isSigned: Bool
    ) -> ClientRequest {
        let uri = chance.below(resourceCount)
        let have = known.last { $0.uri == uri }
        let drawn: Method = chance.percent(90) ? .get : chance.pick([.head, .head, .post, .put, .delete, .options])
        // An address is signed for GET, and the other methods are not those of its response.
        let method: Method = isSigned && (drawn == .head || drawn == .post) ? .get : drawn
        let isConditional = chance.oneIn(6)
        var tags: [String] = []
        if isConditional, chance.percent(70) { tags = known.filter { $0.uri == uri }.suffix(2).compactMap(\.eTag) }
        let since = isConditional && chance.oneIn(2) ? have?.modified : nil
        let spans = method == .get && chance.percent(ranges) ? Client.spans(&chance) : []
        var ifRange: String?
        if chance.oneIn(3) { ifRange = have?.eTag ?? have?.modified.map(httpDate) }
        let ifMatch = chance.oneIn(25) ? have?.eTag : nil
        var handling = handlings[uri]
        // As with `Larder-Policy`.
        if chance.percent(ranges / 4) { handling.use = .noRead }
        return ClientRequest(
            &chance, uri: uri, method: method, handling: handling, user: chance.oneIn(5) ? id : nil,
            cookie: chance.percent(70) ? id : nil, spans: spans, ifRange: ifRange,
            ifNoneMatch: tags, ifModifiedSince: since, ifMatch: ifMatch)
    }

    private static func spans(_ chance: inout Chance) -> [ClientRequest.Span] {
        (0..<(chance.oneIn(6) ? 2 : 1)).map { _ in
            let first = chance.below(30)
            switch chance.below(4) {
            case 0: return .last(chance.below(20))
            case 1: return .from(first, nil)
            default: return .from(first, first + chance.below(20))
            }
        }
    }

    mutating func learn(_ exchange: SimulatedExchange) {
        guard exchange.answer.end == .whole || exchange.answer.end == .broken,
            let source = exchange.answer.record?.lineage.last ?? exchange.answer.relayed,
            source.status == 200 || source.status == 206
        else { return }
        // It knows what it has asked for, and not where redirects led.
        known.append((exchange.first.uri, source.description.eTag, source.description.lastModified))
        if known.count > 12 { known.removeFirst() }
    }
}
