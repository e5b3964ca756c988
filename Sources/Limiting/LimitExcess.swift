/// The limit that a request has met.
package struct LimitExcess: Equatable, Sendable {
    package enum Figure: Equatable, Sendable {
        case requests(TokenRate)
        case concurrent(Int)
    }

    package let bucket: LimitBucket
    package let figure: Figure
    /// In whole seconds, at least one: the value of `Retry-After` (RFC 9110 §10.2.3).
    package let retryAfter: Int

    /// - Parameter wait: nanoseconds until it is worth trying again.
    package init(_ bucket: LimitBucket, _ figure: Figure, wait: UInt64) {
        self.bucket = bucket
        self.figure = figure
        retryAfter = max(1, Int(clamping: (wait + 999_999_999) / 1_000_000_000))
    }

    /// `limit builders for user ann: 50/s, at most 100 at once`. It names nobody but the client itself.
    package var text: String {
        let whose = bucket.subject.isOfClient ? "for \(bucket.subject.description)" : "for all clients together"
        return "limit \(bucket.rule) \(whose): \(figureText)"
    }

    private var figureText: String {
        switch figure {
        case .requests(let rate): "\(rate.text) requests, at most \(rate.burst) at once"
        case .concurrent(let count): "\(count) under way"
        }
    }
}
