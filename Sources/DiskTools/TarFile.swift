import Disk
import Glibc

/// A member of an archive, and where its bytes are.
struct TarEntry: Equatable, Sendable {
    var name: [UInt8]
    var size: UInt64
    /// Where its header begins.
    var start: UInt64
    /// Where its content begins.
    var offset: UInt64
    /// Where the next member begins.
    var end: UInt64 { offset + Tar.padded(size) }
}

/// Reads the members of an archive one after the other.
struct TarReader {
    enum Failure: Error, Equatable {
        /// The file ends within a member, or without the end mark.
        case cutOff
        /// There is no header where one is expected.
        case damaged
        case failed(errno: CInt)
    }

    private let file: DiskFile
    let length: UInt64
    /// Where the next header is. After the end mark: behind it.
    private(set) var offset: UInt64 = 0
    private static let recordsBytesMax: UInt64 = 1 << 20

    init(_ file: DiskFile) throws(Failure) {
        self.file = file
        do throws(DiskFileError) {
            length = UInt64(try file.length())
        } catch {
            throw Failure(error)
        }
    }

    /// The next member. Returns nil at the end mark. If this throws, `offset` is the end of the last whole member.
    mutating func next() throws(Failure) -> TarEntry? {
        let start = offset
        var at = offset
        var (name, size): ([UInt8]?, UInt64?) = (nil, nil)
        while true {
            let header = try header(at)
            at += UInt64(Tar.blockBytes)
            switch header {
            case .end:
                guard name == nil, size == nil, try self.header(at) == .end else { throw .damaged }
                offset = at + UInt64(Tar.blockBytes)
                return nil
            case .extended(let bytes):
                guard bytes <= Self.recordsBytesMax else { throw .damaged }
                let records = try read(at, Int(bytes))
                do throws(Tar.Failure) { (name, size) = try Tar.readRecords(records) } catch { throw .damaged }
                at += Tar.padded(bytes)
            case .other(let bytes):
                guard bytes <= length else { throw .cutOff }
                at += Tar.padded(bytes)
            case .file(let short, let plain, _):
                let entry = TarEntry(name: name ?? short, size: size ?? plain, start: start, offset: at)
                guard entry.size <= length, entry.end <= length else { throw .cutOff }
                offset = entry.end
                return entry
            }
        }
    }

    /// After damage: continues at the next block that is the header of a file. Returns nil if there is none.
    mutating func skipDamage() throws(Failure) -> UInt64? {
        var at = offset + UInt64(Tar.blockBytes)
        while at + UInt64(Tar.blockBytes) <= length {
            let block = try read(at, Tar.blockBytes)
            if let header = try? Tar.readHeader(block), header != .end {
                offset = at
                return at
            }
            at += UInt64(Tar.blockBytes)
        }
        return nil
    }

    /// Reads bytes of a member.
    func bytes(of entry: TarEntry, from offset: UInt64 = 0, count: Int) throws(Failure) -> [UInt8] {
        precondition(count >= 0 && offset + UInt64(count) <= entry.size, "the range lies within the member")
        return try read(entry.offset + offset, count)
    }

    /// Reads exactly this range of the file.
    func read(_ at: UInt64, _ count: Int) throws(Failure) -> [UInt8] {
        guard at + UInt64(count) <= length else { throw .cutOff }
        let bytes: [UInt8]
        do throws(DiskReadError) {
            bytes = try file.bytes(count, at: Int(at), waits: true)
        } catch {
            if case .failed(let code) = error { throw .failed(errno: code) }
            throw .failed(errno: EIO)
        }
        guard bytes.count == count else { throw .cutOff }
        return bytes
    }

    private func header(_ at: UInt64) throws(Failure) -> Tar.Header {
        let block = try read(at, Tar.blockBytes)
        do throws(Tar.Failure) { return try Tar.readHeader(block) } catch { throw .damaged }
    }
}

extension TarReader.Failure {
    init(_ error: DiskFileError) {
        if case .failed(let code) = error { self = .failed(errno: code) } else { self = .damaged }
    }
}

/// Writes an archive from a given offset on, in large pieces.
struct TarWriter {
    private let file: DiskFile
    private var held: [UInt8] = []
    /// Where `held` will be written.
    private var written: UInt64
    private static let heldBytesMax = 1 << 20

    /// Where the next byte will be.
    var offset: UInt64 { written + UInt64(held.count) }

    init(_ file: DiskFile, from offset: UInt64) {
        self.file = file
        written = offset
    }

    mutating func append(_ bytes: [UInt8]) throws(DiskFileError) {
        held += bytes
        if held.count >= Self.heldBytesMax { try flush() }
    }

    mutating func flush() throws(DiskFileError) {
        guard !held.isEmpty else { return }
        try file.write(held, at: Int(written))
        written += UInt64(held.count)
        held.removeAll(keepingCapacity: true)
    }
}
