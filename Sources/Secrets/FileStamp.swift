import Glibc

/// Tells one version of a file from another: by device, inode, size and time of modification.
struct FileStamp: Equatable {
    private let device: dev_t
    private let inode: ino_t
    private let size: off_t
    private let seconds: Int
    private let nanoseconds: Int

    init(_ status: stat) {
        device = status.st_dev
        inode = status.st_ino
        size = status.st_size
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }
}

/// Opens a file for reading. The caller closes the descriptor.
func openRegularFile(_ path: String) throws(ReadFailure) -> (fd: CInt, status: stat) {
    // A pipe must not block the opening.
    let fd = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard fd >= 0 else { throw .system(errno) }
    var status = stat()
    if unsafe fstat(fd, &status) != 0 {
        let code = errno
        _ = close(fd)
        throw .system(code)
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
        _ = close(fd)
        throw .notAFile
    }
    return (fd, status)
}
