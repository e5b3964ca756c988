import Message

extension FieldSection {
    /// The values of all lines with this name, joined by ", " (RFC 9110 §5.3). Returns nil if there is none.
    func joined(_ name: FieldName, _ bytes: borrowing Span<UInt8>) -> [UInt8]? {
        guard present.contains(name) else { return nil }
        var result: [UInt8] = []
        var isFirst = true
        for line in lines where line.name == name {
            if !isFirst { result += [Byte.comma, 0x20] }
            isFirst = false
            result.reserveCapacity(result.count + line.valueRange.count)
            for index in line.valueRange { result.append(bytes[index]) }
        }
        return result
    }
}
