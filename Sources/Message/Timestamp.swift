/// Appends an instant as RFC 3339 writes it, in UTC and to the second: `2026-11-21T00:31:55`.
///
/// What follows (a fraction, `Z`) is the caller's. A year outside of 0 to 9999 becomes the nearest one.
package func appendTimestamp(_ time: WallTime, to bytes: inout [UInt8]) {
    let parts = CivilTime(time)
    appendDigits(parts.year, count: 4, to: &bytes)
    bytes.append(0x2D)
    appendDigits(parts.month, count: 2, to: &bytes)
    bytes.append(0x2D)
    appendDigits(parts.day, count: 2, to: &bytes)
    bytes.append(0x54)
    appendDigits(parts.second / 3600, count: 2, to: &bytes)
    bytes.append(0x3A)
    appendDigits(parts.second / 60 % 60, count: 2, to: &bytes)
    bytes.append(0x3A)
    appendDigits(parts.second % 60, count: 2, to: &bytes)
}
