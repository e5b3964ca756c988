package import Glibc

/// The system calls of the kernel.
package struct SystemCalls: DiskCalls {
    package init() {}

    /// Always with `O_CLOEXEC`.
    package func open(_ path: String, flags: CInt, mode: mode_t) -> Int {
        result(Int(unsafe Glibc.open(path, flags | O_CLOEXEC, mode)))
    }

    /// The descriptor is gone even if this fails, and whatever must be on the medium was synchronized before.
    package func close(_ fd: CInt) { _ = Glibc.close(fd) }

    package func pwritev(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int) -> Int {
        result(unsafe Glibc.pwritev(fd, vectors, CInt(count), offset))
    }

    package func preadv(
        _ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool
    ) -> Int {
        let got = unsafe SystemShims.preadv(fd, vectors, count, at: offset, waits: waits)
        // On a file system without RWF_NOWAIT every read may block.
        return !waits && (got == Int(-EOPNOTSUPP) || got == Int(-ENOSYS)) ? Int(-EAGAIN) : got
    }

    /// `fdatasync` leaves out times, and includes the length of the file, without which new bytes could not be found.
    package func synchronize(_ fd: CInt) -> Int { result(Int(fdatasync(fd))) }

    package func truncate(_ fd: CInt, to length: Int) -> Int { result(Int(ftruncate(fd, length))) }

    package func allocate(_ fd: CInt, offset: Int, length: Int) -> Int {
        SystemShims.allocate(fd, offset: offset, length: length)
    }

    package func length(_ fd: CInt) -> Int { result(lseek(fd, 0, SEEK_END)) }

    package func readAhead(_ fd: CInt, offset: Int, length: Int) {
        _ = posix_fadvise(fd, offset, length, POSIX_FADV_WILLNEED)
    }

    package func isCached(_ fd: CInt, offset: Int, length: Int) -> Bool {
        SystemShims.isCached(fd, offset: offset, length: length)
    }

    package func unlink(_ path: String) -> Int { result(Int(unsafe Glibc.unlink(path))) }

    package func rename(_ from: String, to: String) -> Int { result(Int(unsafe Glibc.rename(from, to))) }

    package func mayCommit() -> Int { 0 }

    package func free(_ path: String) -> Int {
        var facts = statvfs()
        let status = result(Int(unsafe statvfs(path, &facts)))
        guard status == 0 else { return status }
        // What we may take. `f_bfree` includes what is reserved for root.
        return Int(clamping: UInt64(facts.f_bavail) * UInt64(facts.f_frsize))
    }

    private func result(_ returned: Int) -> Int { returned < 0 ? Int(-errno) : returned }
}
