import Foundation
import Glibc
import Testing

@testable import Disk

@Suite("The directory of a disk store")
struct DirectoryTests {
    private let room = DiskStoreTestRoom()
    private var path: String { room.path }
    private var marker: String { path + "/larder-store" }

    private func make() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    private func write(_ text: String, _ name: String) throws {
        try Data(text.utf8).write(to: URL(filePath: path + "/" + name))
    }

    private func open() throws(DiskRefusal) -> Directory { try Directory.open(path, size: Directory.sizeMin) }

    /// Names and bytes of all files below.
    private func contents() throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
            contents[name] = FileManager.default.contents(atPath: path + "/" + name) ?? Data()
        }
        return contents
    }

    @Test func `a missing directory is created for our user alone, with a marker`() throws {
        let directory = try open()
        #expect(directory.isNew)
        var status = stat()
        #expect(unsafe stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o700)
        #expect(try String(contentsOfFile: marker, encoding: .utf8) == "larder store 1\n\(directory.storeID)\n")
        #expect(try Directory.entries(path) == ["larder-store"])
    }

    @Test func `its id stays`() throws {
        let first = try open()
        let id = first.storeID
        first.unlock()
        let second = try open()
        #expect(second.storeID == id)
        #expect(!second.isNew)
    }

    @Test func `an empty directory is accepted, and a mount point too`() throws {
        try make()
        try FileManager.default.createDirectory(atPath: path + "/lost+found", withIntermediateDirectories: false)
        #expect(try open().isNew)
    }

    @Test(arguments: ["", "larder st", "larder store 1\n12"])
    func `a marker that was being written when the process was killed is written again`(_ text: String) throws {
        try make()
        try write(text, "larder-store.new")
        let id = try open().storeID
        #expect(try String(contentsOfFile: marker, encoding: .utf8) == "larder store 1\n\(id)\n")
    }

    @Test func `an open directory is locked, and free afterwards`() throws {
        let first = try open()
        #expect(throws: DiskRefusal.inUse(path: path)) { try open() }
        first.unlock()
        #expect(throws: Never.self) { try open() }
    }

    @Test func `the lock ends with the last reference to the directory`() throws {
        do { _ = try open() }
        #expect(throws: Never.self) { try open() }
    }

    @Test func `a directory with other files is refused and not changed`() throws {
        try make()
        try write("mine", "letter")
        let before = try contents()
        #expect(throws: DiskRefusal.foreign(path: path)) { try open() }
        #expect(try contents() == before)
    }

    @Test(arguments: ["", "larder store", "larder store x\n", "larder store 1\n", "larder store 1\n123\n", "squid\n"])
    func `a directory with an invalid marker is refused`(_ text: String) throws {
        try make()
        try write(text, "larder-store")
        let before = try contents()
        #expect(throws: DiskRefusal.foreign(path: path)) { try open() }
        #expect(try contents() == before)
    }

    @Test func `an unknown version is refused, and nothing is changed`() throws {
        try make()
        try write("larder store 2\nwhatever stands here then\n", "larder-store")
        let before = try contents()
        #expect(throws: DiskRefusal.unknownVersion(path: path, version: 2)) { try open() }
        #expect(try contents() == before)
    }

    @Test(arguments: [0o770, 0o777, 0o702]) func `a directory that others can write to is refused`(_ mode: Int) throws {
        try make()
        #expect(unsafe chmod(path, mode_t(mode)) == 0)
        #expect(throws: DiskRefusal.openToOthers(path: path, mode: UInt32(mode))) { try open() }
        #expect(try contents().isEmpty)
    }

    @Test func `a directory that others can read is accepted`() throws {
        try make()
        #expect(unsafe chmod(path, 0o755) == 0)
        #expect(throws: Never.self) { try open() }
    }

    @Test func `a path that is no directory, or has no parent, is an error`() throws {
        try make()
        try write("", "file")
        #expect(throws: DiskRefusal.failed(path: path + "/file", errno: ENOTDIR)) {
            try Directory.open(path + "/file", size: Directory.sizeMin)
        }
        #expect(throws: DiskRefusal.failed(path: path + "/a/b", errno: ENOENT)) {
            try Directory.open(path + "/a/b", size: Directory.sizeMin)
        }
    }

    @Test func `a marker that is a link is not followed`() throws {
        try make()
        try FileManager.default.createSymbolicLink(atPath: marker, withDestinationPath: "/etc/passwd")
        #expect(throws: DiskRefusal.failed(path: path, errno: ELOOP)) { try open() }
    }

    @Test(.enabled(if: getuid() != 0, "root may do everything")) func `a directory that we cannot write to is refused`()
        throws
    {
        try make()
        #expect(unsafe chmod(path, 0o500) == 0)
        #expect(throws: DiskRefusal.notAllowed(path: path, errno: EACCES)) { try open() }
        #expect(unsafe chmod(path, 0o700) == 0)
    }

    @Test func `a size that is too small is refused before anything is created`() throws {
        #expect(throws: DiskRefusal.tooSmall(path: path, sizeMin: Directory.sizeMin)) {
            try Directory.open(path, size: Directory.sizeMin - 1)
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `the files of a store are found by their numbers, and other files are ignored`() throws {
        let directory = try open()
        try directory.makeSubdirectories()
        for name in [
            "0000000a.seg", "7fffffff.seg", "a.seg", "0000000b.tmp", "0000000C.seg", "+000000d.seg", "80000000.seg",
            "ffffffff.seg",
        ] {
            try write("", "segments/" + name)
        }
        try FileManager.default.createDirectory(atPath: path + "/large/0c", withIntermediateDirectories: true)
        try write("", "large/0c/0000010c.seg")
        let numbers = try directory.fileNumbers()
        #expect(numbers.segments.sorted() == [10, 0x7FFF_FFFF])
        #expect(numbers.large == [0x10C])
        #expect(directory.largePath(0x10C) == path + "/large/0c/0000010c.seg")
        #expect(directory.segmentPath(10) == path + "/segments/0000000a.seg")
    }
}
