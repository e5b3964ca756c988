import Foundation
import Glibc

/// What goes wrong with files.
enum Damage: CaseIterable, Sendable {
    case bitOfSegment, bitOfLarge, bitOfBook, pageOfBook, endOfSegment, endOfLarge, zerosInSegment

    /// A removal that stood in the bytes that were damaged may be forgotten.
    var isForgetful: Bool { self == .bitOfSegment || self == .endOfSegment || self == .zerosInSegment }

    private var folder: String {
        switch self {
        case .bitOfSegment, .endOfSegment, .zerosInSegment: "segments"
        case .bitOfLarge, .endOfLarge: "large"
        case .bitOfBook, .pageOfBook: "book"
        }
    }

    /// Damages a file of a store that nobody uses.
    /// - Returns: what was done; nil where there is no such file.
    func strike(_ store: String, _ dice: inout Dice) -> String? {
        let files = Self.files(below: "\(store)/\(folder)").filter { !$0.hasSuffix("lock.mdb") }
        guard !files.isEmpty else { return nil }
        let path = files[dice.below(files.count)]
        let fd = unsafe open(path, O_RDWR | O_CLOEXEC)
        guard fd >= 0 else { return nil }
        defer { close(fd) }
        let size = Int(lseek(fd, 0, SEEK_END))
        guard size > 0 else { return nil }
        // Heads are a small part of all bytes, and the more delicate one.
        let at = dice.oneIn(3) ? dice.below(min(size, 16_384)) : dice.below(size)
        switch self {
        case .bitOfSegment, .bitOfLarge, .bitOfBook:
            var byte: UInt8 = 0
            unsafe pread(fd, &byte, 1, off_t(at))
            byte ^= 1 << UInt8(dice.below(8))
            unsafe pwrite(fd, &byte, 1, off_t(at))
            return "a bit flipped at \(at) of \(path), \(size) bytes long"
        case .zerosInSegment, .pageOfBook:
            let zeros = [UInt8](repeating: 0, count: 4096)
            let start = at & ~4095
            unsafe pwrite(fd, zeros, min(4096, size - start), off_t(start))
            return "zeros from \(start) of \(path), \(size) bytes long"
        case .endOfSegment, .endOfLarge:
            ftruncate(fd, off_t(at))
            return "\(path) cut from \(size) to \(at) bytes"
        }
    }

    static func files(below directory: String) -> [String] {
        let names = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
        return names.sorted().map { "\(directory)/\($0)" }.filter {
            var isDirectory: ObjCBool = false
            return unsafe FileManager.default.fileExists(atPath: $0, isDirectory: &isDirectory)
                && !isDirectory.boolValue
        }
    }
}

/// Bytes that the files below a directory take of the disk.
func bytesTaken(below directory: String) -> Int {
    Damage.files(below: directory).reduce(0) { sum, path in
        var status = stat()
        return unsafe lstat(path, &status) == 0 ? sum + Int(status.st_blocks) * 512 : sum
    }
}
