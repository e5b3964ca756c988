// HTTP-date (RFC 9110 §5.6.7): the format that Larder sends, and the three that it accepts.
//
// The form is strict, but names and zone match in any case (RFC 9111 §4.2), and the day name is not compared with the date: senders that
// get it wrong mean the date.

/// Parses an HTTP-date. Returns nil if it is invalid.
///
/// - Parameter now: decides the century of a two-digit year: a year more than 50 years ahead is in the past.
package func parseHTTPDate(_ value: some Collection<UInt8>, now: WallTime) -> WallTime? {
    parseCarefully(value, now: now)
}

/// Parses the HTTP-date at a range of a head. Nearly all dates have the preferred form.
package func parseHTTPDate(_ value: ArraySlice<UInt8>, now: WallTime) -> WallTime? {
    parsePreferredForm(value) ?? parseCarefully(value, now: now)
}

/// Parses an IMF-fixdate by its fixed places. Returns nil for anything unusual, which the strict parser decides about.
private func parsePreferredForm(_ value: ArraySlice<UInt8>) -> WallTime? {
    guard value.count == 29 else { return nil }
    let bytes = value.span
    func byte(_ offset: Int) -> Int { Int(bytes[offset]) }
    func letters(_ offset: Int) -> Int { byte(offset) << 16 | byte(offset + 1) << 8 | byte(offset + 2) }
    func two(_ offset: Int) -> Int? {
        let (tens, ones) = (byte(offset) - 0x30, byte(offset + 1) - 0x30)
        return 0...9 ~= tens && 0...9 ~= ones ? tens * 10 + ones : nil
    }
    guard byte(3) == 0x2C, byte(4) == 0x20, byte(7) == 0x20, byte(11) == 0x20, byte(16) == 0x20, byte(19) == 0x3A,
        byte(22) == 0x3A, byte(25) == 0x20, letters(26) == 0x474D54, preferredDays.contains(letters(0)),
        let month = preferredMonths.firstIndex(of: letters(8)), let day = two(5), let century = two(12),
        let year = two(14), let hour = two(17), let minute = two(20), let second = two(23),
        hour < 24, minute < 60, second < 60
    else { return nil }
    return wallTime(
        year: century * 100 + year, month: month + 1, day: day, second: hour * 3600 + minute * 60 + second)
}

/// The names as three bytes in one number.
private let preferredDays = dayNames.map { threeLetters($0.utf8.prefix(3)) }
private let preferredMonths = monthNames.map { threeLetters($0.utf8.prefix(3)) }
private func threeLetters(_ text: Substring.UTF8View) -> Int { text.reduce(0) { $0 << 8 | Int($1) } }

private func parseCarefully(_ value: some Collection<UInt8>, now: WallTime) -> WallTime? {
    var cursor = DateCursor(Array(value))
    guard let dayName = cursor.letters() else { return nil }
    if cursor.take(0x2C) {
        guard cursor.take(0x20) else { return nil }
        return dayName.count == 3 ? parseIMFFixdate(dayName, &cursor) : parseRFC850(dayName, &cursor, now: now)
    }
    return parseAsctime(dayName, &cursor)
}

/// Appends an IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. A year outside of 0 to 9999 becomes the nearest one.
package func appendHTTPDate(_ time: WallTime, to bytes: inout [UInt8]) {
    let parts = CivilTime(time)
    let second = parts.second
    bytes.append(contentsOf: dayNames[parts.weekday].utf8.prefix(3))
    bytes.append(", ")
    appendDigits(parts.day, count: 2, to: &bytes)
    bytes.append(0x20)
    bytes.append(contentsOf: monthNames[parts.month - 1].utf8)
    bytes.append(0x20)
    appendDigits(parts.year, count: 4, to: &bytes)
    for (separator, number) in [(0x20, second / 3600), (0x3A, second / 60 % 60), (0x3A, second % 60)] {
        bytes.append(UInt8(separator))
        appendDigits(number, count: 2, to: &bytes)
    }
    bytes.append(" GMT")
}

private let dayNames = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
private let monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/// `Sun, 06 Nov 1994 08:49:37 GMT`
private func parseIMFFixdate(_ dayName: ArraySlice<UInt8>, _ cursor: inout DateCursor) -> WallTime? {
    guard isDayName(dayName, abbreviated: true), let day = cursor.number(2), cursor.take(0x20),
        let month = cursor.month(), cursor.take(0x20), let year = cursor.number(4), cursor.take(0x20),
        let second = cursor.timeOfDay(), cursor.zoneAndEnd()
    else { return nil }
    return wallTime(year: year, month: month, day: day, second: second)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
private func parseRFC850(_ dayName: ArraySlice<UInt8>, _ cursor: inout DateCursor, now: WallTime) -> WallTime? {
    guard isDayName(dayName, abbreviated: false), let day = cursor.number(2), cursor.take(0x2D),
        let month = cursor.month(), cursor.take(0x2D), let shortYear = cursor.number(2), cursor.take(0x20),
        let second = cursor.timeOfDay(), cursor.zoneAndEnd()
    else { return nil }
    let days = Int(clamping: floorDivide(now.secondsSinceEpoch, by: 86_400))
    let thisYear = civil(fromDays: min(max(days, -700_000), 2_900_000)).year
    var year = thisYear - thisYear % 100 + 100 + shortYear
    while year > thisYear + 50 { year -= 100 }
    guard let time = wallTime(year: year, month: month, day: day, second: second) else { return nil }
    guard year == thisYear + 50, let limit = sameMoment(now, yearsLater: 50), time > limit else { return time }
    return wallTime(year: year - 100, month: month, day: day, second: second)
}

/// The time so many years after `now`. 29 February becomes 1 March.
private func sameMoment(_ now: WallTime, yearsLater years: Int) -> WallTime? {
    let days = Int(floorDivide(now.secondsSinceEpoch, by: 86_400))
    let (year, month, day) = civil(fromDays: days)
    let later = Int64(daysFromCivil(year: year + years, month: month, day: day)) * 86_400
    return WallTime(secondsSinceEpoch: later + now.secondsSinceEpoch - Int64(days) * 86_400)
}

/// `Sun Nov  6 08:49:37 1994`
private func parseAsctime(_ dayName: ArraySlice<UInt8>, _ cursor: inout DateCursor) -> WallTime? {
    guard isDayName(dayName, abbreviated: true), cursor.take(0x20), let month = cursor.month(), cursor.take(0x20)
    else { return nil }
    let digits = cursor.take(0x20) ? 1 : 2
    guard let day = cursor.number(digits), cursor.take(0x20), let second = cursor.timeOfDay(), cursor.take(0x20),
        let year = cursor.number(4), cursor.isAtEnd
    else { return nil }
    return wallTime(year: year, month: month, day: day, second: second)
}

private func isDayName(_ name: ArraySlice<UInt8>, abbreviated: Bool) -> Bool {
    dayNames.contains { equalsIgnoringCase(name, abbreviated ? $0.utf8.prefix(3) : $0.utf8.prefix(9)) }
}

private struct DateCursor {
    private var rest: ArraySlice<UInt8>
    init(_ bytes: [UInt8]) { rest = bytes[...] }
    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ byte: UInt8) -> Bool {
        guard rest.first == byte else { return false }
        rest = rest.dropFirst()
        return true
    }

    mutating func letters() -> ArraySlice<UInt8>? {
        let word = rest.prefix { isAlpha($0) }
        rest = rest.dropFirst(word.count)
        return word.isEmpty ? nil : word
    }

    /// Parses exactly so many digits.
    mutating func number(_ count: Int) -> Int? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy({ isDigit($0) }) else { return nil }
        rest = rest.dropFirst(count)
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Parses a month, 1 to 12.
    mutating func month() -> Int? {
        guard let name = letters() else { return nil }
        return monthNames.firstIndex { equalsIgnoringCase(name, $0.utf8) }.map { $0 + 1 }
    }

    /// Parses `hour ":" minute ":" second`, a leap second included. Returns seconds of the day.
    mutating func timeOfDay() -> Int? {
        guard let hour = number(2), hour < 24, take(0x3A), let minute = number(2), minute < 60, take(0x3A),
            let second = number(2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    mutating func zoneAndEnd() -> Bool {
        guard take(0x20), let zone = letters() else { return false }
        return equalsIgnoringCase(zone, "GMT") && isAtEnd
    }
}

/// Returns nil if there is no such month, or it has no such day.
///
/// - Parameter second: of the day.
package func wallTime(year: Int, month: Int, day: Int, second: Int) -> WallTime? {
    let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let length = month == 2 ? (isLeapYear ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    guard (1...12).contains(month), day >= 1, day <= length else { return nil }
    return WallTime(
        secondsSinceEpoch: Int64(daysFromCivil(year: year, month: month, day: day)) * 86_400 + Int64(second))
}

private func floorDivide(_ value: Int64, by divisor: Int64) -> Int64 {
    value / divisor - (value % divisor < 0 ? 1 : 0)
}

/// Days since 1970-01-01 in the Gregorian calendar. Years begin in March here, so that a leap day is the last of its year.
private func daysFromCivil(year: Int, month: Int, day: Int) -> Int {
    let y = month <= 2 ? year - 1 : year
    let era = Int(floorDivide(Int64(y), by: 400))
    let yearOfEra = y - era * 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
}

/// An instant in UTC as date and time. A year outside 0 to 9999 becomes the nearest one.
struct CivilTime {
    let year, month, day: Int
    /// 0 is Sunday.
    let weekday: Int
    /// The second of the day.
    let second: Int

    init(_ time: WallTime) {
        let bounded = min(max(time.secondsSinceEpoch, -62_167_219_200), 253_402_300_799)
        let days = Int(floorDivide(bounded, by: 86_400))
        second = Int(bounded - Int64(days) * 86_400)
        weekday = ((days + 4) % 7 + 7) % 7
        (year, month, day) = civil(fromDays: days)
    }
}

private func civil(fromDays days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let era = Int(floorDivide(Int64(shifted), by: 146_097))
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
}

func appendDigits(_ value: Int, count: Int, to bytes: inout [UInt8]) {
    var divisor = count == 4 ? 1000 : 10
    while divisor > 0 {
        bytes.append(0x30 + UInt8(value / divisor % 10))
        divisor /= 10
    }
}
