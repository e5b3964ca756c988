import Disk
import Glibc

/// A member of an archive, and where its bytes stand.
struct TarEntry: Equatable, Sendable {
    var name: [UInt8]
    var size: UInt64
    /// Where its header begins.
    var start: UInt64
    /// Of its first byte.
    var offset: UInt64
    /// Where the next one begins.
    var end: UInt64 { offset + Tar.padded(size) }
}

/// Walks through the members of an archive.
struct TarReader {
    enum Failure: Error, Equatable {
        /// The file ends within a member, or without the mark of the end.
        case cutOff
        /// No header stands where one should.
        case damaged
        case failed(errno: CInt)
    }

    private let file: DiskFile
    let length: UInt64
    /// Where the next header stands: behind the mark once that was met.
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

    /// Nil at the mark of the end. Where it throws, `offset` is where the last whole member ended.
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

    /// After damage: goes on at the next block that is the header of a file; nil where there is none.
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

    /// Bytes of a member.
    func bytes(of entry: TarEntry, from offset: UInt64 = 0, count: Int) throws(Failure) -> [UInt8] {
        precondition(offset + UInt64(count) <= entry.size, "the member has them")
        return try read(entry.offset + offset, count)
    }

    /// All that stands at a place, of the file.
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

/// Writes an archive from a place on, some bytes at a time.
struct TarWriter {
    private let file: DiskFile
    private var held: [UInt8] = []
    /// Where `held` goes.
    private var written: UInt64
    private static let heldBytesMax = 1 << 20

    /// Where the next byte goes.
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
