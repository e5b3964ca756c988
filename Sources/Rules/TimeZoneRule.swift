/// A rule for the offsets of every year: a TZ string such as `CET-1CEST,M3.5.0,M10.5.0/3` (POSIX.1-2024 §8.3, with the hours of RFC 8536 §3.3.1).
struct TimeZoneRule: Sendable, Equatable {
    private var standard: Int64
    private var daylight: Daylight?

    private struct Daylight: Sendable, Equatable {
        var offset: Int64
        var start: Change
        var end: Change
    }

    /// A day of the year, and the local time of that day.
    private struct Change: Sendable, Equatable {
        enum Day: Sendable, Equatable {
            /// 1 to 365; 29 February does not count.
            case julian(Int64)
            /// From 0; 29 February counts.
            case ordinal(Int64)
            /// Week 5 is the last one; day 0 is Sunday.
            case month(Int64, week: Int64, day: Int64)
        }
        var day: Day
        /// In seconds from midnight: from -167 to 167 hours.
        var time: Int64
    }

    /// Returns nil if the text is no such string.
    init?(_ text: ArraySlice<UInt8>) {
        var reader = RuleReader(text)
        guard reader.name(), let standard = reader.offset() else { return nil }
        self.standard = standard
        if reader.isAtEnd { return }
        guard reader.name() else { return nil }
        var offset = standard + 3600
        if !reader.isAt(",") {
            guard let written = reader.offset() else { return nil }
            offset = written
        }
        guard reader.take(","), let start = TimeZoneRule.change(&reader), reader.take(","),
            let end = TimeZoneRule.change(&reader), reader.isAtEnd
        else { return nil }
        daylight = Daylight(offset: offset, start: start, end: end)
    }

    func offset(at seconds: Int64) -> Int64 {
        guard let daylight else { return standard }
        // Far enough for every clock, and nothing overflows.
        let seconds = min(max(seconds, -(1 << 45)), 1 << 45)
        let year = yearOf(seconds + standard)
        let start = second(of: daylight.start, in: year) - standard
        let end = second(of: daylight.end, in: year) - daylight.offset
        let isDaylight =
            start < end ? start <= seconds && seconds < end : !(end <= seconds && seconds < start)
        return isDaylight ? daylight.offset : standard
    }

    /// In seconds of local time.
    private func second(of change: Change, in year: Int64) -> Int64 {
        let first = daysBefore(year: year)
        let day: Int64
        switch change.day {
        case .ordinal(let number): day = first + number
        case .julian(let number): day = first + number - 1 + (isLeap(year) && number >= 60 ? 1 : 0)
        case .month(let month, let week, let weekday):
            let begin = first + daysBefore(month: month, in: year)
            // 1970-01-01 was a Thursday.
            let firstWeekday = ((begin + 4) % 7 + 7) % 7
            var found = begin + (weekday - firstWeekday + 7) % 7 + (week - 1) * 7
            let next = month == 12 ? daysBefore(year: year + 1) : first + daysBefore(month: month + 1, in: year)
            if found >= next { found -= 7 }
            day = found
        }
        return day * 86_400 + change.time
    }

    private static func change(_ reader: inout RuleReader) -> Change? {
        let day: Change.Day
        if reader.take("M") {
            guard let month = reader.number(1...12), reader.take("."), let week = reader.number(1...5),
                reader.take("."),
                let weekday = reader.number(0...6)
            else { return nil }
            day = .month(month, week: week, day: weekday)
        } else if reader.take("J") {
            guard let number = reader.number(1...365) else { return nil }
            day = .julian(number)
        } else {
            guard let number = reader.number(0...365) else { return nil }
            day = .ordinal(number)
        }
        guard reader.take("/") else { return Change(day: day, time: 2 * 3600) }
        return reader.time(hoursMax: 167).map { Change(day: day, time: $0) }
    }
}

private struct RuleReader {
    private var rest: ArraySlice<UInt8>

    init(_ text: ArraySlice<UInt8>) { rest = text }

    var isAtEnd: Bool { rest.isEmpty }

    func isAt(_ character: Unicode.Scalar) -> Bool { rest.first == UInt8(ascii: character) }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard isAt(character) else { return false }
        rest = rest.dropFirst()
        return true
    }

    /// An abbreviation: three letters or more, or anything of letters, digits and signs between `<` and `>`.
    mutating func name() -> Bool {
        if take("<") {
            guard let end = rest.firstIndex(of: UInt8(ascii: ">")), end > rest.startIndex else { return false }
            rest = rest[(end + 1)...]
            return true
        }
        let letters = rest.prefix { (0x41...0x5A).contains($0 & 0xDF) }
        rest = rest.dropFirst(letters.count)
        return letters.count >= 3
    }

    /// What local time is ahead of UTC. The text says what it is behind.
    mutating func offset() -> Int64? { time(hoursMax: 24).map { -$0 } }

    /// `[+-]hh[:mm[:ss]]`, in seconds.
    mutating func time(hoursMax: Int64) -> Int64? {
        let isNegative = take("-")
        if !isNegative { _ = take("+") }
        guard let hours = number(0...hoursMax) else { return nil }
        var seconds = hours * 3600
        for unit: Int64 in [60, 1] where take(":") {
            guard let part = number(0...59) else { return nil }
            seconds += part * unit
        }
        return isNegative ? -seconds : seconds
    }

    mutating func number(_ range: ClosedRange<Int64>) -> Int64? {
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        guard (1...3).contains(digits.count) else { return nil }
        rest = rest.dropFirst(digits.count)
        let value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
        return range.contains(value) ? value : nil
    }
}

// MARK: the calendar

private func isLeap(_ year: Int64) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

/// From 1970-01-01 to the first day of the year.
private func daysBefore(year: Int64) -> Int64 {
    let last = year - 1
    return last * 365 + floorDivide(last, 4) - floorDivide(last, 100) + floorDivide(last, 400) - 719_162
}

private func daysBefore(month: Int64, in year: Int64) -> Int64 {
    let days: [Int64] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334]
    return days[Int(month - 1)] + (month > 2 && isLeap(year) ? 1 : 0)
}

private func yearOf(_ seconds: Int64) -> Int64 {
    let day = floorDivide(seconds, 86_400)
    var year = 1970 + floorDivide(day * 400, 146_097)
    while daysBefore(year: year + 1) <= day { year += 1 }
    while daysBefore(year: year) > day { year -= 1 }
    return year
}

func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
    let quotient = value / divisor
    return value % divisor < 0 ? quotient - 1 : quotient
}
