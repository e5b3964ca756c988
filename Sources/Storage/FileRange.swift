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
}
