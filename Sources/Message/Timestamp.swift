/// Appends an instant in the form of RFC 3339, in UTC, up to the seconds: `2026-11-21T00:31:55`.
///
/// The caller appends what follows (a fraction, `Z`). A year outside 0 to 9999 becomes the nearest one.
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
