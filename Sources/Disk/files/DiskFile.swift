import EventLoop
import Glibc

/// An open file. It is closed with its last reference, so it can be deleted while somebody reads. Handles EINTR and short
/// results; every other error is returned.
package final class DiskFile: Sendable {
    let calls: any DiskCalls
    /// Open for as long as this object lives, so that the number never means another file.
    private let fd: CInt

    private init(_ fd: CInt, calls: any DiskCalls) {
        precondition(fd >= 0, "an open file has a descriptor")
        self.fd = fd
        self.calls = calls
    }

    deinit { calls.close(fd) }

    /// Creates files for our user alone. Does not follow a symbolic link in place of the file.
    package static func open(_ path: String, flags: CInt, calls: any DiskCalls) throws(DiskFileError) -> DiskFile {
        let links = flags & O_DIRECTORY == 0 ? O_NOFOLLOW : 0
        return DiskFile(CInt(try succeed { calls.open(path, flags: flags | links, mode: 0o600) }), calls: calls)
    }

    /// Fills `vectors` from `offset` on. Changes the vectors.
    /// - Returns: the number of bytes read, fewer only at the end of the file; or `-errno`, which is `-EAGAIN` if it would block.
    func read(_ vectors: UnsafeMutableBufferPointer<iovec>, at offset: Int, waits: Bool) -> Int {
        precondition(offset >= 0, "a file begins at zero")
        var left = unsafe vectors[...]
        var count = 0
        while unsafe !left.isEmpty, let start = vectors.baseAddress {
            let got = unsafe calls.preadv(
                fd, start + left.startIndex, min(left.count, DiskFile.vectorsMax), at: offset + count, waits: waits)
            if got == Int(-EINTR) { continue }
            // Bytes that came before the error are not counted: callers use all that they asked for, or nothing.
            if got < 0 { return got }
            if got == 0 { break }
            count += got
            unsafe skip(got, in: &left)
        }
        return count
    }

    func read(into room: UnsafeMutableRawBufferPointer, at offset: Int, waits: Bool) -> Int {
        var vector = unsafe iovec(iov_base: room.baseAddress, iov_len: room.count)
        guard room.count > 0 else { return 0 }
        return unsafe withUnsafeMutablePointer(to: &vector) {
            unsafe read(UnsafeMutableBufferPointer(start: $0, count: 1), at: offset, waits: waits)
        }
    }

    /// Reads up to `count` bytes from `offset` on; fewer at the end of the file.
    package func bytes(_ count: Int, at offset: Int, waits: Bool) throws(DiskReadError) -> [UInt8] {
        precondition(count >= 0, "no negative number of bytes is read")
        var got = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { room, initialized in
            got = unsafe read(into: UnsafeMutableRawBufferPointer(room), at: offset, waits: waits)
            initialized = max(got, 0)
        }
        guard got >= 0 else { throw DiskReadError(got) }
        return bytes
    }

    /// Writes all of `vectors`. Changes the vectors. If it throws, any part of them may have been written.
    func write(_ vectors: UnsafeMutableBufferPointer<iovec>, at offset: Int) throws(DiskFileError) {
        precondition(offset >= 0, "a file begins at zero")
        var left = unsafe vectors[...]
        unsafe skip(0, in: &left)
        var count = 0
        while unsafe !left.isEmpty, let start = vectors.baseAddress {
            let done = unsafe calls.pwritev(
                fd, start + left.startIndex, min(left.count, DiskFile.vectorsMax), at: offset + count)
            if done == Int(-EINTR) { continue }
            // Nothing was written and there is no error: without this the loop would never end.
            guard done > 0 else { throw .failed(errno: done < 0 ? CInt(-done) : EIO) }
            count += done
            unsafe skip(done, in: &left)
        }
    }

    package func write(_ bytes: [UInt8], at offset: Int) throws(DiskFileError) {
        let outcome = unsafe bytes.withUnsafeBytes { bytes in
            var vector = unsafe iovec(
                iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
            return unsafe withUnsafeMutablePointer(to: &vector) { vector in
                Result { () throws(DiskFileError) in
                    unsafe try write(UnsafeMutableBufferPointer(start: vector, count: 1), at: offset)
                }
            }
        }
        try outcome.get()
    }

    /// Allocates space for the file. On a file system that cannot do that, the file takes space as it is written.
    func allocate(_ length: Int) throws(DiskFileError) {
        precondition(length >= 0, "a file has no negative length")
        do throws(DiskFileError) {
            _ = try succeed { calls.allocate(fd, offset: 0, length: length) }
        } catch .failed(errno: EOPNOTSUPP) {} catch .failed(errno: ENOSYS) {}
    }

    package func truncate(to length: Int) throws(DiskFileError) {
        precondition(length >= 0, "a file has no negative length")
        _ = try succeed { calls.truncate(fd, to: length) }
    }

    package func length() throws(DiskFileError) -> Int { try succeed { calls.length(fd) } }

    func readAhead(_ offset: Int, _ length: Int) {
        precondition(offset >= 0 && length >= 0, "a range of a file begins at zero or later")
        calls.readAhead(fd, offset: offset, length: length)
    }

    /// The range as something that sendfile(2) can send. Nil if reading it may block.
    func cached(_ offset: Int, _ count: Int) -> OpenFileRange? {
        precondition(offset >= 0 && count > 0, "a range of a file has bytes")
        guard calls.isCached(fd, offset: offset, length: count) else { return nil }
        return OpenFileRange(file: self, descriptor: fd, offset: offset, count: count)
    }

    /// Puts the file on the medium. If this fails, earlier writes may be lost although a later call succeeds: the kernel reports
    /// an error once and then forgets it.
    package func synchronize() throws(DiskFileError) { _ = try succeed { calls.synchronize(fd) } }

    /// Puts on the medium which files were created, renamed or deleted in the directory of `path`.
    package static func synchronizeDirectory(of path: String, calls: any DiskCalls) throws(DiskFileError) {
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let parent = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let directory = try open(parent, flags: O_RDONLY | O_DIRECTORY, calls: calls)
        do throws(DiskFileError) {
            try directory.synchronize()
        } catch .failed(errno: EINVAL) {}  // a file system without this call needs none
    }

    /// `IOV_MAX` of Linux.
    private static let vectorsMax = 1024

    private func skip(_ count: Int, in left: inout Slice<UnsafeMutableBufferPointer<iovec>>) {
        var count = count
        while unsafe !left.isEmpty, unsafe left[left.startIndex].iov_len <= count {
            unsafe count -= left[left.startIndex].iov_len
            unsafe left.removeFirst()
        }
        precondition(unsafe count == 0 || !left.isEmpty, "a call transfers no more than it was asked for")
        guard unsafe !left.isEmpty, count > 0 else { return }
        unsafe left[left.startIndex].iov_base += count
        unsafe left[left.startIndex].iov_len -= count
    }
}

/// Bytes of an open file that were verified and are in the page cache.
package struct OpenFileRange: Sendable {
    /// Keeps the file open.
    package let file: DiskFile
    package let descriptor: CInt
    package let offset: Int
    package let count: Int
}

/// Why a file cannot be created, opened or written.
package enum DiskFileError: Error, Equatable, Sendable, CustomStringConvertible {
    case failed(errno: CInt)
    /// The file exists and does not begin as it should; or the record to write is too large for a head part (`tooLarge`).
    case header(RecordError)

    package var description: String {
        switch self {
        case .failed(let code): systemErrorText(code)
        case .header(let error): "its header is not right (\(error))"
        }
    }
}

extension DiskReadError {
    /// From a result below zero.
    init(_ result: Int) { self = result == Int(-EAGAIN) ? .wouldBlock : .failed(errno: CInt(-result)) }

    package init(_ error: DiskFileError) {
        switch error {
        case .failed(let code): self = .failed(errno: code)
        case .header: self = .damaged
        }
    }
}

extension DiskRead {
    init(_ error: DiskReadError) {
        switch error {
        case .wouldBlock: self = .wouldBlock
        case .damaged: self = .damaged
        case .failed(let code): self = .failed(errno: code)
        }
    }
}

/// Repeats a call while it is interrupted.
private func succeed(_ call: () -> Int) throws(DiskFileError) -> Int {
    while true {
        let result = call()
        if result >= 0 { return result }
        if result != Int(-EINTR) { throw .failed(errno: CInt(-result)) }
    }
}
