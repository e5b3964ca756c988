import Glibc

/// A file with a secret in its first line. It is read again only after it changed.
package struct SecretFile: Sendable {
    package let path: String
    private let bytesMax: Int
    private var stamp: Stamp?

    package init(path: String, bytesMax: Int) {
        self.path = path
        self.bytesMax = bytesMax
    }

    /// The first line, with its line feed. Blocks.
    ///
    /// - Returns: nil if the file is the one that was read last: by device, inode, size and time of modification. If it cannot be read, the
    ///   next call tries again.
    package mutating func readIfChanged() throws(ReadFailure) -> [UInt8]? {
        // A pipe must not block the opening.
        let fd = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard fd >= 0 else { throw failed(.system(errno)) }
        defer { _ = close(fd) }
        var status = stat()
        guard unsafe fstat(fd, &status) == 0 else { throw failed(.system(errno)) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw failed(.notAFile) }
        // Of what is written while the file is read, the next call sees another stamp.
        let found = Stamp(status)
        if found == stamp { return nil }
        do {
            let line = try readFirstLine(fd, bytesMax: bytesMax)
            stamp = found
            return line
        } catch {
            throw failed(error)
        }
    }

    private mutating func failed(_ failure: ReadFailure) -> ReadFailure {
        stamp = nil
        return failure
    }

    private struct Stamp: Equatable {
        let device: dev_t
        let inode: ino_t
        let size: off_t
        let seconds: Int
        let nanoseconds: Int

        init(_ status: stat) {
            device = status.st_dev
            inode = status.st_ino
            size = status.st_size
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }
}

/// The value of a variable of the environment.
package func readVariable(_ name: String) throws(ReadFailure) -> [UInt8] {
    guard let value = unsafe getenv(name) else { throw .notSet }
    return unsafe UnsafeBufferPointer(start: value, count: strlen(value)).map { UInt8(bitPattern: $0) }
}

/// The first line from a descriptor that this process was started with, and closes it. Blocks until there is one.
package func readDescriptor(_ fd: CInt, bytesMax: Int) throws(ReadFailure) -> [UInt8] {
    defer { _ = close(fd) }
    return try readFirstLine(fd, bytesMax: bytesMax)
}
