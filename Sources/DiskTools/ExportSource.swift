import Disk
import Glibc

/// A store opened for reading only, next to a proxy that may be using it. Nothing is locked or written. The book is seen as of the last
/// commit; if a record has moved or gone since, the book is asked again.
final class ExportSource {
    let book: Book
    private let store: VerifiedStore
    /// A few segments stay open, because records of one host often share a segment.
    private var segments: [(number: UInt32, file: SegmentFile)] = []
    private static let segmentsOpenMax = 16

    var path: String { store.path }
    var storeID: StoreID { store.id }

    static func open(_ path: String, calls: any DiskCalls) throws(ArchiveError) -> ExportSource {
        let store: VerifiedStore
        do throws(DiskRefusal) {
            store = try VerifiedStore.open(path, locks: false, calls: calls)
        } catch {
            if case .failed(_, errno: ENOENT) = error { throw .noStore(path) }
            throw .store(error)
        }
        do throws(BookError) {
            let book = try Book.open(
                store.bookPath, storeID: store.id.bytes, access: .readOnly, sizeMax: .max, calls: calls)
            return ExportSource(store, book)
        } catch {
            throw .book(path, error)
        }
    }

    init(_ store: VerifiedStore, _ book: Book) {
        self.store = store
        self.book = book
    }

    func close() { book.close() }

    enum Object {
        case packed(StoredHead, body: [UInt8])
        /// The head is the renewed one, if there is one.
        case large(StoredHead, LargeFile)
    }

    enum Reading {
        case object(Object)
        /// The object was removed or evicted meanwhile.
        case gone
        /// The record is damaged or cannot be read.
        case damaged
    }

    /// How often to follow an object that moves.
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

    /// Returns nil if the object is not at the place of the entry.
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
        do throws(DiskFileError) {
            let file = try LargeFile.open(
                store.path(of: number, isLarge: true), store.identity(number), writes: false, calls: store.calls)
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
                store.path(of: number, isLarge: false), store.identity(number), checksHeader: false,
                calls: store.calls)
        } catch {
            throw DiskReadError(error)
        }
        if segments.count == Self.segmentsOpenMax { segments.removeFirst() }
        segments.append((number, file))
        return file
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
