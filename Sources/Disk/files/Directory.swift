import EventLoop
import Glibc
import Synchronization

/// The directory of a store. It is created or recognised, and it is locked for this process as long as this object lives: two
/// processes that write to one store would destroy it.
///
/// The marker `larder-store` makes it a store: its first line is `larder store 1`, its second line the id of the store, 32
/// hexadecimal digits. The lock (`flock`) is on the marker. A directory that is refused has not been changed in any way.
package final class Directory: Sendable {
    let path: String
    let storeID: StoreID
    /// This call made the store: it is empty.
    let isNew: Bool
    private let lock: LockedFile

    package static let formatVersion: UInt32 = 1
    /// The smallest size that makes sense: a book and a few of the smallest segments.
    package static let sizeMin: UInt64 = 16 << 20

    var bookPath: String { path + "/book" }
    var segmentsPath: String { path + "/segments" }
    var largePath: String { path + "/large" }

    func segmentPath(_ number: UInt32) -> String { "\(segmentsPath)/\(Self.fileName(number))" }

    /// Large files are spread over 256 directories, by the lowest 8 bits of their number.
    func largePath(_ number: UInt32) -> String { "\(largeDirectory(number))/\(Self.fileName(number))" }

    func largeDirectory(_ number: UInt32) -> String { "\(largePath)/\(Self.hexadecimal(number & 0xFF, digits: 2))" }

    private static func fileName(_ number: UInt32) -> String { hexadecimal(number, digits: 8) + ".seg" }

    /// A name for a damaged book that is moved aside.
    func bookAside() -> String {
        var aside = "\(bookPath).damaged-\(DiskStoreParts.wallClock)"
        while unsafe access(aside, F_OK) == 0 { aside += "-again" }
        return aside
    }

    /// The numbers of the files that exist, in no order.
    func fileNumbers() throws(DiskRefusal) -> (segments: [UInt32], large: [UInt32]) {
        let segments = try Self.entries(segmentsPath).compactMap(Self.fileNumber)
        var large: [UInt32] = []
        for name in try Self.entries(largePath) where UInt8(name, radix: 16) != nil && name.utf8.count == 2 {
            large += try Self.entries("\(largePath)/\(name)").compactMap(Self.fileNumber)
        }
        return (segments, large)
    }

    /// Creates the subdirectories that are missing, and synchronizes the directory: a file in a subdirectory whose name is not on
    /// the medium would be lost with it. The directories below `large` are created, and synchronized, with their first file.
    func makeSubdirectories() throws(DiskRefusal) {
        for room in [segmentsPath, largePath] { try Self.makeDirectory(room) }
        let status = Self.synchronize(path)
        guard status == 0 else { throw Self.refusal(path, status) }
    }

    /// The number in a file name. Returns nil if this is not a file of ours.
    private static func fileNumber(_ name: String) -> UInt32? {
        // A file with another name, such as 0000000A.seg, is neither read nor deleted.
        guard let number = UInt32(name.prefix(8), radix: 16), name == fileName(number), number <= numberMax else {
            return nil
        }
        return number
    }

    /// The highest number that counts as one of a file of ours. Half of the numbers are above it, for new files.
    private static let numberMax: UInt32 = .max / 2

    private static func hexadecimal(_ number: UInt32, digits: Int) -> String {
        let text = String(number, radix: 16)
        precondition(text.utf8.count <= digits, "the name has enough digits for the number")
        return String(repeating: "0", count: digits - text.utf8.count) + text
    }

    package static let markerName = "larder-store"
    /// The name of the marker until its content is on the medium.
    static let newMarkerName = "larder-store.new"

    /// What `open` finds.
    package enum Finding: Sendable, Equatable {
        /// Nothing. The directory can be made.
        case nothing
        /// A directory that can become a store.
        case empty
        case store
    }

    /// - Parameter size: the most bytes that the store may take.
    package static func open(_ path: String, size: UInt64) throws(DiskRefusal) -> Directory {
        var finding = try examine(path, size: size)
        if finding == .nothing {
            try makeDirectory(path)
            finding = try examine(path, size: size)
        }
        return finding == .store ? try recognise(path) : try mark(path)
    }

    /// Throws what `open` would throw, without changing or locking anything. That another process uses the store is not found.
    ///
    /// - Parameter size: the most bytes that the store may take.
    package static func examine(_ path: String, size: UInt64) throws(DiskRefusal) -> Finding {
        guard size >= sizeMin else { throw .tooSmall(path: path, sizeMin: sizeMin) }
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else {
            guard errno == ENOENT else { throw refusal(path, errno) }
            if let code = FileCreation.obstacle(path) { throw refusal(path, code) }
            return .nothing
        }
        try checkMode(path)
        let names = try entries(path)
        if names.contains(markerName) {
            _ = try storeID(in: try readMarker(path), path)
            return .store
        }
        // A mount point contains lost+found. A start that was killed leaves a marker without its final name.
        guard names.allSatisfy({ $0 == "lost+found" || $0 == newMarkerName }) else { throw .foreign(path: path) }
        return .empty
    }

    /// The names in a directory, without `.` and `..`, in no order.
    package static func entries(_ path: String) throws(DiskRefusal) -> [String] {
        guard let directory = unsafe opendir(path) else { throw refusal(path, errno) }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        errno = 0
        while let entry = unsafe readdir(directory) {
            let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw refusal(path, errno) }
        return names
    }

    /// Puts on the medium which files were created, renamed or deleted in a directory. Returns 0 or an errno.
    package static func synchronize(_ path: String) -> CInt {
        let fd = unsafe Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard fd >= 0 else { return errno }
        defer { _ = close(fd) }
        return fsync(fd) == 0 ? 0 : errno
    }

    /// Releases the lock. Nothing of the store may be used after this.
    func unlock() { lock.close() }

    private init(path: String, storeID: StoreID, isNew: Bool, lock: LockedFile) {
        self.path = path
        self.storeID = storeID
        self.isNew = isNew
        self.lock = lock
    }

    // MARK: steps

    /// Creates a directory for our user alone, if it does not exist.
    private static func makeDirectory(_ path: String) throws(DiskRefusal) {
        if unsafe mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        throw refusal(path, errno)
    }

    /// Refuses a directory that others can write to: they could replace a file while Larder uses it.
    private static func checkMode(_ path: String) throws(DiskRefusal) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { throw refusal(path, errno) }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw .failed(path: path, errno: ENOTDIR) }
        guard status.st_mode & 0o022 == 0 else { throw .openToOthers(path: path, mode: status.st_mode & 0o7777) }
        guard unsafe access(path, R_OK | W_OK | X_OK) == 0 else { throw refusal(path, errno) }
    }

    /// Opens a store that exists. The lock comes first: the marker of a store in use is only read after the lock is ours.
    private static func recognise(_ path: String) throws(DiskRefusal) -> Directory {
        let marker = path + "/" + markerName
        let file = try LockedFile.open(marker, flags: O_RDWR, in: path)
        let id = try storeID(in: file.read(in: path), path)
        return Directory(path: path, storeID: id, isNew: false, lock: file)
    }

    /// The text of the marker, read without the lock. It is complete: it got its name when it was written.
    private static func readMarker(_ path: String) throws(DiskRefusal) -> String {
        let fd = unsafe Glibc.open("\(path)/\(markerName)", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard fd >= 0 else { throw refusal(path, errno) }
        defer { _ = Glibc.close(fd) }
        return try LockedFile.read(fd, in: path)
    }

    /// - Parameter text: that of the marker.
    private static func storeID(in text: String, _ path: String) throws(DiskRefusal) -> StoreID {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let first = lines.first, first.hasPrefix(versionPrefix),
            let version = UInt32(first.dropFirst(versionPrefix.count))
        else { throw .foreign(path: path) }
        guard version == formatVersion else { throw .unknownVersion(path: path, version: version) }
        guard lines.count >= 2, let id = StoreID(String(lines[1])) else { throw .foreign(path: path) }
        return id
    }

    /// Creates the marker, completely or not at all: it is written and synchronized under another name, then renamed. The lock
    /// stays on the file and so survives the renaming.
    private static func mark(_ path: String) throws(DiskRefusal) -> Directory {
        let new = path + "/" + newMarkerName
        // A start that was killed may have left this file. It is locked and written anew.
        let file = try LockedFile.open(new, flags: O_RDWR | O_CREAT, in: path)
        let id = StoreID.random()
        try file.write("\(versionPrefix)\(formatVersion)\n\(id)\n", in: path)
        guard unsafe rename(new, path + "/" + markerName) == 0 else { throw refusal(path, errno) }
        let status = synchronize(path)
        guard status == 0 else { throw refusal(path, status) }
        return Directory(path: path, storeID: id, isNew: true, lock: file)
    }

    private static let versionPrefix = "larder store "

    /// The refusal for a failed call.
    package static func refusal(_ path: String, _ code: CInt) -> DiskRefusal {
        switch code {
        case EACCES, EPERM, EROFS: .notAllowed(path: path, errno: code)
        default: .failed(path: path, errno: code)
        }
    }
}

extension StoreID {
    /// 16 bytes in the order of the digits, as in the book.
    package var bytes: [UInt8] {
        [high, low].flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) } }
    }
}

/// An open and locked file. Both end with the last reference.
private final class LockedFile: Sendable {
    private let fd: CInt
    private let isOpen = Atomic(true)

    private init(_ fd: CInt) {
        precondition(fd >= 0, "an open file has a descriptor")
        self.fd = fd
    }
    deinit { close() }

    func close() {
        if isOpen.exchange(false, ordering: .relaxed) { _ = Glibc.close(fd) }
    }

    /// One second in all: a process that was killed a moment ago, or a child of it, may still hold the lock.
    private static let attemptsMax = 50
    private static let attemptMicroseconds: UInt32 = 20_000

    /// Opens a file and locks it.
    static func open(_ file: String, flags: CInt, in path: String) throws(DiskRefusal) -> LockedFile {
        let fd = unsafe Glibc.open(file, flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard fd >= 0 else { throw Directory.refusal(path, errno) }
        let opened = LockedFile(fd)
        var attempts = 0
        // The lock belongs to the open file. It ends with the process, however that ends, so no stale lock is ever left.
        while flock(fd, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK else { throw .failed(path: path, errno: errno) }
            guard attempts < Self.attemptsMax else { throw .inUse(path: path) }
            attempts += 1
            usleep(Self.attemptMicroseconds)
        }
        // Between `open` and `flock` another process may have renamed or replaced the file.
        var (ours, named) = (stat(), stat())
        guard unsafe fstat(fd, &ours) == 0, unsafe lstat(file, &named) == 0, ours.st_ino == named.st_ino else {
            throw .inUse(path: path)
        }
        return opened
    }

    func read(in path: String) throws(DiskRefusal) -> String { try Self.read(fd, in: path) }

    static func read(_ fd: CInt, in path: String) throws(DiskRefusal) -> String {
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = unsafe pread(fd, &bytes, bytes.count, 0)
        guard count >= 0 else { throw .failed(path: path, errno: errno) }
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    func write(_ text: String, in path: String) throws(DiskRefusal) {
        let bytes = Array(text.utf8)
        guard ftruncate(fd, 0) == 0, unsafe pwrite(fd, bytes, bytes.count, 0) == bytes.count, fsync(fd) == 0 else {
            throw .failed(path: path, errno: errno)
        }
    }
}
