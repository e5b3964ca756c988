import Glibc

/// A store opened to be read alone, beside the proxy that may be using it: nothing is locked and nothing written. What is in the
/// book is seen as it was committed last; where a record moved or went meanwhile, the book is asked again.
final class ExportSource {
    let path: String
    let storeID: StoreID
    let book: Book
    private let calls: any DiskCalls
    /// Records of one host often share a segment: a few stay open.
    private var segments: [(number: UInt32, file: SegmentFile)] = []
    private static let segmentsOpenMax = 16

    static func open(_ path: String, calls: any DiskCalls) throws(ArchiveError) -> ExportSource {
        let storeID = try readMarker(path)
        do throws(BookError) {
            let book = try Book.open(
                path + "/book", storeID: bookID(storeID), access: .readOnly, sizeMax: .max, calls: calls)
            return ExportSource(path: path, storeID: storeID, book: book, calls: calls)
        } catch {
            throw .book(path, error)
        }
    }

    init(path: String, storeID: StoreID, book: Book, calls: any DiskCalls) {
        self.path = path
        self.storeID = storeID
        self.book = book
        self.calls = calls
    }

    func close() { book.close() }

    enum Object {
        case packed(StoredHead, body: [UInt8])
        /// The renewed head, where there is one, in place of the file's.
        case large(StoredHead, LargeFile)
    }

    enum Reading {
        case object(Object)
        /// It was removed or evicted since.
        case gone
        /// What stands there is not what was written, or can not be read.
        case damaged
    }

    /// Attempts to follow an object that moves while it is looked for.
    private static let attemptsMax = 5

    func read(_ listed: BookEntry) throws(ArchiveError) -> Reading {
        var entry = listed
        for _ in 1...Self.attemptsMax {
            if let object = try object(of: entry) { return .object(object) }
            let now: BookEntry?
            do throws(BookError) { now = try book.entry(entry.id, key: entry.key) } catch { throw .book(path, error) }
            guard let now else { return .gone }
            if now.place == entry.place, now.hasRenewedHead == entry.hasRenewedHead { return .damaged }
            entry = now
        }
        return .damaged
    }

    /// Nil: it is not there as the entry says.
    private func object(of entry: BookEntry) throws(ArchiveError) -> Object? {
        var found: Object
        do throws(DiskReadError) {
            found = try entry.place.kind == .packed ? packed(entry) : large(entry)
        } catch {
            return nil
        }
        guard entry.hasRenewedHead else { return found }
        let renewal: BookRenewal?
        do throws(BookError) { renewal = try book.renewal(of: entry.id) } catch { throw .book(path, error) }
        guard let renewal else { return nil }
        found.renew(renewal)
        return found
    }

    private func packed(_ entry: BookEntry) throws(DiskReadError) -> Object {
        let file = try segment(entry.place.segment)
        let length = Int(entry.place.bodyLength)
        var failure: DiskReadError?
        var head: StoredHead?
        let body = unsafe [UInt8](unsafeUninitializedCapacity: length) { room, count in
            do throws(DiskReadError) {
                head = unsafe try file.readRecord(entry.place, into: UnsafeMutableRawBufferPointer(room), waits: true)
                count = length
            } catch {
                failure = error
                count = 0
            }
        }
        if let failure { throw failure }
        guard let head, head.id == entry.id, head.key == entry.key else { throw .damaged }
        return .packed(head, body: body)
    }

    private func large(_ entry: BookEntry) throws(DiskReadError) -> Object {
        let number = entry.place.segment
        let path = "\(path)/large/\(hexadecimal(number & 0xFF, digits: 2))/\(hexadecimal(number, digits: 8)).seg"
        do throws(DiskFileError) {
            let file = try LargeFile.open(
                path, SegmentIdentity(store: storeID, number: number), writes: false, calls: calls)
            guard file.id == entry.id, file.head.key == entry.key else { throw DiskFileError.failed(errno: ENOENT) }
            return .large(file.head, file)
        } catch {
            throw DiskReadError(error)
        }
    }

    private func segment(_ number: UInt32) throws(DiskReadError) -> SegmentFile {
        if let open = segments.first(where: { $0.number == number }) { return open.file }
        let file: SegmentFile
        do throws(DiskFileError) {
            file = try SegmentFile.open(
                "\(path)/segments/\(hexadecimal(number, digits: 8)).seg",
                SegmentIdentity(store: storeID, number: number), checksHeader: false, calls: calls)
        } catch {
            throw DiskReadError(error)
        }
        if segments.count == Self.segmentsOpenMax { segments.removeFirst() }
        segments.append((number, file))
        return file
    }

    /// Who the book belongs to, as the book has it.
    private static func bookID(_ storeID: StoreID) -> [UInt8] { Array(storeID.description.utf8) }

    /// The store's name; its marker is read, not locked.
    private static func readMarker(_ path: String) throws(ArchiveError) -> StoreID {
        let fd = unsafe Glibc.open("\(path)/\(Directory.markerName)", O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard fd >= 0 else {
            throw errno == ENOENT ? .noStore(path) : .store(Directory.refusal(path, errno))
        }
        defer { _ = Glibc.close(fd) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = unsafe Glibc.read(fd, &bytes, bytes.count)
        guard count >= 0 else { throw .store(.failed(path: path, errno: errno)) }
        let lines = String(decoding: bytes.prefix(count), as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
        let start = "larder store "
        guard let first = lines.first, first.hasPrefix(start), let version = UInt32(first.dropFirst(start.count))
        else { throw .store(.foreign(path: path)) }
        guard version == Directory.formatVersion else {
            throw .store(.unknownVersion(path: path, version: version))
        }
        guard lines.count >= 2, let storeID = StoreID(String(lines[1])) else { throw .store(.foreign(path: path)) }
        return storeID
    }
}

extension ExportSource.Object {
    fileprivate mutating func renew(_ renewal: BookRenewal) {
        func renewed(_ head: StoredHead) -> StoredHead {
            var head = head
            head.attributes = renewal.attributes
            head.head = renewal.head
            return head
        }
        switch self {
        case .packed(let head, let body): self = .packed(renewed(head), body: body)
        case .large(let head, let file): self = .large(renewed(head), file)
        }
    }
}

private func hexadecimal(_ number: UInt32, digits: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: digits - text.utf8.count) + text
}
