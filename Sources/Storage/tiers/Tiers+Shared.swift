// Responses that several proxies share.
extension Tiers {
    /// Brings a whole response into memory that another proxy has stored. May be called on any thread; does not block.
    ///
    /// - Parameters:
    ///   - seconds: by which the clock here is ahead of the one that dated the response.
    ///   - parts: the body, in pieces.
    ///   - invalidations: what `invalidations` was before the response was looked for.
    /// - Returns: false if memory has no room or has the response already, if something was invalidated meanwhile, which may have been this
    ///   response, or if this version cannot decode the head.
    package func adopt(
        shared form: ResponseForm, movedBy seconds: Int64, _ key: StorageKey, _ keyBytes: [UInt8],
        body parts: [ArraySlice<UInt8>],
        since invalidations: Int
    ) -> Bool {
        let length = parts.reduce(0) { $0 + $1.count }
        guard let body = memory.makeBody(expectedLength: length) else { return false }
        for part in parts {
            guard case .appended = unsafe part.withUnsafeBytes({ unsafe body.append($0) }) else {
                body.fail()
                return false
            }
        }
        guard body.finish() else { return false }
        let place = StoredPlace(form: .whole, bodyBytes: length, bytes: length, location: .init(0, 0))
        let copy = StoredCopy(
            id: StoredID(rawValue: 0), place: place, keyBytes: keyBytes, attributes: form.attributes, head: form.head,
            checksums: [])
        guard let format, let dated = format.record(key, copy, body) else { return false }
        let record = seconds == 0 ? dated : format.moved(dated, seconds)
        // The condition is evaluated under the lock of the shard: who invalidates the response later finds it in memory.
        return memory.shelves.adopt(record) { invalidations == self.invalidations }
    }

    /// The form of a response that is to be shared. Nil if it is not whole in memory any more: it was evicted, replaced or removed.
    package func form(ofShared record: StoredRecord) -> ResponseForm? {
        guard record.body.state == .complete, record.body.isResident,
            variants(of: record).contains(where: { $0 === record })
        else { return nil }
        return format?.form(record)
    }
}

extension Body {
    /// The bytes of a whole body in memory.
    package var copyOfBytes: [UInt8] {
        precondition(isComplete && isResident, "the body is whole in memory")
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        while bytes.count < length {
            let start = bytes.count
            let piece = layout.page(at: start)
            guard let page = unsafe page(piece.index) else { preconditionFailure("a resident body has its pages") }
            let count = min(piece.end, length) - start
            unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(start: page + (start - piece.start), count: count))
        }
        return bytes
    }
}
