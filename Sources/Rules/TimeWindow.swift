import Message

/// A moment as the conditions on the time need it.
package struct RuleTime: Sendable, Equatable {
    /// Seconds since 1970-01-01 00:00 UTC.
    package var seconds: Int64
    /// What local time is ahead of UTC at this moment, in seconds.
    package var localOffset: Int64

    package init(seconds: Int64, localOffset: Int64) {
        self.seconds = seconds
        self.localOffset = localOffset
    }
}

/// A value of a `time` condition: `mon-fri 08:00-18:00`, `sat,sun`, `22:00-06:00 utc`.
///
/// The end does not belong to the window. A window that ends before it begins goes on into the next day, and its days are those on which it
/// begins. Times are local times of the proxy or of `DetailConditions.zone`, or UTC.
package struct TimeWindow: Sendable, Hashable, CustomStringConvertible {
    package let description: String
    /// Monday is bit 0.
    private let days: UInt8
    /// Minutes since midnight.
    private let start: Int
    /// At most 24:00, which is 1440.
    private let end: Int
    private let isUTC: Bool

    /// Returns nil if the text is not days, times or both, and the word `utc` or `local` behind them.
    package init?(_ text: String) {
        var words = text.lowercased().split(separator: " ").map(String.init)
        isUTC = words.last == "utc"
        if isUTC || words.last == "local" { words.removeLast() }
        guard (1...2).contains(words.count) else { return nil }
        var days: UInt8?
        var times: (start: Int, end: Int)?
        for word in words {
            if let found = TimeWindow.days(word) {
                guard days == nil, times == nil else { return nil }
                days = found
            } else {
                guard times == nil, let found = TimeWindow.times(word) else { return nil }
                times = found
            }
        }
        description = text
        self.days = days ?? 0x7F
        start = times?.start ?? 0
        end = times?.end ?? TimeWindow.minutesOfDay
    }

    package func contains(_ time: RuleTime) -> Bool {
        let seconds = time.seconds + (isUTC ? 0 : time.localOffset)
        let minutes = floorDivide(seconds, 60)
        let day = floorDivide(minutes, Int64(TimeWindow.minutesOfDay))
        let minute = Int(minutes - day * Int64(TimeWindow.minutesOfDay))
        // 1970-01-01 was a Thursday.
        let weekday = Int((day % 7 + 7 + 3) % 7)
        if start < end { return isOn(weekday) && minute >= start && minute < end }
        return (isOn(weekday) && minute >= start) || (isOn((weekday + 6) % 7) && minute < end)
    }

    private func isOn(_ weekday: Int) -> Bool { days >> UInt8(weekday) & 1 == 1 }

    private static let minutesOfDay = 1440
    private static let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

    /// `mon-fri`, `sat,sun`, `fri-mon`.
    private static func days(_ text: String) -> UInt8? {
        var days: UInt8 = 0
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let ends = part.split(separator: "-", omittingEmptySubsequences: false)
            let numbers = ends.compactMap { name in names.firstIndex { $0 == name } }
            guard numbers.count == ends.count, (1...2).contains(ends.count) else { return nil }
            var day = numbers[0]
            while true {
                days |= 1 << UInt8(day)
                if day == numbers[numbers.count - 1] { break }
                day = (day + 1) % 7
            }
        }
        return days
    }

    /// `08:00-18:00`.
    private static func times(_ text: String) -> (start: Int, end: Int)? {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).compactMap(minute)
        guard ends.count == 2, ends[0] != ends[1], ends[0] < minutesOfDay else { return nil }
        return (ends[0], ends[1])
    }

    private static func minute(_ text: Substring) -> Int? {
        let bytes = Array(text.utf8)
        guard bytes.count == 5, bytes[2] == UInt8(ascii: ":"),
            [0, 1, 3, 4].allSatisfy({ (0x30...0x39).contains(bytes[$0]) })
        else { return nil }
        let hour = Int(bytes[0] - 0x30) * 10 + Int(bytes[1] - 0x30)
        let minute = Int(bytes[3] - 0x30) * 10 + Int(bytes[4] - 0x30)
        return minute < 60 && (hour < 24 || (hour == 24 && minute == 0)) ? hour * 60 + minute : nil
    }
}
