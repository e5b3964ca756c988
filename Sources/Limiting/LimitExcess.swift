/// The limit that a request has met.
package struct LimitExcess: Equatable, Sendable {
    package enum Figure: Equatable, Sendable {
        case requests(TokenRate)
        case concurrent(Int)
        case budget(ByteBudget)
        /// In bytes: of the body of a request.
        case requestBody(UInt64)
        /// In bytes: of a request, head and body.
        case requestSize(UInt64)
        /// In bytes: of the body of a response.
        case responseBody(UInt64)
    }

    package let bucket: LimitBucket
    package let figure: Figure
    /// In whole seconds, at least one: the value of `Retry-After` (RFC 9110 §10.2.3). Nil: waiting changes nothing.
    package let retryAfter: Int?

    /// - Parameter wait: nanoseconds until it is worth trying again. Nil: never.
    package init(_ bucket: LimitBucket, _ figure: Figure, wait: UInt64?) {
        self.bucket = bucket
        self.figure = figure
        retryAfter = wait.map { max(1, Int(clamping: ($0 / 1_000_000_000) + ($0 % 1_000_000_000 > 0 ? 1 : 0))) }
    }

    /// `limit builders for user ann: 50/s requests, at most 100 at once`. It names nobody but the client itself.
    package var text: String { "limit \(bucket.rule)\(whose): \(figureText)" }

    private var whose: String {
        switch figure {
        case .requestBody, .requestSize, .responseBody: ""
        case .requests, .concurrent, .budget:
            bucket.subject.isOfClient ? " for \(bucket.subject.description)" : " for all clients together"
        }
    }

    private var figureText: String {
        switch figure {
        case .requests(let rate): "\(rate.text) requests, at most \(rate.burst) at once"
        case .concurrent(let count): "\(count) under way"
        case .budget(let budget): "\(budget.bytes) bytes \(budget.windowText)"
        case .requestBody(let bytes): "\(bytes) bytes in the body of a request"
        case .requestSize(let bytes): "\(bytes) bytes in a request"
        case .responseBody(let bytes): "\(bytes) bytes in the body of a response"
        }
    }
}
