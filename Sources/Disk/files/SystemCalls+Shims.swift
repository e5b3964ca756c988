import CLarder
import Glibc

/// The calls that Swift does not import, in a file of their own: in a file that imports both C modules, the module that `iovec`
/// belongs to depends on the order in which they are loaded, and `iovec` could not be used in a `package` declaration.
enum SystemShims {
    static func preadv(
        _ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool
    ) -> Int {
        let got = unsafe clarder_preadv(fd, vectors, CInt(count), offset, waits ? 0 : 1)
        return got < 0 ? Int(-errno) : got
    }

    static func isCached(_ fd: CInt, offset: Int, length: Int) -> Bool {
        clarder_is_cached(fd, offset, length) != 0
    }

    static func allocate(_ fd: CInt, offset: Int, length: Int) -> Int {
        let status = clarder_allocate(fd, offset, length)
        return status < 0 ? Int(-errno) : Int(status)
    }
}
