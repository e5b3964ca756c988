package import Message

/// Reads a date in `Expires` of a cookie (RFC 6265 §5.1.1), a far wider form than an HTTP-date: day, month, year and time in any order,
/// with nearly anything in between. Returns nil if one of them is missing or there is no such moment.
package func parseCookieDate(_ text: ArraySlice<UInt8>) -> WallTime? {
    var time: (hour: Int, minute: Int, second: Int)?
    var day: Int?
    var month: Int?
    var year: Int?
    // The first token that can be a time, a day, a month or a year is one; what comes later is not looked at again.
    for token in text.split(whereSeparator: isDelimiter) {
        if time == nil, let found = timeOfDay(token) {
            time = found
        } else if day == nil, let found = number(token, digits: 1...2) {
            day = found
        } else if month == nil, let found = monthNumber(token) {
            month = found
        } else if year == nil, let found = number(token, digits: 2...4) {
            year = found
        }
    }
    guard let time, let day, let month, var year else { return nil }
    if (70...99).contains(year) { year += 1900 }
    if (0...69).contains(year) { year += 2000 }
    guard year >= 1601, time.hour <= 23, time.minute <= 59, time.second <= 59 else { return nil }
    return wallTime(year: year, month: month, day: day, second: time.hour * 3600 + time.minute * 60 + time.second)
}

/// `delimiter`: everything but letters, digits, ":", control characters except the tab, and bytes from 0x7F on.
private func isDelimiter(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x09, 0x20...0x2F, 0x3B...0x40, 0x5B...0x60, 0x7B...0x7E: true
    default: false
    }
}

/// So many digits, and behind them nothing, or anything that does not begin with a digit.
private func number(_ token: ArraySlice<UInt8>, digits: ClosedRange<Int>) -> Int? {
    let found = token.prefix { isDigit($0) }
    return digits.contains(found.count) ? value(found) : nil
}

/// `hour ":" minute ":" second`, each with one or two digits, and behind them what may follow a number.
private func timeOfDay(_ token: ArraySlice<UInt8>) -> (hour: Int, minute: Int, second: Int)? {
    let parts = token.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].allSatisfy({ isDigit($0) }), parts[1].allSatisfy({ isDigit($0) }),
        let hour = number(parts[0], digits: 1...2), let minute = number(parts[1], digits: 1...2),
        let second = number(parts[2], digits: 1...2)
    else { return nil }
    return (hour, minute, second)
}

/// The first three letters name the month, and anything may follow.
private func monthNumber(_ token: ArraySlice<UInt8>) -> Int? {
    guard token.count >= 3 else { return nil }
    let names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    return names.firstIndex { equalsIgnoringCase(token.prefix(3), $0.utf8) }.map { $0 + 1 }
}

/// - Parameter digits: four at most.
private func value(_ digits: ArraySlice<UInt8>) -> Int { digits.reduce(0) { $0 * 10 + Int($1 - 0x30) } }
