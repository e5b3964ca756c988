import Caching
import Message
import Testing

@Suite("What a rule allows to store needs the same permission to be reused")
struct StoringPermissionsTests {
    typealias Change = @Sendable (inout CacheHandling) -> Void
    static let none: Change = { _ in }
    static let shared: Change = { $0.authorization = .public }
    static let asked: Change = { $0.authorization = .validate }
    static let disregards: Change = { $0.respectsCacheControl = false }
    static let targeted: Change = { $0.heedsTargetedFields = true }
    static let storesCookies: Change = { $0.storesCookies = true }
    static let dropsCookies: Change = { $0.dropsCookies = true }

    /// Under which handling a response was stored, the request's fields, those of the response, and under which others it is fetched.
    static let rows: [(storedUnder: Change, request: [String], response: [String], fetchedUnder: [Change])] = [
        (none, [], ["Cache-Control: max-age=60"], []),
        (shared, ["Authorization: a"], ["Cache-Control: max-age=60"], [none, disregards, storesCookies]),
        (asked, ["Authorization: a"], ["Cache-Control: max-age=60", "ETag: \"1\""], [none, disregards]),
        (shared, ["Authorization: a"], ["Cache-Control: s-maxage=60"], []),
        (disregards, [], ["Cache-Control: private, max-age=60"], [none, shared, targeted]),
        (disregards, [], ["Cache-Control: must-revalidate, max-age=60"], [none, shared, targeted]),
        (disregards, [], ["Cache-Control: s-maxage=60"], []),
        (disregards, [], ["Cache-Control: max-age=60", "CDN-Cache-Control: no-store"], [none, targeted]),
        (targeted, [], ["Cache-Control: no-store", "CDN-Cache-Control: max-age=60"], [none, shared]),
        (targeted, [], ["Cache-Control: max-age=5", "CDN-Cache-Control: max-age=60"], []),
        (none, [], ["Cache-Control: max-age=60", "CDN-Cache-Control: private"], [targeted]),
        (none, [], ["Cache-Control: max-age=60", "CDN-Cache-Control: max-age=5"], []),
        (storesCookies, [], ["Cache-Control: max-age=60", "Set-Cookie: a=b"], [none, dropsCookies]),
        (storesCookies, [], ["Cache-Control: public, max-age=60", "Set-Cookie: a=b"], []),
    ]

    private static func handling(_ change: Change) -> CacheHandling {
        var handling = CacheHandling()
        change(&handling)
        return handling
    }

    private static func stored(_ index: Int) throws -> (CachedResponse, Fields) {
        let row = rows[index]
        let decision = decideStoring(
            of: CacheRequest(method: .get, fields: fields(row.request)), status: 200, fields: fields(row.response),
            policy: CachePolicy(), handling: handling(row.storedUnder), requestTime: noon, responseTime: noon)
        guard case .store(let response) = decision else { throw StoredFormError() }
        return (response, fields(row.response))
    }

    private static func isFetched(_ response: CachedResponse, under change: Change) -> Bool {
        let terms = response.terms(under: handling(change))
        return reuse(of: terms, for: get(), now: noon) == .fetch(.permission) && !isEligible(terms, for: get())
            && reuse(of: terms, for: get(), use: .cacheFirst, now: noon) == .fetch(.permission)
    }

    @Test(arguments: rows.indices) func `it is fetched where no rule allows it`(_ index: Int) throws {
        let (response, fields) = try Self.stored(index)
        var writer = StoredFormWriter()
        response.write(to: &writer)
        var reader = StoredFormReader(writer.finish())
        let read = try CachedResponse(from: &reader, fields: fields)
        #expect(read == response)
        var renewed = CachedResponse(
            status: 200, fields: fields, requestTime: noon, responseTime: noon, policy: CachePolicy())
        renewed.needs(as: response, fields, Self.handling(Self.rows[index].storedUnder))
        for response in [response, read, renewed] {
            #expect(!Self.isFetched(response, under: Self.rows[index].storedUnder))
            for change in Self.rows[index].fetchedUnder { #expect(Self.isFetched(response, under: change)) }
            // The short way of a hit does not look at handlings.
            if !Self.rows[index].fetchedUnder.isEmpty { #expect(!response.hasFixedTerms) }
        }
    }

    @Test func `a response whose cookie was taken out needs a rule that takes it out`() throws {
        let decision = decideStoring(
            of: get(), status: 200, fields: fields("Cache-Control: max-age=60", "Set-Cookie: a=b"),
            policy: CachePolicy(),
            handling: Self.handling(Self.dropsCookies),
            particulars: HandlingParticulars(droppedCookies: [Array("a".utf8)]),
            requestTime: noon, responseTime: noon)
        guard case .store(let response) = decision else { throw StoredFormError() }
        #expect(Self.isFetched(response, under: Self.none) && Self.isFetched(response, under: Self.storesCookies))
        #expect(!Self.isFetched(response, under: Self.dropsCookies))
    }
}
