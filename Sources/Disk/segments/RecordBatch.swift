import Glibc

/// Records that are written in one call, one behind the other. Large bodies stay where they are in memory; small ones are copied.
///
/// A batch is made for one place of one file: head parts contain the place, and their checksums cover it. Its records are valid
/// nowhere else.
///
///     var batch = RecordBatch(file.identity, at: file.end)
///     let place = try batch.add(object)
///     try file.append(batch)
package struct RecordBatch: Sendable {
    package private(set) var identity: SegmentIdentity
    /// Where the first record will be in the file.
    package private(set) var start: UInt64
    /// The length of all records, padding included.
    package private(set) var byteCount = 0

    /// Head parts, padding and small bodies. Large bodies are not in here.
    private var bytes: [UInt8] = []
    private var pieces: [Piece] = []

    private enum Piece: Sendable {
        case bytes(Range<Int>)
        case body(any BodyBytes)
    }

    /// A body up to this length is copied: another vector would cost the kernel about as much.
    private static let copiedBytesMax = 4096

    package init(_ identity: SegmentIdentity, at start: UInt64) {
        precondition(start % 16 == 0, "a record begins at a multiple of 16")
        self.identity = identity
        self.start = start
    }

    /// Empties the batch for the next records and keeps its memory: allocating a megabyte costs more than filling it.
    package mutating func restart(_ identity: SegmentIdentity, at start: UInt64) {
        precondition(start % 16 == 0, "a record begins at a multiple of 16")
        self.identity = identity
        self.start = start
        byteCount = 0
        bytes.removeAll(keepingCapacity: true)
        pieces.removeAll(keepingCapacity: true)
    }

    package var isEmpty: Bool { byteCount == 0 }
    /// Where the next record will be.
    package var end: UInt64 { start + UInt64(byteCount) }

    /// Adds an object and computes its checksums. Returns where it will be. If it throws, the batch is unchanged.
    package mutating func add(_ object: PackedObject) throws(RecordError) -> Place {
        precondition(end % 16 == 0, "a record begins at a multiple of 16")
        let from = bytes.count
        let length = object.body.byteCount
        try RecordCodec.append(
            packed: object.id, key: object.key, attributes: object.attributes, head: object.head,
            checksums: object.body.blockChecksums(), bodyLength: length, in: identity, at: end, to: &bytes)
        let place = place(headLength: bytes.count - from, bodyLength: length)
        if length <= RecordBatch.copiedBytesMax {
            unsafe object.body.forEachVector(from: 0, length: length) { vector in
                unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(start: vector.iov_base, count: vector.iov_len))
            }
            finish(place, from: from)
        } else {
            note(from..<bytes.count)
            // The checksums are computed now and the bytes are written later: the body must not change in between.
            pieces.append(.body(object.body))
            finish(place, from: bytes.count)
        }
        return place
    }

    /// Adds an object that was read from the disk. Its checksums are kept as they are, so that damage on the way still shows.
    /// - Parameter head: the head as read, or with a renewed one in its place.
    package mutating func add(copyOf head: StoredHead, body: [UInt8]) throws(RecordError) -> Place {
        precondition(
            head.place.kind == .packed && head.place.bodyLength == UInt64(body.count), "head and body belong together")
        let from = bytes.count
        try RecordCodec.append(
            packed: head.id, key: head.key, attributes: head.attributes, head: head.head, checksums: head.checksums,
            bodyLength: body.count, in: identity, at: end, to: &bytes)
        let place = place(headLength: bytes.count - from, bodyLength: body.count)
        bytes += body
        finish(place, from: from)
        return place
    }

    /// Adds as many drop records as the list needs.
    package mutating func add(drops: [DroppedObject], storedAt: Int64) {
        var left = drops[...]
        while !left.isEmpty {
            let from = bytes.count
            do throws(RecordError) {
                try RecordCodec.append(
                    drops: left.prefix(RecordCodec.dropsMax), storedAt: storedAt, in: identity, at: end, to: &bytes)
            } catch { preconditionFailure("so many drops fit into one record") }
            left = left.dropFirst(RecordCodec.dropsMax)
            note(from..<bytes.count)
            byteCount += bytes.count - from
        }
    }

    /// Calls `body` with vectors for all records. They are valid during the call.
    func withVectors<Failure: Error>(
        _ body: (UnsafeMutableBufferPointer<iovec>) throws(Failure) -> Void
    ) throws(Failure) {
        let outcome = unsafe bytes.withUnsafeBytes { bytes in
            var vectors = unsafe [iovec]()
            for piece in pieces {
                switch piece {
                case .bytes(let range):
                    let start = unsafe UnsafeMutableRawPointer(mutating: bytes.baseAddress! + range.lowerBound)
                    unsafe vectors.append(iovec(iov_base: start, iov_len: range.count))
                case .body(let body):
                    unsafe body.forEachVector(from: 0, length: body.byteCount) { unsafe vectors.append($0) }
                }
            }
            precondition(
                unsafe vectors.reduce(0) { unsafe $0 + $1.iov_len } == byteCount, "the vectors cover the records")
            return unsafe vectors.withUnsafeMutableBufferPointer { vectors in
                Result { () throws(Failure) in unsafe try body(vectors) }
            }
        }
        try outcome.get()
    }

    private func place(headLength: Int, bodyLength: Int) -> Place {
        Place(
            kind: .packed, segment: identity.number, offset: end, headLength: UInt32(headLength),
            bodyLength: UInt64(bodyLength))
    }

    /// Adds the padding behind a body.
    private mutating func finish(_ place: Place, from: Int) {
        precondition(place.recordLength % 16 == 0, "records end at a multiple of 16")
        precondition(place.offset == end, "records stand one behind the other")
        bytes.append(zeros: Int(place.recordLength - UInt64(place.headLength) - place.bodyLength))
        note(from..<bytes.count)
        byteCount += Int(place.recordLength)
    }

    private mutating func note(_ range: Range<Int>) {
        precondition(range.upperBound == bytes.count, "a piece ends with the bytes so far")
        if case .bytes(let last) = pieces.last, last.upperBound == range.lowerBound {
            pieces[pieces.count - 1] = .bytes(last.lowerBound..<range.upperBound)
        } else if !range.isEmpty {
            pieces.append(.bytes(range))
        }
    }
}
