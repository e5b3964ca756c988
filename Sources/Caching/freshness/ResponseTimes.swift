import Message

// The times in a response's fields, if they are valid.

/// The value of `Date`. If there is none, or none that is valid, the second of arrival (RFC 9110 §6.6.1).
func dateField(_ fields: Fields, received: WallTime) -> WallTime {
    fields.first(.date).flatMap { parseHTTPDate($0, now: received) } ?? received.wholeSecond
}

/// The value of `Last-Modified`. Returns nil if there is none, or it is not a valid date (RFC 9110 §8.8.2).
func lastModifiedField(_ fields: Fields, received: WallTime) -> (time: WallTime, bytes: ArraySlice<UInt8>)? {
    guard let bytes = fields.first(.lastModified), let time = parseHTTPDate(bytes, now: received) else { return nil }
    return (time, bytes)
}

/// `Expires` − `Date`. Returns nil if there is no `Expires`. An invalid date, especially "0", is in the past (RFC 9111 §5.3). If there are
/// several lines, the earliest counts (§4.2.1).
func expiresMinusDate(_ fields: Fields, date: WallTime, received: WallTime) -> Seconds? {
    fields.all(.expires).map { value in
        guard let expires = parseHTTPDate(value, now: received) else { return .zero }
        return max(expires - date, .zero)
    }.min()
}
