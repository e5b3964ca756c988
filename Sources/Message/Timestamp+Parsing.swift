/// Parses an instant of ISO 8601 in a form that interfaces on the web use.
///
/// They are `2026-11-23T02:45:00Z` of RFC 3339 §5.6, with a fraction, which is dropped, and with any offset; the same without seconds;
/// `2026-11-23`, the start of that day in UTC; and the basic form `20261123T024500Z` of signed addresses. Returns nil for anything else.
package func parseTimestamp(_ text: some Collection<UInt8>) -> WallTime? {
    var reader = TimestampReader(rest: Array(text)[...])
    return reader.read()
}

private struct TimestampReader {
    var rest: ArraySlice<UInt8>

    mutating func read() -> WallTime? {
        guard let year = number(4) else { return nil }
        let isBasic = !take("-")
        guard let month = number(2), isBasic || take("-"), let day = number(2),
            let midnight = wallTime(year: year, month: month, day: day, second: 0)
        else { return nil }
        if rest.isEmpty { return isBasic ? nil : midnight }
        guard take("T") || take("t") || (!isBasic && take(" ")), let hour = number(2), hour < 24,
            isBasic || take(":"), let minute = number(2), minute < 60
        else { return nil }
        var second = 0
        if isBasic || take(":") {
            // 60 is a leap second (RFC 3339 §5.7).
            guard let seconds = number(2), seconds <= 60, fraction() else { return nil }
            second = seconds
        }
        guard let offset = offset(), rest.isEmpty else { return nil }
        return midnight + Seconds(Int64(hour * 3600 + minute * 60 + second - offset))
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest = rest.dropFirst()
        return true
    }

    private mutating func number(_ count: Int) -> Int? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy({ isDigit($0) }) else { return nil }
        rest = rest.dropFirst(count)
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private mutating func fraction() -> Bool {
        guard take(".") || take(",") else { return true }
        let digits = rest.prefix { isDigit($0) }
        rest = rest.dropFirst(digits.count)
        return !digits.isEmpty
    }

    /// The difference to UTC in seconds. Returns nil if there is none, because then the instant is unknown.
    private mutating func offset() -> Int? {
        if take("Z") || take("z") { return 0 }
        let isEast = take("+")
        guard isEast || take("-"), let hours = number(2), hours < 24 else { return nil }
        _ = take(":")
        guard let minutes = number(2), minutes < 60 else { return nil }
        return (isEast ? 1 : -1) * (hours * 3600 + minutes * 60)
    }
}
