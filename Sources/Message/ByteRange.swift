/// One range of a Range field in bytes (RFC 9110 §14.1.2). No number is greater than `octetCountMax`.
package enum ByteRangeSpec: Sendable, Equatable {
    /// `first-` if `through` is nil, otherwise `first-last`, inclusive.
    case from(UInt64, through: UInt64?)
    /// The last so many bytes: `-count`.
    case suffix(UInt64)

    /// The bytes of a representation of that length that the range selects. Nil if it is unsatisfiable (§14.1.2). Empty for a suffix of an empty representation: such a suffix
    /// is satisfiable unless it is zero itself.
    package func resolve(against length: UInt64) -> Range<UInt64>? {
        switch self {
        case .from(let first, let through):
            guard first < length else { return nil }
            guard let through, through < length - 1 else { return first..<length }
            return first..<(through + 1)
        case .suffix(let count):
            guard count > 0 else { return nil }
            return (length - min(count, length))..<length
        }
    }
}

/// The ranges of a Range field, in order. Returns nil if the field must be ignored: it has another unit, invalid syntax, no range, or
/// more than `countMax` (RFC 9110 §14.2 lets a server ignore a field that looks like an attack).
package func parseByteRanges(_ value: some Collection<UInt8>, countMax: Int = 32) -> [ByteRangeSpec]? {
    let bytes = Array(value)
    guard let equals = bytes.firstIndex(of: 0x3D), equalsIgnoringCase(bytes[..<equals], "bytes") else { return nil }
    var ranges: [ByteRangeSpec] = []
    var isValid = true
    forEachListElement(bytes[(equals + 1)...]) { element in
        guard isValid, ranges.count < countMax, let range = parseByteRange(element) else {
            isValid = false
            return
        }
        ranges.append(range)
    }
    return isValid && !ranges.isEmpty ? ranges : nil
}

private func parseByteRange(_ element: ArraySlice<UInt8>) -> ByteRangeSpec? {
    guard let dash = element.firstIndex(of: 0x2D) else { return nil }
    let after = element[(dash + 1)...]
    if dash == element.startIndex { return parseOctetPosition(after).map { .suffix($0) } }
    guard let first = parseOctetPosition(element[..<dash]) else { return nil }
    if after.isEmpty { return .from(first, through: nil) }
    guard let last = parseOctetPosition(after), last >= first else { return nil }
    return .from(first, through: last)
}
