package import Glibc

/// The system calls of the disk tier, in one place, so that tests can make them fail. Each returns the result of the call, or
/// `-errno` if it failed. The caller handles EINTR and short results.
package protocol DiskCalls: Sendable {
    func open(_ path: String, flags: CInt, mode: mode_t) -> Int
    func close(_ fd: CInt)
    func pwritev(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int) -> Int
    /// - Parameter waits: false: read only from the page cache (`RWF_NOWAIT`), and return `-EAGAIN` if that is not enough.
    func preadv(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool) -> Int
    func synchronize(_ fd: CInt) -> Int
    func truncate(_ fd: CInt, to length: Int) -> Int
    /// Allocates space for the range without changing the length of the file.
    func allocate(_ fd: CInt, offset: Int, length: Int) -> Int
    /// The length of the file.
    func length(_ fd: CInt) -> Int
    /// Tells the kernel that the range will be wanted soon. A hint: failure is not reported.
    func readAhead(_ fd: CInt, offset: Int, length: Int)
    /// Whether the page cache has all of the range, so that sending it does not block. False if that is not known.
    func isCached(_ fd: CInt, offset: Int, length: Int) -> Bool
    func unlink(_ path: String) -> Int
    func rename(_ from: String, to: String) -> Int
    /// Asked before each commit of the book: 0, or `-errno` to make it fail. LMDB makes its system calls itself.
    func mayCommit() -> Int
    /// How many bytes the file system of `path` has free for us.
    func free(_ path: String) -> Int
}

extension DiskCalls {
    package func isCached(_ fd: CInt, offset: Int, length: Int) -> Bool { false }
}
