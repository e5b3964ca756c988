/// Writes `2026-01-31T12:00:00Z` (RFC 3339 §5.6), in the proleptic Gregorian calendar.
package func rfc3339(secondsSinceEpoch: Int64) -> String {
    let (days, second) = secondsSinceEpoch.quotientFlooring(by: 86_400)
    let (year, month, day) = civilDate(daysSinceEpoch: days)
    func padded(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
    let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
    return "\(date)T\(padded(second / 3600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2))Z"
}

/// Counts years from March, so that a leap day is the last day of its year, and one linear rule gives the months.
private func civilDate(daysSinceEpoch: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let daysPerEra: Int64 = 146_097  // 400 years
    let (era, dayOfEra) = (daysSinceEpoch + 719_468).quotientFlooring(by: daysPerEra)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = era * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
}

extension Int64 {
    fileprivate func quotientFlooring(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
