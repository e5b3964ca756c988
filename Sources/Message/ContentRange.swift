/// The value of Content-Range (RFC 9110 §14.4): the part of a representation in a 206, or the length of the representation in a 416.
package struct ContentRange: Sendable, Equatable {
    /// The bytes of the part. Nil for the form `bytes */length`.
    package var range: Range<UInt64>?
    /// The length of the whole representation. Nil if the sender wrote `*`.
    package var completeLength: UInt64?

    package init(range: Range<UInt64>?, completeLength: UInt64?) {
        self.range = range
        self.completeLength = completeLength
    }

    /// Returns nil if the value is not a valid Content-Range in bytes, for example if the last byte is before the first, or not below the
    /// complete length, or if a length would be greater than `octetCountMax`.
    package init?(parsing value: some Collection<UInt8>) {
        let bytes = Array(value)
        guard bytes.count > 6, equalsIgnoringCase(bytes[..<5], "bytes"), bytes[5] == 0x20,
            let slash = bytes.firstIndex(of: 0x2F)
        else { return nil }
        let lengthText = bytes[(slash + 1)...]
        completeLength = parseOctetCount(lengthText)
        guard completeLength != nil || lengthText.elementsEqual([0x2A]) else { return nil }
        if bytes[6..<slash].elementsEqual([0x2A]) {
            range = nil
            if completeLength == nil { return nil }
            return
        }
        guard let dash = bytes[6..<slash].firstIndex(of: 0x2D), let first = parseOctetCount(bytes[6..<dash]),
            let last = parseOctetCount(bytes[(dash + 1)..<slash]), first <= last, last < octetCountMax
        else { return nil }
        if let completeLength, last >= completeLength { return nil }
        range = first..<(last + 1)
    }

    /// The value in the form `bytes 0-99/1234`, `bytes 0-99/*` or `bytes */1234`.
    package var wire: [UInt8] {
        var result = bytes(of: "bytes ")
        if let range, !range.isEmpty {
            appendDecimal(range.lowerBound, to: &result)
            result.append(0x2D)
            appendDecimal(range.upperBound - 1, to: &result)
        } else {
            result.append(0x2A)
        }
        result.append(0x2F)
        if let completeLength { appendDecimal(completeLength, to: &result) } else { result.append(0x2A) }
        return result
    }
}
