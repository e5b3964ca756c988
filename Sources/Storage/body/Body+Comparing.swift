/// Complete bodies, read from the first byte to the last.
extension Body {
    /// Calls `take` with all bytes in order. Blocks where they are on the back store.
    /// - Returns: false if some of the bytes have been lost. Those before them were taken.
    package func readAll(_ take: (UnsafeRawBufferPointer) -> Void) -> Bool {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 4 * Body.blockBytes, alignment: 4096)
        defer { unsafe room.deallocate() }
        let length = length
        var offset = 0
        while offset < length {
            guard case .bytes(let piece) = unsafe piece(from: offset, limit: length - offset, room: room, waits: true)
            else { return false }
            unsafe take(piece)
            offset += piece.count
        }
        return true
    }

    /// The longest bodies that `hasBytes` compares: a thread that has other things to do can.
    package static let comparedBytesMax = 4 << 20

    /// Whether the content is that of another body. Does not block. False also where that cannot be found out: a body is not complete, is longer
    /// than `comparedBytesMax`, or has to be read from the back store.
    package func hasBytes(of other: Body) -> Bool {
        guard isComplete, other.isComplete, length == other.length, length <= Body.comparedBytesMax else {
            return false
        }
        if self === other { return true }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * Body.blockBytes, alignment: 4096)
        defer { unsafe room.deallocate() }
        let left = unsafe UnsafeMutableRawBufferPointer(rebasing: room[..<Body.blockBytes])
        let right = unsafe UnsafeMutableRawBufferPointer(rebasing: room[Body.blockBytes...])
        var offset = 0
        while offset < length {
            guard
                case .bytes(let one) = unsafe piece(from: offset, limit: length - offset, room: left, waits: false),
                case .bytes(let two) = unsafe other.piece(
                    from: offset, limit: length - offset, room: right, waits: false)
            else { return false }
            let count = min(one.count, two.count)
            guard
                unsafe equalBytes(
                    UnsafeRawBufferPointer(rebasing: one[..<count]), UnsafeRawBufferPointer(rebasing: two[..<count]))
            else { return false }
            offset += count
        }
        return true
    }
}
