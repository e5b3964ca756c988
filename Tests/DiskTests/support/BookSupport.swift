import Disk
import EventLoop
import Glibc
import Synchronization

/// What the tests of the book share: a directory that goes away, objects to put, and a word in each commit.
final class BookPlace: Sendable {
    let path: String
    let calls = BookCalls()

    init() {
        var template = Array("/tmp/larder-book-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { fatalError("no directory for a test: errno \(errno)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in ["data.mdb", "lock.mdb"] { _ = unsafe unlink("\(path)/\(name)") }
        _ = unsafe rmdir(path)
    }

    static let storeID = Array("a store".utf8)

    func open(
        _ access: Book.Access = .readWrite, sizeMax: UInt64 = 1 << 30,
        damage: @escaping @Sendable (BookDefect) -> Void = { _ in }
    ) throws(BookError) -> Book {
        try Book.open(
            path, storeID: Self.storeID, access: access, sizeMax: sizeMax, calls: calls, damage: damage)
    }

    var file: String { path + "/data.mdb" }

    func contents() -> [UInt8] {
        let fd = unsafe Glibc.open(file, O_RDONLY)
        defer { close(fd) }
        let length = Int(lseek(fd, 0, SEEK_END))
        return unsafe [UInt8](unsafeUninitializedCapacity: length) { room, count in
            count = unsafe pread(fd, room.baseAddress, length, 0)
        }
    }

    func replaceContents(by bytes: [UInt8]) {
        let fd = unsafe Glibc.open(file, O_RDWR | O_CREAT | O_TRUNC, 0o600)
        defer { close(fd) }
        let count = unsafe bytes.withUnsafeBytes { unsafe pwrite(fd, $0.baseAddress, $0.count, 0) }
        precondition(count == bytes.count)
    }

    func write(_ bytes: [UInt8], at offset: Int) {
        let fd = unsafe Glibc.open(file, O_RDWR)
        defer { close(fd) }
        let count = unsafe bytes.withUnsafeBytes { unsafe pwrite(fd, $0.baseAddress, $0.count, off_t(offset)) }
        precondition(count == bytes.count)
    }
}

/// Says of each commit what it is told to; the rest the book does not ask for.
final class BookCalls: DiskCalls {
    private let verdict = Atomic<Int>(0)
    private let asked = Atomic<Int>(0)
    var commitCount: Int { asked.load(ordering: .relaxed) }
    func answer(_ verdict: Int) { self.verdict.store(verdict, ordering: .relaxed) }

    func mayCommit() -> Int {
        asked.wrappingAdd(1, ordering: .relaxed)
        return verdict.load(ordering: .relaxed)
    }
    func open(_ path: String, flags: CInt, mode: mode_t) -> Int { Int(-ENOSYS) }
    func close(_ fd: CInt) {}
    func pwritev(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int) -> Int { Int(-ENOSYS) }
    func preadv(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool) -> Int {
        Int(-ENOSYS)
    }
    func length(_ fd: CInt) -> Int { Int(-ENOSYS) }
    func readAhead(_ fd: CInt, offset: Int, length: Int) {}
    func synchronize(_ fd: CInt) -> Int { Int(-ENOSYS) }
    func truncate(_ fd: CInt, to length: Int) -> Int { Int(-ENOSYS) }
    func allocate(_ fd: CInt, offset: Int, length: Int) -> Int { Int(-ENOSYS) }
    func unlink(_ path: String) -> Int { Int(-ENOSYS) }
    func rename(_ from: String, to: String) -> Int { Int(-ENOSYS) }
    func free(_ path: String) -> Int { Int(-ENOSYS) }
}

/// The same numbers for the same seed (SplitMix64).
struct BookRandom: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }
}

extension BookEntry {
    static func sample(
        _ id: UInt64, _ key: String, tags: [String] = [], segment: UInt32 = 7, mediaType: String = "text/html"
    ) -> BookEntry {
        let attributes = ObjectAttributes(
            storageClass: id % 5 == 0 ? .pinned : .permanent, status: 200, storedAt: 1_700_000_000 + Int64(id),
            expiresAt: 1_800_000_000, mediaType: Array(mediaType.utf8), tags: tags.map { Array($0.utf8) })
        return BookEntry(
            id: ObjectID(rawValue: id), key: Array(key.utf8),
            place: Place(kind: .packed, segment: segment, offset: id * 4096, headLength: 512, bodyLength: id * 3),
            attributes: attributes)
    }

    static func random(_ id: UInt64, using random: inout BookRandom) -> BookEntry {
        let host = ["example.org", "www.example.org", "a.b.example.com", "192.0.2.7", "[2001:db8::1]", "localhost"]
            .randomElement(using: &random)!
        let scheme = Bool.random(using: &random) ? "http" : "https"
        let port = ["", "", ":8080"].randomElement(using: &random)!
        let long = Int.random(in: 0..<20, using: &random) == 0 ? String(repeating: "x", count: 600) : ""
        let key = "\(scheme)://\(host)\(port)/\(UInt16.random(in: 0...999, using: &random))\(long)/\(id)"
        let tags = (0..<Int.random(in: 0...2, using: &random)).map { "tag\(id % 7)-\($0)" }
        var entry = sample(id, key, tags: tags, mediaType: ["", "image/png"].randomElement(using: &random)!)
        if Int.random(in: 0..<9, using: &random) == 0 {
            entry.place = Place(
                kind: .large, segment: UInt32(id), offset: 0, headLength: 8192, bodyLength: 5_000_000 + id)
            entry.isComplete = Bool.random(using: &random)
        }
        return entry
    }
}

/// Collects what the book tells of damage.
final class BookTold: Sendable {
    private let told = Locked<[BookDefect]>([])
    var defects: [BookDefect] { told.withLock { $0 } }
    func add(_ defect: BookDefect) { told.withLock { $0.append(defect) } }
}
