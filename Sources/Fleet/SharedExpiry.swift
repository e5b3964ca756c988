/// How long Redis keeps a record.
package enum SharedExpiry {
    /// The most seconds, whatever the origin says: what nobody has written again by then is hardly in use.
    package static let secondsMax: Int64 = 30 * 86_400

    /// A response that can be validated is kept for a grace after it became stale, because a 304 of the origin is cheaper than a body. The grace
    /// begins when the response becomes stale, or when it is stored if it is stale from the beginning.
    ///
    /// - Parameters:
    ///   - storedAt: in seconds since 1970, as all times here.
    ///   - expiresAt: when the response becomes stale. It may be long before `storedAt`.
    ///   - grace: in seconds; zero for a response without a validator.
    /// - Returns: the seconds for EXPIRE, from 1 to `secondsMax`. Returns nil if the grace is over, and the record is not worth writing.
    package static func seconds(storedAt: Int64, expiresAt: Int64, now: Int64, grace: Int64) -> Int64? {
        precondition(grace >= 0, "a grace does not end before it begins")
        let end = saturatingSum(grace > 0 ? max(storedAt, expiresAt) : expiresAt, grace)
        guard end > now else { return nil }
        let (seconds, overflow) = end.subtractingReportingOverflow(now)
        return overflow ? secondsMax : min(seconds, secondsMax)
    }

    private static func saturatingSum(_ a: Int64, _ b: Int64) -> Int64 {
        let (sum, overflow) = a.addingReportingOverflow(b)
        return overflow ? .max : sum
    }
}
