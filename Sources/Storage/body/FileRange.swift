internal import CLarder
internal import Glibc

/// Bytes of a file that sendfile(2) can send without waiting. They never change, as long as anybody may still read them: neither while this
/// value lives, nor while the kernel sends them.
package struct FileRange {
    package let descriptor: CInt
    package let offset: Int
    /// At least one.
    package let count: Int
    /// Keeps the file open. Nil if the body does.
    private let owner: AnyObject?

    package init(descriptor: CInt, offset: Int, count: Int, owner: AnyObject?) {
        precondition(offset >= 0 && count > 0, "a range of a file has bytes")
        self.descriptor = descriptor
        self.offset = offset
        self.count = count
        self.owner = owner
    }

    /// Whether the page cache has all of it. False where the kernel cannot tell.
    package var isCached: Bool { clarder_is_cached(descriptor, off_t(offset), off_t(count)) == 1 }

    /// The bytes from the `start`th on, `limit` at most. Nil if there are none.
    package func suffix(from start: Int, limit: Int) -> FileRange? {
        guard start >= 0, start < count, limit > 0 else { return nil }
        return FileRange(
            descriptor: descriptor, offset: offset + start, count: min(count - start, limit), owner: owner)
    }
}
