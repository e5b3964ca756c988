/// Appends an instant in the form of RFC 3339, in UTC, up to the seconds: `2026-11-21T00:31:55`.
///
/// The caller appends what follows (a fraction, `Z`). A year outside 0 to 9999 becomes the nearest one.
package func appendTimestamp(_ time: WallTime, to bytes: inout [UInt8]) {
    let parts = CivilTime(time)
    appendDigits(parts.year, count: 4, to: &bytes)
    bytes.append(0x2D)
    appendDigits(parts.month, count: 2, to: &bytes)
    bytes.append(0x2D)
    appendDigits(parts.day, count: 2, to: &bytes)
    bytes.append(0x54)
    appendDigits(parts.second / 3600, count: 2, to: &bytes)
    bytes.append(0x3A)
    appendDigits(parts.second / 60 % 60, count: 2, to: &bytes)
    bytes.append(0x3A)
    appendDigits(parts.second % 60, count: 2, to: &bytes)
}

/// Parses an instant as RFC 3339 §5.6 writes it (`2026-11-21T00:31:55.25Z`, `2026-11-21T01:31:55+01:00`), or a date, which stands for its
/// first second in UTC. Fractions of seconds are dropped. Returns nil for anything else.
package func parseTimestamp(_ text: String) -> WallTime? {
    var rest = Array(text.utf8)[...]
    guard let year = number(4, &rest), take("-", &rest), let month = number(2, &rest), take("-", &rest),
        let day = number(2, &rest), (1...12).contains(month)
    else { return nil }
    if rest.isEmpty { return wallTime(year: year, month: month, day: day, second: 0) }
    guard take("T", &rest) || take("t", &rest) || take(" ", &rest), let hour = number(2, &rest), hour < 24,
        take(":", &rest), let minute = number(2, &rest), minute < 60, take(":", &rest), let second = number(2, &rest),
        second <= 60
    else { return nil }
    if take(".", &rest) {
        let fraction = rest.prefix { isDigit($0) }
        guard !fraction.isEmpty else { return nil }
        rest = rest.dropFirst(fraction.count)
    }
    guard let offset = zoneOffset(rest) else { return nil }
    let time = wallTime(year: year, month: month, day: day, second: hour * 3600 + minute * 60 + second)
    return time.map { $0 + Seconds(-Int64(offset)) }
}

/// The seconds by which the zone is ahead of UTC. Returns nil if this is no zone.
private func zoneOffset(_ bytes: ArraySlice<UInt8>) -> Int? {
    var rest = bytes
    if take("Z", &rest) || take("z", &rest) { return rest.isEmpty ? 0 : nil }
    let sign = take("+", &rest) ? 1 : take("-", &rest) ? -1 : 0
    guard sign != 0, let hour = number(2, &rest), hour < 24, take(":", &rest), let minute = number(2, &rest),
        minute < 60, rest.isEmpty
    else { return nil }
    return sign * (hour * 3600 + minute * 60)
}

private func take(_ character: Unicode.Scalar, _ rest: inout ArraySlice<UInt8>) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest = rest.dropFirst()
    return true
}

private func number(_ count: Int, _ rest: inout ArraySlice<UInt8>) -> Int? {
    let digits = rest.prefix(count)
    guard digits.count == count, digits.allSatisfy({ isDigit($0) }) else { return nil }
    rest = rest.dropFirst(count)
    return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
}
