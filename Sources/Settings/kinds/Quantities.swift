/// Sizes and durations as people write them: a whole number and a unit.

/// Parses `256MiB`, `10GiB`, `64kB`, or plain bytes. Binary units are powers of 1024, decimal units powers of 1000. Case is ignored.
/// Returns nil if the text is not a size, or more than 2^63 bytes.
package func parseSize(_ text: String) -> UInt64? {
    guard let (number, unit) = splitQuantity(text), let factor = sizeUnits[unit.lowercased()] else { return nil }
    let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow || bytes > 1 << 63 ? nil : bytes
}

/// Renders the size in its shortest exact spelling.
package func renderSize(_ bytes: UInt64) -> String {
    guard bytes > 0 else { return "0" }
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] where bytes.trailingZeroBitCount >= shift
    {
        return "\(bytes >> UInt64(shift))\(unit)"
    }
    return "\(bytes)"
}

/// Parses `500ms`, `30s`, `5m`, `1h`, `2d`. A number needs a unit, except for `0`. Returns nil if the text is not a duration, or more than
/// about 290 years.
package func parseDuration(_ text: String) -> Duration? {
    guard let (number, unit) = splitQuantity(text) else { return nil }
    if unit.isEmpty { return number == 0 ? .zero : nil }
    guard let factor = durationUnits[unit] else { return nil }
    let (milliseconds, overflow) = number.multipliedReportingOverflow(by: factor)
    guard !overflow, let count = Int64(exactly: milliseconds), count <= 1 << 53 else { return nil }
    return .milliseconds(count)
}

/// Renders the duration in its shortest exact spelling, down to milliseconds.
package func renderDuration(_ duration: Duration) -> String {
    let (seconds, attoseconds) = duration.components
    let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000
    guard milliseconds != 0 else { return "0s" }
    for (unit, factor) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)] as [(String, Int64)]
    where milliseconds % factor == 0 { return "\(milliseconds / factor)\(unit)" }
    return "\(milliseconds)ms"
}

private let sizeUnits: [String: UInt64] = [
    "": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
    "kb": 1000, "mb": 1_000_000, "gb": 1_000_000_000, "tb": 1_000_000_000_000,
]

private let durationUnits: [String: UInt64] = ["ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]

/// Splits a text into digits and the unit behind them. One space may be in between.
private func splitQuantity(_ text: String) -> (number: UInt64, unit: String)? {
    let digits = text.utf8.prefix { (0x30...0x39).contains($0) }
    guard !digits.isEmpty, let number = UInt64(String(decoding: digits, as: UTF8.self)) else { return nil }
    let rest = text.utf8.dropFirst(digits.count)
    let unit = rest.first == 0x20 ? rest.dropFirst() : rest
    return (number, String(decoding: unit, as: UTF8.self))
}

/// Parses a decimal number without a sign. Returns nil if the text is not such a number, or not within `bounds`.
func parseCount(_ text: String, in bounds: ClosedRange<Int>) -> Int? {
    guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text) else { return nil }
    return bounds.contains(number) ? number : nil
}

/// Parses `10MiB/s`, `500kB/s`, `100Mbit/s`, in bytes per second. A unit is needed. Case is ignored.
/// Returns nil if the text is not a rate.
package func parseRate(_ text: String) -> UInt64? {
    let lower = text.lowercased()
    guard lower.hasSuffix("/s") else { return nil }
    let quantity = String(lower.dropLast(2))
    guard let (number, unit) = splitQuantity(quantity), !unit.isEmpty else { return nil }
    guard let bits = bitUnits[unit] else { return parseSize(quantity) }
    let (count, overflow) = number.multipliedReportingOverflow(by: bits)
    return overflow ? nil : count / 8
}

/// Renders the rate in its shortest exact spelling.
package func renderRate(_ bytesPerSecond: UInt64) -> String {
    let size = renderSize(bytesPerSecond)
    let bytes = size.last?.isLetter == true ? size : size + "B"
    let (bits, overflow) = bytesPerSecond.multipliedReportingOverflow(by: 8)
    for (unit, factor) in [("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1000)] as [(String, UInt64)]
    where !overflow && bits > 0 && bits % factor == 0 {
        let text = "\(bits / factor)\(unit)"
        return (text.count < bytes.count + 2 ? text : bytes) + "/s"
    }
    return bytes + "/s"
}

private let bitUnits: [String: UInt64] = [
    "bit": 1, "kbit": 1000, "mbit": 1_000_000, "gbit": 1_000_000_000,
]
