package import Message

/// The age a response had when it arrived here: the larger of what its `Date` and its `Age` say (RFC 9111 §4.2.3).
///
/// Our own clock has fractions of a second; `Date` and `Age` are whole seconds, rounded down by whoever wrote them. So where what
/// `Date` says is larger by less than a second, that says nothing, and what `Age` says holds. Otherwise a response that is passed on at
/// once would leave a second older than it came, whenever our second turned in between.
///
/// - Parameters:
///   - age: value of the `Age` field, zero where it has none.
///   - requestTime: when the request was sent: the response has aged since then, not only since its arrival.
package func correctedInitialAge(
    age: Seconds, date: WallTime, requestTime: WallTime, responseTime: WallTime
) -> TimeSpan {
    let apparentAge = max(responseTime.span(since: date), .zero)
    let correctedAgeValue = TimeSpan(age) + max(responseTime.span(since: requestTime), .zero)
    return apparentAge - correctedAgeValue >= TimeSpan(Seconds(1)) ? apparentAge : correctedAgeValue
}

/// That and the time it has been here, rounded down, as `Age` says it. A clock that was set back does not make it younger.
///
/// Since a lifetime is whole seconds, it is longer than the age exactly where it is longer than the age rounded down.
package func currentAge(correctedInitialAge: TimeSpan, responseTime: WallTime, now: WallTime) -> Seconds {
    (correctedInitialAge + max(now.span(since: responseTime), .zero)).seconds
}

/// The `Age` field (§5.1): of several members or lines the first counts; what is not delta-seconds is no age.
package func ageField(_ fields: Fields) -> Seconds {
    guard let line = fields.lines.first(where: { $0.name == .age }) else { return .zero }
    let value = fields.value(of: line)
    let member = trimOWS(value.prefix { $0 != Byte.comma })
    return parseDeltaSeconds(fields.bytes.span, in: member.startIndex..<member.endIndex) ?? .zero
}
