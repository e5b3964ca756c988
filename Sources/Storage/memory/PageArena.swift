internal import CLarder
internal import Glibc
internal import Synchronization

/// Memory for the longer pages of bodies, in a file without a name (memfd_create(2)). It is mapped, so bodies are written and read
/// like any other memory; and sendfile(2) gives its pages to a socket by reference, without the copy that `writev` makes.
///
/// The kernel reads a page that was sent until the peer has acknowledged it, which may be long after the call. So a slot that was
/// ever sent is not used again as it is: `free` punches its pages out of the file, which leaves those that are in flight to the
/// kernel, and the slot gets fresh ones. A slot that was never sent may stay as it is (`SparePages`).
///
/// The file is divided into slots of one whole page (`BodyLayout.pageBytes`). A shorter page takes a slot as well, but only as much
/// memory as it is long: what nobody has written does not exist. The lowest free slot is taken, so the pages of one body mostly
/// are neighbours, and one call sends several.
///
/// If the system gives no such file, or all slots are taken, pages come from malloc(3), and are sent by copying.
@safe final class PageArena: @unchecked Sendable {
    static let slotBytes = BodyLayout.pageBytes
    /// Shorter pages come from malloc(3): they are sooner copied (`Body.fileBytesMin`).
    static let pageBytesMin = Body.fileBytesMin

    let descriptor: CInt
    private let base: UnsafeMutableRawPointer
    private let byteCount: Int
    private let lock = LockBank(count: 1)
    /// A bit for each slot that is taken. Under the lock.
    private let taken: UnsafeMutablePointer<UInt64>
    private let wordCount: Int
    /// No word before this one has a free slot. Under the lock.
    private var firstFree = 0
    /// How many bytes of its slot each page may use, in units of 4 KiB. Written when the slot is taken.
    private let units: UnsafeMutablePointer<UInt8>
    /// Whether bytes of a slot were sent since it was punched. Readers on several threads may set it at once; it is cleared by the
    /// thread that frees the slot, which no reader uses any more.
    private let sent: UnsafeMutablePointer<Atomic<UInt8>>

    private static let unitBytes = 4096

    /// Reserves addresses, but no memory. Returns nil if the system refuses.
    /// - Parameter byteCount: how many bytes may be in use at once. A multiple of 64 slots.
    init?(byteCount: Int) {
        precondition(byteCount > 0 && byteCount % (64 * Self.slotBytes) == 0, "whole words of slots")
        let file = unsafe clarder_memory_file("larder-bodies")
        guard file >= 0 else { return nil }
        let protection = PROT_READ | PROT_WRITE
        guard ftruncate(file, off_t(byteCount)) == 0,
            let mapped = unsafe mmap(nil, byteCount, protection, MAP_SHARED | MAP_NORESERVE, file, 0),
            unsafe mapped != MAP_FAILED
        else {
            close(file)
            return nil
        }
        // Bodies may be private: they do not belong in a core file.
        unsafe madvise(mapped, byteCount, MADV_DONTDUMP)
        let slots = byteCount / Self.slotBytes
        descriptor = file
        self.byteCount = byteCount
        wordCount = slots / 64
        unsafe base = unsafe mapped
        // By calloc(3): a table of a large arena takes memory only where it is used.
        unsafe taken = Self.zeros(slots / 64)
        unsafe units = Self.zeros(slots)
        unsafe sent = Self.zeros(slots)
    }

    deinit {
        unsafe munmap(base, byteCount)
        close(descriptor)
        unsafe Glibc.free(taken)
        unsafe Glibc.free(units)
        unsafe Glibc.free(sent)
    }

    private static func zeros<Element: ~Copyable>(_ count: Int) -> UnsafeMutablePointer<Element> {
        guard let memory = unsafe calloc(count, MemoryLayout<Element>.stride) else {
            fatalError("no memory for a table")
        }
        return unsafe memory.bindMemory(to: Element.self, capacity: count)
    }

    /// The memory that a page of this many bytes takes.
    static func footprint(_ bytes: Int) -> Int { (bytes + unitBytes - 1) / unitBytes * unitBytes }

    /// Whether a page of this many bytes belongs here.
    static func serves(_ bytes: Int) -> Bool { (pageBytesMin...slotBytes).contains(bytes) }

    /// Takes a slot for a page. Returns nil if none is free.
    func take(_ bytes: Int) -> UnsafeMutableRawPointer? {
        precondition(Self.serves(bytes), "a page of another length comes from malloc")
        let slot: Int? = lock.withLock(0) {
            while firstFree < wordCount {
                let word = unsafe taken[firstFree]
                if word != .max {
                    let bit = (~word).trailingZeroBitCount
                    unsafe taken[firstFree] = word | 1 << UInt64(bit)
                    return firstFree * 64 + bit
                }
                firstFree += 1
            }
            return nil
        }
        guard let slot else { return nil }
        unsafe units[slot] = UInt8(Self.footprint(bytes) / Self.unitBytes)
        let start = unsafe base + slot * Self.slotBytes
        // One call is cheaper than a fault for each 4 KiB.
        unsafe clarder_populate(start, Self.footprint(bytes))
        return unsafe start
    }

    /// Gives the memory back to the system, but for what the kernel is still sending, and the slot to the next page.
    func free(_ page: UnsafeMutableRawPointer) {
        let slot = unsafe slot(of: page)
        guard clarder_punch(descriptor, off_t(slot * Self.slotBytes), off_t(Self.slotBytes)) == 0 else {
            // Bytes in flight must stay what they are, so the slot is never used again. No kernel that has these files does this.
            return
        }
        unsafe sent[slot].store(0, ordering: .relaxed)
        lock.withLock(0) {
            unsafe taken[slot / 64] &= ~(1 << UInt64(slot % 64))
            firstFree = min(firstFree, slot / 64)
        }
    }

    @inline(__always)
    func contains(_ page: UnsafeRawPointer) -> Bool { unsafe page >= base && page < base + byteCount }

    /// The memory that a page of the arena takes.
    func size(of page: UnsafeRawPointer) -> Int { unsafe Int(units[slot(of: page)]) * Self.unitBytes }

    /// Whether bytes of the page were ever sent.
    func wasSent(_ page: UnsafeRawPointer) -> Bool { unsafe sent[slot(of: page)].load(ordering: .relaxed) != 0 }

    /// The range of the file where these bytes are, which may now be sent.
    func share(_ start: UnsafeRawPointer, _ count: Int) -> FileRange {
        precondition(unsafe count > 0 && contains(start) && contains(start + count - 1), "bytes of the arena")
        for slot in unsafe slot(of: start)...slot(of: start + count - 1) {
            unsafe sent[slot].store(1, ordering: .relaxed)
        }
        return unsafe FileRange(
            descriptor: descriptor, offset: start - UnsafeRawPointer(base), count: count, owner: nil)
    }

    private func slot(of page: UnsafeRawPointer) -> Int { unsafe (page - UnsafeRawPointer(base)) / Self.slotBytes }
}
