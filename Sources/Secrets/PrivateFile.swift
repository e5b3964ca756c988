import Glibc

/// A file that this process and others write, and that nobody else should read. It is read again only after somebody else has changed it.
package struct PrivateFile: Sendable {
    package let path: String
    private let bytesMax: Int
    private var stamp: FileStamp?

    package init(path: String, bytesMax: Int) {
        self.path = path
        self.bytesMax = bytesMax
    }

    /// What was read.
    package struct Content: Sendable {
        package let bytes: [UInt8]
        /// The group or others may read the file.
        package let isExposed: Bool
    }

    /// All of the file. Blocks.
    ///
    /// - Returns: nil if the file is the one that was read or written last. If it cannot be read, the next call tries again.
    package mutating func readIfChanged() throws(ReadFailure) -> Content? {
        let known = stamp
        stamp = nil
        let file = try openRegularFile(path)
        defer { _ = close(file.fd) }
        guard file.status.st_size <= bytesMax else { throw .fileTooLong }
        let found = FileStamp(file.status)
        let content =
            found == known
            ? nil
            : Content(
                bytes: try readAll(file.fd, bytesMax: bytesMax),
                isExposed: file.status.st_mode & (S_IRGRP | S_IROTH) != 0)
        stamp = found
        return content
    }

    /// Replaces the file. Blocks.
    ///
    /// - Returns: the kernel's error number; nil if the file has been replaced. If it has not, the old one is as it was.
    package mutating func replace(with bytes: [UInt8]) -> CInt? {
        var written = stat()
        let failure = replaceFile(path, with: bytes, mode: 0o600, status: &written)
        if failure == nil { stamp = FileStamp(written) }
        return failure
    }
}

/// Replaces the file at `path` in one step: a reader sees the old bytes or the new ones, and never a part. The file gets this mode. Blocks.
///
/// - Returns: the kernel's error number; nil if the file has been replaced.
package func replaceFile(_ path: String, with bytes: [UInt8], mode: UInt32) -> CInt? {
    var status = stat()
    return replaceFile(path, with: bytes, mode: mode, status: &status)
}

/// - Parameter status: of the new file.
private func replaceFile(_ path: String, with bytes: [UInt8], mode: UInt32, status: inout stat) -> CInt? {
    let temporary = "\(path).new-\(getpid())"
    // An earlier process with the same number, as in a container, may have been killed before it came to the renaming.
    _ = unsafe unlink(temporary)
    let fd = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard fd >= 0 else { return errno }
    defer { _ = close(fd) }
    let failure =
        writeAll(bytes, to: fd) ?? (fchmod(fd, mode) == 0 ? nil : errno) ?? (fsync(fd) == 0 ? nil : errno)
        ?? (unsafe fstat(fd, &status) == 0 ? nil : errno) ?? (unsafe rename(temporary, path) == 0 ? nil : errno)
    if failure != nil { _ = unsafe unlink(temporary) }
    return failure
}

/// - Returns: the kernel's error number; nil if all has been written.
private func writeAll(_ bytes: [UInt8], to fd: CInt) -> CInt? {
    var offset = 0
    while offset < bytes.count {
        let count = unsafe bytes.withUnsafeBytes { bytes in
            unsafe write(fd, bytes.baseAddress.map { unsafe $0 + offset }, bytes.count - offset)
        }
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { return errno }
        offset += count
    }
    return nil
}

/// Reads to the end. Blocks.
func readAll(_ fd: CInt, bytesMax: Int) throws(ReadFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(fd, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw .system(errno) }
        if count == 0 { return bytes }
        bytes += buffer[..<count]
        guard bytes.count <= bytesMax else { throw .fileTooLong }
    }
}
