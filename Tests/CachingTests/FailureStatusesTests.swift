import Caching
import Message
import Testing

/// - Parameter age: of the stored response, in seconds.
private func standIn(
    _ cacheControl: String, age: Int64, request: String, _ handling: CacheHandling, isPaused: Bool
) -> Reuse {
    let response = stored("Cache-Control: \(cacheControl)", "ETag: \"a\"")
    let asked = request.isEmpty ? get() : get("Cache-Control: \(request)")
    let now = noon + seconds(age)
    let decision = reuse(of: response, for: asked, use: handling.use, now: now)
    return reuse(decision, of: response.terms, for: asked, handling: handling, now: now, isPaused: isPaused)
}

@Suite("failure_statuses: what counts as a failure of the origin") struct FailureStatusesTests {
    @Test func `each 5xx does, and what a rule names`() {
        var handling = CacheHandling()
        let statuses = [200, 301, 403, 404, 408, 410, 425, 429, 499, 500, 503, 599, 600] as [UInt16]
        #expect(statuses.filter(handling.countsAsFailure) == [500, 503, 599, 600])
        handling.failureStatuses = [.forbidden, .tooManyRequests]
        #expect(statuses.filter(handling.countsAsFailure) == [403, 429, 500, 503, 599, 600])
    }

    @Test func `a status that says something about the resource cannot be named`() {
        #expect(FailureStatuses.nameable == [403, 408, 425, 429])
        for status in [200, 401, 404, 410, 412, 416, 500] as [UInt16] {
            #expect(FailureStatuses(status: status) == nil)
        }
        for status in FailureStatuses.nameable { #expect(FailureStatuses(status: status)?.statuses == [status]) }
    }

    /// The lifetime, the age, the directives of the request, the handling, and whether the stored response stands in.
    static let rows: [(String, age: Int64, request: String, @Sendable (inout CacheHandling) -> Void, standsIn: Bool)] =
        [
            ("max-age=10", 20, "", { $0.failureStatuses = .tooManyRequests }, true),
            ("max-age=10", 20, "", { $0.use = .staleOnError }, true),
            ("max-age=10", 5, "", { ($0.use, $0.failureStatuses) = (.revalidateAlways, .tooManyRequests) }, true),
            ("max-age=10", 20, "", { _ in }, false),
            ("max-age=10", 20, "no-cache", { $0.failureStatuses = .tooManyRequests }, false),
            ("max-age=10", 20, "max-age=15", { $0.failureStatuses = .tooManyRequests }, false),
            ("max-age=10, must-revalidate", 20, "", { $0.failureStatuses = .tooManyRequests }, false),
            ("max-age=10, stale-if-error=5", 20, "", { $0.failureStatuses = .tooManyRequests }, false),
            ("max-age=10, stale-if-error=5", 20, "", { $0.use = .staleOnError }, true),
        ]
    @Test(arguments: rows.indices)
    func `while the origin wants no requests, a stored response stands in as for a failure`(
        _ index: Int
    ) {
        let row = Self.rows[index]
        var handling = CacheHandling()
        row.3(&handling)
        let decision = standIn(row.0, age: row.age, request: row.request, handling, isPaused: true)
        if case .serveStale = decision { #expect(row.standsIn) } else { #expect(!row.standsIn) }
        let unpaused = standIn(row.0, age: row.age, request: row.request, handling, isPaused: false)
        guard case .validate = unpaused else {
            Issue.record("\(unpaused) without a pause")
            return
        }
    }
}
