import Disk
import Glibc

/// The directory of a store as a verification sees it: its id and its files. It is locked only for a repair.
struct VerifiedStore: Sendable {
    struct File: Sendable, Equatable {
        var number: UInt32
        var bytes: UInt64
        var isLarge: Bool
    }

    let path: String
    let id: StoreID
    let calls: any DiskCalls
    /// Held as long as this value. Nil if the store is only read.
    private let lock: Directory?

    var bookPath: String { path + "/book" }

    static func open(_ path: String, locks: Bool, calls: any DiskCalls) throws(DiskRefusal) -> VerifiedStore {
        let id = try readMarker(path)
        // The marker exists, so this creates nothing.
        let lock = try locks ? Directory.open(path, size: Directory.sizeMin) : nil
        return VerifiedStore(path: path, id: id, calls: calls, lock: lock)
    }

    func identity(_ number: UInt32) -> SegmentIdentity { SegmentIdentity(store: id, number: number) }

    /// The path below the directory of the store.
    func name(of number: UInt32, isLarge: Bool) -> String {
        let file = hexadecimal(number, digits: 8) + ".seg"
        return isLarge ? "large/\(hexadecimal(number & 0xFF, digits: 2))/\(file)" : "segments/\(file)"
    }

    func path(of number: UInt32, isLarge: Bool) -> String { "\(path)/\(name(of: number, isLarge: isLarge))" }

    /// Whether another process has the store at this moment.
    var isInUse: Bool {
        guard lock == nil else { return false }
        let fd = unsafe Glibc.open("\(path)/\(Directory.markerName)", O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard fd >= 0 else { return false }
        // Closing the descriptor releases the lock at once: a proxy that starts now must not find the store taken.
        defer { _ = close(fd) }
        return flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }

    /// The files of segments and large objects, the oldest first in each kind. Files with other names are not ours.
    func files() throws(DiskRefusal) -> [File] {
        var files = try files(in: "segments", isLarge: false)
        for name in try names(in: "large") where name.utf8.count == 2 && UInt8(name, radix: 16) != nil {
            files += try self.files(in: "large/\(name)", isLarge: true)
        }
        return files.sorted { ($0.isLarge ? 1 : 0, $0.number) < ($1.isLarge ? 1 : 0, $1.number) }
    }

    private func files(in room: String, isLarge: Bool) throws(DiskRefusal) -> [File] {
        var files: [File] = []
        for name in try names(in: room) where name.utf8.count == 12 && name.hasSuffix(".seg") {
            guard let number = UInt32(name.dropLast(4), radix: 16) else { continue }
            // A file that is gone was deleted by a running proxy.
            if let bytes = bytes(of: "\(path)/\(room)/\(name)") {
                files.append(File(number: number, bytes: bytes, isLarge: isLarge))
            }
        }
        return files
    }

    /// Empty if the directory does not exist: a new store has none yet.
    private func names(in room: String) throws(DiskRefusal) -> [String] {
        do throws(DiskRefusal) {
            return try Directory.entries("\(path)/\(room)")
        } catch .failed(_, errno: ENOENT) { return [] }
    }

    /// Returns nil if the file does not exist.
    func bytes(of path: String) -> UInt64? {
        var facts = stat()
        return unsafe lstat(path, &facts) == 0 ? UInt64(facts.st_size) : nil
    }

    private static func readMarker(_ path: String) throws(DiskRefusal) -> StoreID {
        let fd = unsafe Glibc.open("\(path)/\(Directory.markerName)", O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard fd >= 0 else {
            let code = errno
            // An existing directory without a marker is not ours.
            guard code == ENOENT, unsafe access(path, F_OK) == 0 else { throw Directory.refusal(path, code) }
            throw .foreign(path: path)
        }
        defer { _ = close(fd) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = unsafe read(fd, &bytes, bytes.count)
        guard count >= 0 else { throw .failed(path: path, errno: errno) }
        let lines = String(decoding: bytes.prefix(count), as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
        let start = "larder store "
        guard let first = lines.first, first.hasPrefix(start), let version = UInt32(first.dropFirst(start.count)) else {
            throw .foreign(path: path)
        }
        guard version == Directory.formatVersion else { throw .unknownVersion(path: path, version: version) }
        guard lines.count >= 2, let id = StoreID(String(lines[1])) else { throw .foreign(path: path) }
        return id
    }
}

private func hexadecimal(_ number: UInt32, digits: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: digits - text.utf8.count) + text
}
