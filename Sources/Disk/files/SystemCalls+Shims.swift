import CLarder
import Glibc

/// The calls that Swift does not see, in a file of their own: where both C modules are imported it depends on the order of
/// loading which of them `iovec` is counted to, and so whether it may stand in a declaration for others.
enum SystemShims {
    static func preadv(
        _ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool
    ) -> Int {
        let got = unsafe clarder_preadv(fd, vectors, CInt(count), offset, waits ? 0 : 1)
        return got < 0 ? Int(-errno) : got
    }

    static func allocate(_ fd: CInt, offset: Int, length: Int) -> Int {
        let status = clarder_allocate(fd, offset, length)
        return status < 0 ? Int(-errno) : Int(status)
    }
}
