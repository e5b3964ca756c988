import Glibc

/// A file with a secret. It is read again only after it changed.
package struct SecretFile: Sendable {
    package enum Part: Sendable {
        /// With its line feed.
        case firstLine
        case everything
    }
    package let path: String
    private let part: Part
    private let bytesMax: Int
    private var stamp: FileStamp?

    package init(path: String, _ part: Part = .firstLine, bytesMax: Int) {
        self.path = path
        self.part = part
        self.bytesMax = bytesMax
    }

    /// The part of the file that is the secret. Blocks.
    ///
    /// - Returns: nil if the file is the one that was read last: by device, inode, size and time of modification. If it cannot be read, the
    ///   next call tries again.
    package mutating func readIfChanged() throws(ReadFailure) -> [UInt8]? {
        let known = stamp
        stamp = nil
        let file = try openRegularFile(path)
        defer { _ = close(file.fd) }
        // Of what is written while the file is read, the next call sees another stamp.
        let found = FileStamp(file.status)
        let secret: [UInt8]? =
            switch part {
            case _ where found == known: nil
            case .firstLine: try readFirstLine(file.fd, bytesMax: bytesMax)
            case .everything: try readAll(file.fd, bytesMax: bytesMax)
            }
        stamp = found
        return secret
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
