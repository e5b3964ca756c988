import Glibc

/// Tells whether a file has changed since it was last looked at. It is looked at once in `pause` at most.
package struct WatchedFile {
    /// Nil: the file is not there.
    private struct Version: Equatable {
        var device, inode: UInt64
        var size: Int64
        var seconds, nanoseconds: Int
    }

    package let path: String
    private let pause: Duration
    private var version: Version?
    private var nextLook: MonotonicTime

    /// The present version counts as known.
    package init(_ path: String, pause: Duration, now: MonotonicTime) {
        self.path = path
        self.pause = pause
        version = WatchedFile.version(of: path)
        nextLook = now.advanced(by: pause)
    }

    package mutating func hasChanged(at now: MonotonicTime) -> Bool {
        guard now >= nextLook else { return false }
        nextLook = now.advanced(by: pause)
        let present = WatchedFile.version(of: path)
        guard present != version else { return false }
        version = present
        return true
    }

    private static func version(of path: String) -> Version? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        return Version(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino), size: Int64(status.st_size),
            seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec)
    }
}
