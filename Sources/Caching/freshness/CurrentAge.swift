package import Message

/// The age that a response had when it arrived: the greater of the ages that follow from `Date` and from `Age` (RFC 9111 §4.2.3).
///
/// Our clock has fractions of a second, but `Date` and `Age` are whole seconds, rounded down. If the age by `Date` is greater by less than
/// one second, that means nothing, and the age by `Age` counts. Otherwise a response that is passed on at once could leave one second
/// older than it arrived, whenever our clock reaches the next second in between.
///
/// - Parameters:
///   - age: the value of the `Age` field, or zero.
///   - requestTime: when the request was sent. The response has aged since then, not only since its arrival.
package func correctedInitialAge(
    age: Seconds, date: WallTime, requestTime: WallTime, responseTime: WallTime
) -> TimeSpan {
    let apparentAge = max(responseTime.span(since: date), .zero)
    let correctedAgeValue = TimeSpan(age) + max(responseTime.span(since: requestTime), .zero)
    return apparentAge - correctedAgeValue >= TimeSpan(Seconds(1)) ? apparentAge : correctedAgeValue
}

/// The age of a response now, rounded down to what `Age` says. It never becomes younger, even if the clock is set back.
///
/// A response that arrived in the future arrived before the clock was set back, by nobody knows how much: it is older than any lifetime, so that it is
/// validated. Within `WallTime.tolerance` nothing was set back.
///
/// A lifetime is whole seconds, so it exceeds the exact age if and only if it exceeds the age rounded down.
package func currentAge(correctedInitialAge: TimeSpan, responseTime: WallTime, now: WallTime) -> Seconds {
    let residentTime = now.span(since: responseTime)
    if residentTime < .zero - TimeSpan(WallTime.tolerance) { return max(.deltaMax, correctedInitialAge.seconds) }
    return (correctedInitialAge + max(residentTime, .zero)).seconds
}

/// The value of the `Age` field (§5.1). The first of several members or lines counts. A value that is not delta-seconds counts as zero.
package func ageField(_ fields: Fields) -> Seconds {
    guard let line = fields.lines.first(where: { $0.name == .age }) else { return .zero }
    let value = fields.value(of: line)
    let member = trimOWS(value.prefix { $0 != Byte.comma })
    return parseDeltaSeconds(fields.bytes.span, in: member.startIndex..<member.endIndex) ?? .zero
}
