import Testing

@testable import Disk

@Suite("Errors of the disk in words")
struct ErrorTextTests {
    static let rows: [(error: any CustomStringConvertible & Sendable, text: String)] = [
        (DiskFileError.failed(errno: 28), "No space left on device"),
        (DiskReadError.failed(errno: 5), "Input/output error"),
        (BookError.failed(errno: 5), "the book cannot be read or written: Input/output error"),
        (DiskRefusal.notAllowed(path: "/p", errno: 13), "/p: Permission denied"),
        (DiskRefusal.failed(path: "/p", errno: 20), "/p: Not a directory"),
        (DiskRefusal.tooSmall(path: "/p", sizeMin: 16 << 20), "/p: a store needs at least 16MiB"),
    ]

    @Test(arguments: rows.indices) func `an error of the kernel is told in its words`(_ index: Int) {
        #expect(Self.rows[index].error.description == Self.rows[index].text)
    }
}
