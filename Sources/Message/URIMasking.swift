/// Keeps secrets in URIs out of logs and pages: `***` stands in place of the values of parameters whose names are those of secrets (`SecretName`),
/// in the query and behind `;` in the path.
package enum URIMasking {
    package static func masked(_ uri: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(uri.count)
        append(uri.span) { result.append($0) }
        return result
    }

    /// Calls `put` with each byte of the URI, and with the bytes of `***` in place of each secret.
    ///
    /// - Parameter uri: it may be a key of the cache, which has more behind `#`.
    package static func append(_ uri: borrowing Span<UInt8>, _ put: (UInt8) -> Void) {
        var isInQuery = false
        var index = 0
        while index < uri.count {
            let byte = uri[index]
            put(byte)
            index += 1
            if byte == 0x3F { isInQuery = true }
            guard byte == 0x3F || byte == 0x3B || (byte == 0x26 && isInQuery) else { continue }
            index = appendParameter(from: index, of: uri, isInQuery, put)
        }
    }

    /// - Returns: where the parameter ends.
    private static func appendParameter(
        from start: Int, of uri: borrowing Span<UInt8>, _ isInQuery: Bool, _ put: (UInt8) -> Void
    ) -> Int {
        var (end, equals) = (start, start)
        while end < uri.count, !endsParameter(uri[end], isInQuery) { end += 1 }
        while equals < end, uri[equals] != 0x3D { equals += 1 }
        let isSecret = equals < end && SecretName.kind(uri, start..<equals) != nil
        for index in start..<(isSecret ? equals + 1 : end) { put(uri[index]) }
        if isSecret { for _ in 0..<3 { put(0x2A) } }
        return end
    }

    private static func endsParameter(_ byte: UInt8, _ isInQuery: Bool) -> Bool {
        byte == 0x3B || byte == 0x23 || (isInQuery ? byte == 0x26 : byte == 0x2F || byte == 0x3F)
    }
}
