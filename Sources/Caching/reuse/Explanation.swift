package import Message

/// One line of an explanation: the name that RFC 9111 gives a quantity, and its value with unit and source.
package struct ExplanationLine: Sendable, Equatable {
    package let name: String
    package let value: String

    init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The freshness calculation of RFC 9111 §4.2 for one stored response, line by line, and the decision for the request.
package func explainFreshness(
    _ stored: CachedResponse, for request: CacheRequest, use: CacheUse = [], now: WallTime
) -> [ExplanationLine] {
    ageLines(stored, now) + lifetimeLines(stored, now) + [
        ExplanationLine("decision", text(of: reuse(of: stored, for: request, use: use, now: now))),
        ExplanationLine(
            "if the origin fails",
            mayServeStaleOnError(stored, for: request, use: use, now: now) ? "may be served" : "may not be served"),
    ]
}

/// The age (§4.2.3).
private func ageLines(_ stored: CachedResponse, _ now: WallTime) -> [ExplanationLine] {
    let apparentAge = max(stored.responseTime.span(since: stored.date), .zero)
    let responseDelay = max(stored.responseTime.span(since: stored.requestTime), .zero)
    let correctedAgeValue = TimeSpan(stored.ageValue) + responseDelay
    let isCloseToDate = apparentAge > correctedAgeValue && apparentAge - correctedAgeValue < TimeSpan(Seconds(1))
    return [
        ExplanationLine("date_value", moment(stored.date)),
        ExplanationLine("request_time", moment(stored.requestTime)),
        ExplanationLine("response_time", moment(stored.responseTime)),
        ExplanationLine("now", moment(now)),
        ExplanationLine("age_value", count(stored.ageValue)),
        ExplanationLine("apparent_age", "max(0, response_time - date_value) = " + count(apparentAge)),
        ExplanationLine("response_delay", "response_time - request_time = " + count(responseDelay)),
        ExplanationLine(
            "corrected_age_value", "age_value + response_delay = " + count(correctedAgeValue)),
        ExplanationLine(
            "corrected_initial_age",
            (isCloseToDate
                ? "corrected_age_value, since apparent_age is less than a second more = "
                : "max(apparent_age, corrected_age_value) = ") + count(stored.correctedInitialAge)),
        ExplanationLine(
            "resident_time", "now - response_time = " + count(max(now.span(since: stored.responseTime), .zero))),
        ExplanationLine(
            "current_age", "corrected_initial_age + resident_time = " + count(stored.currentAge(now))),
    ]
}

/// The lifetime and how stale the response may be served (§4.2.1, §4.2.4, RFC 5861).
private func lifetimeLines(_ stored: CachedResponse, _ now: WallTime) -> [ExplanationLine] {
    let terms = stored.terms
    let left = stored.remainingLifetime(now)
    var lines = [ExplanationLine("freshness_lifetime", text(of: stored.lifetime, stored))]
    if terms.isDoubted {
        lines.append(ExplanationLine("doubted", "purges of the fleet may have been missed"))
    } else if terms.isOutdated {
        lines.append(ExplanationLine("outdated", "purged softly, or a HEAD showed another representation"))
    }
    lines.append(
        ExplanationLine(
            "response_is_fresh",
            left > .zero ? "yes, for " + count(left) : "no, since " + count(.zero - left)))
    lines.append(ExplanationLine("stale-while-revalidate", window(terms.staleWhileRevalidate)))
    lines.append(ExplanationLine("stale on error", terms.forbidsStale ? "forbidden" : window(terms.boundOnError)))
    return lines
}

private func text(of lifetime: FreshnessLifetime, _ stored: CachedResponse) -> String {
    switch lifetime {
    case .explicit(let seconds, by: .policy), .explicit(let seconds, by: .negative):
        let source = if case .explicit(_, let source) = lifetime { source.rawValue } else { "" }
        return source + " " + count(seconds) + " + corrected_initial_age = " + count(stored.lifetimeSeconds)
    case .explicit(let seconds, by: .expires): return "Expires - Date = " + count(seconds)
    case .explicit(let seconds, by: let source): return source.rawValue + " = " + count(seconds)
    case .heuristic(let seconds): return "heuristic, a share of Date - Last-Modified (§4.2.2) = " + count(seconds)
    case .unknown: return "0 s: the origin gave no lifetime, and no heuristic applies"
    }
}

private func text(of decision: Reuse) -> String {
    switch decision {
    case .serve: "serve: fresh"
    case .serveStale: "serve stale: the client or the policy allows it"
    case .serveStaleAndRevalidate: "serve stale, and validate in the background"
    case .validate(let reason): "validate: " + reason.rawValue
    case .fetch(let reason): "fetch: " + reason.rawValue
    case .refuse: "refuse with 504: the origin must not be asked"
    }
}

private func count(_ seconds: Seconds) -> String { "\(seconds.count) s" }

/// With a fraction in thousandths, if there is one.
private func count(_ span: TimeSpan) -> String {
    let thousandths = (span - span.wholeSeconds).ticks * 1000 / ticksPerSecond
    guard thousandths > 0 else { return count(span.seconds) }
    let digits = "\(1000 + thousandths)".dropFirst()
    return "\(span.seconds.count).\(digits) s"
}

private func window(_ seconds: Seconds) -> String { seconds > .zero ? "for " + count(seconds) : "not at all" }

private func moment(_ time: WallTime) -> String {
    var bytes: [UInt8] = []
    appendHTTPDate(time, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
}
