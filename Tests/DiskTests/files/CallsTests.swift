import Foundation
import Glibc
import Testing

@testable import Disk

@Suite("The calls of the disk tier")
struct CallsTests {
    /// A file with these bytes, through the given calls.
    static func file(_ room: SegmentTestRoom, _ name: String, _ bytes: [UInt8]) throws -> DiskFile {
        let file = try DiskFile.open(room.path + "/" + name, flags: O_RDWR | O_CREAT, calls: room.calls)
        try file.write(bytes, at: 0)
        return file
    }

    @Test func `calls return the errors of the kernel`() throws {
        let room = try SegmentTestRoom()
        let calls = SystemCalls()
        #expect(calls.open(room.path + "/none", flags: O_RDONLY, mode: 0) == Int(-ENOENT))
        #expect(calls.unlink(room.path + "/none") == Int(-ENOENT))
        #expect(calls.rename(room.path + "/none", to: room.path + "/other") == Int(-ENOENT))
        #expect(calls.free(room.path + "/none") == Int(-ENOENT))
        #expect(calls.free(room.path) > 0)
        #expect(calls.synchronize(-1) == Int(-EBADF) && calls.truncate(-1, to: 0) == Int(-EBADF))
        #expect(calls.allocate(-1, offset: 0, length: 1) == Int(-EBADF) && calls.length(-1) == Int(-EBADF))
        var vector = unsafe iovec()
        #expect(unsafe calls.preadv(-1, &vector, 1, at: 0, waits: true) == Int(-EBADF))
        #expect(unsafe calls.pwritev(-1, &vector, 1, at: 0) == Int(-EBADF))
        #expect(calls.mayCommit() == 0)
        calls.readAhead(-1, offset: 0, length: 1)
    }

    @Test func `files are for our user alone, are not inherited, and links are not followed`() throws {
        let room = try SegmentTestRoom()
        let path = room.path + "/file"
        let fd = CInt(SystemCalls().open(path, flags: O_RDWR | O_CREAT, mode: 0o600))
        defer { close(fd) }
        var facts = stat()
        #expect(unsafe fstat(fd, &facts) == 0 && facts.st_mode & 0o777 == 0o600)
        #expect(fcntl(fd, F_GETFD) & FD_CLOEXEC != 0)
        #expect(unsafe symlink(path, room.path + "/link") == 0)
        #expect(throws: DiskFileError.failed(errno: ELOOP)) {
            try DiskFile.open(room.path + "/link", flags: O_RDONLY, calls: SystemCalls())
        }
    }

    @Test func `a directory may be a link, and need not support synchronizing`() throws {
        let room = try SegmentTestRoom()
        #expect(unsafe symlink(room.path, room.path + "/link") == 0)
        try DiskFile.synchronizeDirectory(of: room.path + "/link/file", calls: room.calls)
        room.calls.inject(.fail(EINVAL), into: [.synchronize], times: 1)
        room.calls.inject(.fail(EIO), into: [.synchronize], after: 1, times: 1)
        try DiskFile.synchronizeDirectory(of: room.path + "/file", calls: room.calls)
        #expect(throws: DiskFileError.failed(errno: EIO)) {
            try DiskFile.synchronizeDirectory(of: room.path + "/file", calls: room.calls)
        }
        try DiskFile.synchronizeDirectory(of: "/file", calls: SystemCalls())
        try DiskFile.synchronizeDirectory(of: "file", calls: SystemCalls())
    }

    @Test func `a descriptor is closed with its last reference`() throws {
        let room = try SegmentTestRoom()
        var file: DiskFile? = try CallsTests.file(room, "file", [1])
        #expect(room.calls.openCount == 1)
        file = nil
        #expect(file == nil && room.calls.openCount == 0)
    }

    @Test func `a write without progress is an error, not an endless loop`() throws {
        let room = try SegmentTestRoom()
        let file = try DiskFile.open("/dev/full", flags: O_RDWR, calls: SystemCalls())
        #expect(throws: DiskFileError.failed(errno: ENOSPC)) { try file.write([1], at: 0) }
        let idle = try DiskFile.open(room.path + "/idle", flags: O_RDWR | O_CREAT, calls: IdleCalls())
        #expect(throws: DiskFileError.failed(errno: EIO)) { try idle.write([1], at: 0) }
        try idle.write([], at: 0)
    }

    @Test func `reading ends with the file`() throws {
        let room = try SegmentTestRoom()
        let file = try CallsTests.file(room, "file", [1, 2, 3])
        #expect(try file.bytes(10, at: 1, waits: true) == [2, 3])
        #expect(try file.bytes(10, at: 3, waits: true) == [])
        #expect(try file.bytes(0, at: 0, waits: true) == [])
        #expect(try file.length() == 3)
    }

    // MARK: what the tests rely on

    @Test func `faults hit the calls they are meant for`() throws {
        let room = try SegmentTestRoom()
        let (one, two) = (try CallsTests.file(room, "one", [1]), try CallsTests.file(room, "two", [2]))
        room.calls.inject(.fail(ENOSPC), into: [.write], path: "/two", after: 1, times: 1)
        for _ in 0..<3 { try one.write([5], at: 0) }
        try two.write([6], at: 0)
        #expect(throws: DiskFileError.failed(errno: ENOSPC)) { try two.write([7], at: 0) }
        try two.write([8], at: 0)
        room.calls.inject(.flip(bit: 3), into: [.read])
        #expect(try two.bytes(1, at: 0, waits: true) == [0])
        room.calls.heal()
        #expect(try two.bytes(1, at: 0, waits: true) == [8])
        #expect(room.calls.count(.write) == 8)
        room.calls.inject(.fail(EIO), into: [.commit], times: 1)
        #expect(room.calls.mayCommit() == Int(-EIO) && room.calls.mayCommit() == 0)
        room.calls.setFree(5)
        #expect(room.calls.free(room.path) == 5)
        let start = ContinuousClock.now
        room.calls.inject(.delay(.milliseconds(20)), into: [.read], times: 1)
        _ = try one.bytes(1, at: 0, waits: true)
        #expect(ContinuousClock.now - start >= .milliseconds(20))
    }

    @Test func `without power nothing works`() throws {
        let room = try SegmentTestRoom()
        let file = try CallsTests.file(room, "file", [1, 2])
        room.calls.cutPower(keeping: .everything)
        #expect(throws: DiskFileError.failed(errno: EIO)) { try file.write([1], at: 0) }
        #expect(throws: DiskFileError.failed(errno: EIO)) { try file.synchronize() }
        #expect(throws: DiskFileError.failed(errno: EIO)) { try file.truncate(to: 0) }
        #expect(throws: DiskReadError.failed(errno: EIO)) { try file.bytes(1, at: 0, waits: true) }
        #expect(room.calls.open(room.path + "/file", flags: O_RDONLY, mode: 0) == Int(-EIO))
        #expect(room.calls.unlink(room.path + "/file") == Int(-EIO))
        #expect(room.calls.rename(room.path + "/file", to: room.path + "/b") == Int(-EIO))
        #expect(room.calls.mayCommit() == Int(-EIO))
        #expect(try room.bytes(of: room.path + "/file") == [1, 2])
    }

    @Test func `a power cut takes back what was not synchronized`() throws {
        let room = try SegmentTestRoom()
        let file = try CallsTests.file(room, "file", segmentBytes(10_000, 1))
        try DiskFile.synchronizeDirectory(of: room.path + "/file", calls: room.calls)
        try file.synchronize()
        try file.write(segmentBytes(9000, 2), at: 5000)
        try file.truncate(to: 12_000)
        try file.write([7], at: 20_000)
        room.calls.cutPower(keeping: .nothing)
        #expect(try room.bytes(of: room.path + "/file") == segmentBytes(10_000, 1))
    }

    @Test func `a power cut in the middle takes some pages`() throws {
        var outcomes = Set<[UInt8]>()
        for seed in 0..<20 as Range<UInt64> {
            let room = try SegmentTestRoom()
            let file = try CallsTests.file(room, "file", .init(repeating: 1, count: 3 * 4096))
            try DiskFile.synchronizeDirectory(of: room.path + "/file", calls: room.calls)
            try file.synchronize()
            try file.write(.init(repeating: 2, count: 4 * 4096), at: 0)
            room.calls.cutPower(keeping: .random(seed: seed))
            let bytes = try room.bytes(of: room.path + "/file")
            #expect(bytes.count == 3 * 4096 || bytes.count == 4 * 4096)
            for page in stride(from: 0, to: bytes.count, by: 4096) {
                #expect(Set(bytes[page..<page + 4096]).count == 1, "a page is there or it is not")
            }
            outcomes.insert(stride(from: 0, to: bytes.count, by: 4096).map { bytes[$0] })
        }
        #expect(outcomes.count > 5)
    }

    @Test func `names are made, removed and changed when their directory is synchronized`() throws {
        for isSynchronized in [false, true] {
            let room = try SegmentTestRoom()
            for name in ["removed", "renamed", "replaced"] { _ = try CallsTests.file(room, name, Array(name.utf8)) }
            try DiskFile.synchronizeDirectory(of: room.path + "/x", calls: room.calls)
            for name in ["removed", "renamed", "replaced"] {
                try DiskFile.open(room.path + "/" + name, flags: O_RDWR, calls: room.calls).synchronize()
            }
            _ = try CallsTests.file(room, "made", [])
            #expect(room.calls.unlink(room.path + "/removed") == 0)
            #expect(room.calls.rename(room.path + "/renamed", to: room.path + "/replaced") == 0)
            #expect(unsafe access(room.path + "/removed", F_OK) != 0)
            if isSynchronized { try DiskFile.synchronizeDirectory(of: room.path + "/x", calls: room.calls) }
            room.calls.cutPower(keeping: .nothing)
            let names = try FileManager.default.contentsOfDirectory(atPath: room.path)
                .filter { !$0.hasPrefix("larder") }.sorted()
            #expect(names == (isSynchronized ? ["made", "replaced"] : ["removed", "renamed", "replaced"]))
            let replaced = try room.bytes(of: room.path + "/replaced")
            #expect(replaced == Array((isSynchronized ? "renamed" : "replaced").utf8))
            if !isSynchronized { #expect(try room.bytes(of: room.path + "/removed") == Array("removed".utf8)) }
        }
    }
}

/// Calls in which writing does nothing.
private struct IdleCalls: DiskCalls {
    let system = SystemCalls()
    func open(_ path: String, flags: CInt, mode: mode_t) -> Int { system.open(path, flags: flags, mode: mode) }
    func close(_ fd: CInt) { system.close(fd) }
    func pwritev(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int) -> Int { 0 }
    func preadv(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool) -> Int { 0 }
    func synchronize(_ fd: CInt) -> Int { 0 }
    func truncate(_ fd: CInt, to length: Int) -> Int { 0 }
    func allocate(_ fd: CInt, offset: Int, length: Int) -> Int { 0 }
    func length(_ fd: CInt) -> Int { 0 }
    func readAhead(_ fd: CInt, offset: Int, length: Int) {}
    func unlink(_ path: String) -> Int { 0 }
    func rename(_ from: String, to: String) -> Int { 0 }
    func mayCommit() -> Int { 0 }
    func free(_ path: String) -> Int { 0 }
}
