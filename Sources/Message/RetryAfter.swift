/// The value of `Retry-After`: how long to wait, as seconds or as a date (RFC 9110 §10.2.3). A date that has passed is no time at all.
/// Returns nil if it is invalid.
package func parseRetryAfter(_ value: ArraySlice<UInt8>, now: WallTime) -> Duration? {
    if let seconds = parseDeltaSeconds(value) { return .seconds(seconds.count) }
    guard let date = parseHTTPDate(value, now: now) else { return nil }
    return .seconds(max(0, date.secondsSinceEpoch - now.secondsSinceEpoch))
}
