import EventLoop
import Glibc

/// The pages of LMDB's data file (format 1, as of 0.9), read without trust. Numbers are in the byte order of the machine.
@safe final class BookPages {
    let path: String
    private let descriptor: Descriptor
    /// When it was opened.
    let fileBytes: UInt64

    /// Returns nil if the file does not exist or is empty.
    init?(_ directory: String) throws(BookError) {
        path = directory + "/data.mdb"
        let fd = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else {
            if errno == ENOENT { return nil }
            throw .failed(errno: errno)
        }
        descriptor = Descriptor(adopting: fd)
        let end = lseek(fd, 0, SEEK_END)
        guard end >= 0 else { throw .failed(errno: errno) }
        guard end > 0 else { return nil }
        fileBytes = UInt64(end)
        // The whole file will be read: first here in the order of the trees, then by whoever loads it.
        _ = posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED)
    }

    /// The bytes that contain both meta pages, whatever the page size. They change with each commit.
    func beginning() throws(BookError) -> [UInt8] {
        let count = Int(min(fileBytes, UInt64(BookRoot.pageBytesMax + BookRoot.metaBytes)))
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 8)
        defer { unsafe room.deallocate() }
        unsafe try read(room, at: 0, page: 0)
        return unsafe [UInt8](room)
    }

    /// Fills the buffer from the file.
    func read(_ room: UnsafeMutableRawBufferPointer, at offset: UInt64, page: UInt64) throws(BookError) {
        // The file may have grown since it was opened: a commit puts new pages behind all others, and then names them in a meta page.
        guard offset <= UInt64(Int64.max) - UInt64(room.count) else {
            throw .damaged(BookDefect("it is beyond the end of the file", page: page))
        }
        var filled = 0
        while filled < room.count {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: room[filled...])
            let count = unsafe pread(descriptor.rawValue, rest.baseAddress, rest.count, off_t(offset) + off_t(filled))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .failed(errno: errno) }
            guard count > 0 else { throw .damaged(BookDefect("it is beyond the end of the file", page: page)) }
            filled += count
        }
    }
}

/// The bytes of a page, with checked access.
/// Access beyond them is a fault of ours: callers check each number that stands in a page before they use it.
@safe struct BookPageBytes {
    let bytes: UnsafeRawBufferPointer
    let count: Int

    static let headerBytes = 16
    static let isBranch: UInt16 = 0x01
    static let isLeaf: UInt16 = 0x02
    static let isOverflow: UInt16 = 0x04
    static let isMeta: UInt16 = 0x08

    init(_ bytes: UnsafeRawBufferPointer) {
        unsafe self.bytes = bytes
        count = bytes.count
    }

    @inline(__always)
    func load<Number: FixedWidthInteger>(_ offset: Int, as type: Number.Type) -> Number {
        precondition(offset >= 0 && offset <= count - Number.bitWidth / 8, "a field lies within its page")
        return unsafe bytes.loadUnaligned(fromByteOffset: offset, as: type)
    }

    @inline(__always)
    func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "a slice lies within its page")
        return unsafe UnsafeRawBufferPointer(rebasing: bytes[range])
    }

    var number: UInt64 { load(0, as: UInt64.self) }
    var flags: UInt16 { load(10, as: UInt16.self) }
    /// The end of the node offsets.
    var lower: Int { Int(load(12, as: UInt16.self)) }
    /// The beginning of the nodes.
    var upper: Int { Int(load(14, as: UInt16.self)) }
    /// How many pages an overflow page consists of.
    var overflowCount: UInt32 { load(12, as: UInt32.self) }

    func nodeOffset(_ index: Int) -> Int { Int(load(Self.headerBytes + 2 * index, as: UInt16.self)) }
}

/// The description of a named database (MDB_db).
struct BookTree: Equatable {
    static let bytes = 48

    var padding: UInt32
    var flags: UInt16
    var depth: Int
    var entryCount: UInt64
    /// Nil if the database is empty.
    var root: UInt64?

    init(_ bytes: BookPageBytes, at offset: Int) {
        padding = bytes.load(offset, as: UInt32.self)
        flags = bytes.load(offset + 4, as: UInt16.self)
        depth = Int(bytes.load(offset + 6, as: UInt16.self))
        entryCount = bytes.load(offset + 32, as: UInt64.self)
        let root = bytes.load(offset + 40, as: UInt64.self)
        self.root = root == UInt64.max ? nil : root
    }

    /// The depth of LMDB's stack for the path from root to leaf.
    static let depthMax = 32
}

/// One of the two meta pages: the root of everything, as one transaction left it.
struct BookRoot: Equatable {
    static let magic: UInt32 = 0xBEEF_C0DE
    /// The version of the data format.
    static let version: UInt32 = 1
    static let metaBytes = 16 + 136
    /// The limit of LMDB.
    static let pageBytesMax = 32768
    static let integerKeys: UInt16 = 0x08

    /// 0 or 1.
    var page: UInt64
    var pageBytes: Int
    var free: BookTree
    var main: BookTree
    var lastPage: UInt64
    var transaction: UInt64

    init(_ bytes: BookPageBytes, page: UInt64) throws(BookError) {
        func check(_ isRight: Bool, _ what: String) throws(BookError) {
            if !isRight { throw .damaged(BookDefect(what, page: page)) }
        }
        self.page = page
        try check(bytes.number == page && bytes.flags == BookPageBytes.isMeta, "it is no meta page")
        try check(bytes.load(16, as: UInt32.self) == Self.magic, "it lacks LMDB's magic")
        try check(bytes.load(20, as: UInt32.self) == Self.version, "it has another format of LMDB")
        free = BookTree(bytes, at: 40)
        main = BookTree(bytes, at: 88)
        lastPage = bytes.load(136, as: UInt64.self)
        transaction = bytes.load(144, as: UInt64.self)
        // LMDB keeps the page size in this field of the database of free pages.
        pageBytes = Int(free.padding)
        try check(
            (512...Self.pageBytesMax).contains(pageBytes) && pageBytes.nonzeroBitCount == 1,
            "its page size is impossible")
        try check(free.flags == Self.integerKeys && main.flags == 0, "it has flags that are not ours")
        try check(lastPage >= 1, "it has too few pages")
    }
}
