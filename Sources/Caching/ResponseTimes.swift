import Message

// The points in time that a response's fields name, where they are valid.

/// `Date`, or the second of arrival where there is none or none that is valid (RFC 9110 §6.6.1).
func dateField(_ fields: Fields, received: WallTime) -> WallTime {
    fields.first(.date).flatMap { parseHTTPDate($0, now: received) } ?? received.wholeSecond
}

/// `Last-Modified` where it is a valid date (RFC 9110 §8.8.2).
func lastModifiedField(_ fields: Fields, received: WallTime) -> (time: WallTime, bytes: ArraySlice<UInt8>)? {
    guard let bytes = fields.first(.lastModified), let time = parseHTTPDate(bytes, now: received) else { return nil }
    return (time, bytes)
}

/// `Expires` − `Date`; nil where there is no `Expires`. An invalid date, "0" above all, is in the past (RFC 9111 §5.3);
/// of several lines the earliest counts (§4.2.1).
func expiresMinusDate(_ fields: Fields, date: WallTime, received: WallTime) -> Seconds? {
    fields.all(.expires).map { value in
        guard let expires = parseHTTPDate(value, now: received) else { return .zero }
        return max(expires - date, .zero)
    }.min()
}
