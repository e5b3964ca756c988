package import Message

/// The age a response had when it arrived here: the larger of what its `Date` and its `Age` say (RFC 9111 §4.2.3).
///
/// - Parameters:
///   - age: value of the `Age` field, zero where it has none.
///   - requestTime: when the request went out: what the response aged since is counted from here, not from its arrival.
package func correctedInitialAge(
    age: Seconds, date: WallTime, requestTime: WallTime, responseTime: WallTime
) -> Seconds {
    let apparentAge = max(responseTime - date, .zero)
    let responseDelay = max(responseTime - requestTime, .zero)
    return max(apparentAge, age + responseDelay)
}

/// That and the time it has been here. A clock that was set back does not make it younger.
package func currentAge(correctedInitialAge: Seconds, responseTime: WallTime, now: WallTime) -> Seconds {
    correctedInitialAge + max(now - responseTime, .zero)
}

/// The `Age` field (§5.1): of several members or lines the first counts; what is not delta-seconds is no age.
package func ageField(_ fields: Fields) -> Seconds {
    guard let line = fields.lines.first(where: { $0.name == .age }) else { return .zero }
    let value = fields.value(of: line)
    let member = trimOWS(value.prefix { $0 != Byte.comma })
    return parseDeltaSeconds(fields.bytes.span, in: member.startIndex..<member.endIndex) ?? .zero
}
