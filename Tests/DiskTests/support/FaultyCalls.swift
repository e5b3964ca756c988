import EventLoop
import Foundation
import Glibc

@testable import Disk

/// Calls that fail where a test wants them to, and a disk whose power can be cut.
///
///     let calls = FaultyCalls()
///     calls.inject(.fail(ENOSPC), into: [.write], path: ".seg", after: 3, times: 1)
///     …
///     calls.cutPower(keeping: .random(seed: 7))       // every later call fails with EIO
///     … DiskStore.open(options, calls: FaultyCalls())  // and again
///
/// **Power.** From the first call on it remembers what the medium may still have in place of what was written: of each file the
/// old bytes of the pages (4096 bytes) written since it was last synchronized, and its length then; of each directory the names made,
/// removed and renamed since. `cutPower` puts back all of that, or for each page, length and name at random. A removed file is
/// moved aside until its directory is synchronized. Pages are kept or lost independently of each other and of the length.
/// What LMDB writes goes past this: the book is as if each of its commits were on the medium, which is what it promises.
///
/// Used by any thread. Everything is under one lock, delays excepted.
final class FaultyCalls: DiskCalls {
    enum Kind: Hashable, CaseIterable {
        case open, write, read, synchronize, truncate, allocate, length, unlink, rename, commit, free
    }

    enum Fault: Equatable {
        case fail(CInt)
        /// Reads and writes do this many bytes of what they were asked for, at least one.
        case short(Int)
        /// Reads that may not block do; others are as ever.
        case wouldBlock
        /// They take so long, and then do what they should.
        case delay(Duration)
        /// Reads give bytes in which one bit is another: the `bit`th of what was asked for, counted round.
        case flip(bit: Int)
    }

    /// What of the unsynchronized is on the medium when the power goes.
    enum Survival: Equatable {
        case nothing
        case everything
        case random(seed: UInt64)
    }

    private struct Rule {
        var fault: Fault
        var kinds: Set<Kind>
        var path: String
        var skips: Int
        var times: Int
    }

    private struct State {
        var rules: [Rule] = []
        var counts: [Kind: Int] = [:]
        var readBytes = 0
        var isOff = false
        /// Of open descriptors.
        var paths: [CInt: String] = [:]
        var files: [String: Unsynchronized] = [:]
        var names: [NameChange] = []
        var asideCount = 0
        var freeBytes: Int?
    }

    /// What the medium may still have of one file.
    private struct Unsynchronized {
        var length: Int
        var pages: [Int: [UInt8]] = [:]
    }

    private enum NameChange {
        case made(String)
        case removed(String, aside: String)
        case renamed(from: String, to: String, aside: String?)

        var directories: Set<String> {
            switch self {
            case .made(let path), .removed(let path, _): [parent(of: path)]
            case .renamed(let from, let to, _): [parent(of: from), parent(of: to)]
            }
        }
        var aside: String? {
            switch self {
            case .made: nil
            case .removed(_, let aside): aside
            case .renamed(_, _, let aside): aside
            }
        }
    }

    private let inner: any DiskCalls
    private let state = Locked(State())
    private let asidePath: String
    private static let pageBytes = 4096

    /// - Parameter aside: where removed files wait, in the same file system as the store; otherwise they are gone at once.
    init(_ inner: any DiskCalls = SystemCalls(), aside: String = FileManager.default.temporaryDirectory.path) {
        self.inner = inner
        asidePath = "\(aside)/larder-aside-\(UUID().uuidString)"
    }

    deinit { try? FileManager.default.removeItem(atPath: asidePath) }

    // MARK: faults

    /// Lets calls fail.
    /// - Parameters:
    ///   - path: what their path contains; empty: any. A read or write has the path its file was opened with.
    ///   - skips: so many of these calls are left alone before.
    ///   - times: then so many fail.
    func inject(_ fault: Fault, into kinds: Set<Kind>, path: String = "", after skips: Int = 0, times: Int = .max) {
        state.withLock {
            $0.rules.append(Rule(fault: fault, kinds: kinds, path: path, skips: skips, times: times))
        }
    }

    /// All faults are over.
    func heal() { state.withLock { $0.rules = [] } }

    /// What `free` answers; nil: the truth.
    func setFree(_ bytes: Int?) { state.withLock { $0.freeBytes = bytes } }

    /// Calls of a kind so far, those that failed included.
    func count(_ kind: Kind) -> Int { state.withLock { $0.counts[kind] ?? 0 } }

    /// How many bytes all reads gave.
    var readBytes: Int { state.withLock { $0.readBytes } }

    /// Of descriptors that are open.
    var paths: [String] { state.withLock { Array($0.paths.values) } }

    /// Descriptors that are open.
    var openCount: Int { state.withLock { $0.paths.count } }

    // MARK: power

    /// From now on each call fails with EIO, and the files are as they might be found when the power is back. Use other calls then.
    func cutPower(keeping survival: Survival) {
        state.withLock { state in
            guard !state.isOff else { return }
            state.isOff = true
            var random = Random(survival)
            for change in state.names.reversed() where !random.keeps() { undo(change, &state) }
            for (path, old) in state.files.sorted(by: { $0.key < $1.key }) { restore(path, old, &random) }
        }
    }

    private func restore(_ path: String, _ old: Unsynchronized, _ random: inout Random) {
        let fd = unsafe Glibc.open(path, O_RDWR)
        guard fd >= 0 else { return }
        defer { Glibc.close(fd) }
        let length = Int(lseek(fd, 0, SEEK_END))
        for (page, bytes) in old.pages.sorted(by: { $0.key < $1.key }) where !random.keeps() {
            // Where the file was shorter the page had nothing: zeros, if the length is kept.
            let start = page * FaultyCalls.pageBytes
            let whole = bytes + [UInt8](repeating: 0, count: FaultyCalls.pageBytes - bytes.count)
            let count = min(whole.count, length - start)
            if count > 0 { _ = unsafe whole.withUnsafeBytes { unsafe pwrite(fd, $0.baseAddress, count, start) } }
        }
        if !random.keeps() { _ = ftruncate(fd, old.length) }
    }

    private func undo(_ change: NameChange, _ state: inout State) {
        switch change {
        case .made(let path):
            delete(path)
            state.files[path] = nil
        case .removed(let path, let aside):
            move(aside, path)
            state.files[path] = state.files.removeValue(forKey: aside)
        case .renamed(let from, let to, let aside):
            move(to, from)
            state.files[from] = state.files.removeValue(forKey: to)
            if let aside { move(aside, to) }
        }
    }

    // MARK: calls

    func open(_ path: String, flags: CInt, mode: mode_t) -> Int {
        if let error = failure(.open, path) { return error }
        return state.withLock { state in
            if state.isOff { return Int(-EIO) }
            var path = path
            while path.count > 1, path.hasSuffix("/") { path.removeLast() }
            let existed = exists(path)
            if existed, flags & O_TRUNC != 0 { remember(path, 0..<size(path), &state) }
            let fd = inner.open(path, flags: flags, mode: mode)
            guard fd >= 0 else { return fd }
            state.paths[CInt(fd)] = path
            if !existed { state.names.append(.made(path)) }
            return fd
        }
    }

    func close(_ fd: CInt) {
        state.withLock { $0.paths[fd] = nil }
        inner.close(fd)
    }

    func pwritev(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int) -> Int {
        var limit = Int.max
        let path = path(fd)
        switch failure(.write, path, short: &limit) {
        case let error?: return error
        case nil: break
        }
        return state.withLock { state in
            if state.isOff { return Int(-EIO) }
            let wanted = (0..<count).reduce(0) { unsafe $0 + vectors[$1].iov_len }
            remember(path, offset..<offset + min(wanted, limit), &state)
            return unsafe limited(vectors, count, limit) { unsafe inner.pwritev(fd, $0, $1, at: offset) }
        }
    }

    func preadv(_ fd: CInt, _ vectors: UnsafePointer<iovec>, _ count: Int, at offset: Int, waits: Bool) -> Int {
        var limit = Int.max
        var flip: Int?
        if let error = failure(.read, path(fd), short: &limit, flip: &flip, waits: waits) { return error }
        return unsafe limited(vectors, count, limit) { vectors, count in
            let got = unsafe inner.preadv(fd, vectors, count, at: offset, waits: waits)
            if let flip, got > 0 { unsafe FaultyCalls.flip(flip % (got * 8), vectors) }
            state.withLock { $0.readBytes += max(got, 0) }
            return got
        }
    }

    func synchronize(_ fd: CInt) -> Int {
        let path = path(fd)
        if let error = failure(.synchronize, path) { return error }
        return state.withLock { state in
            if state.isOff { return Int(-EIO) }
            // The names first: what was put aside is gone for good.
            let gone = state.names.filter { $0.directories.contains(path) }
            for change in gone { if let aside = change.aside { delete(aside) } }
            state.names.removeAll { $0.directories.contains(path) }
            state.files[path] = nil
            return inner.synchronize(fd)
        }
    }

    func truncate(_ fd: CInt, to length: Int) -> Int {
        let path = path(fd)
        if let error = failure(.truncate, path) { return error }
        return state.withLock { state in
            if state.isOff { return Int(-EIO) }
            let now = inner.length(fd)
            remember(path, min(length, now)..<now, &state)
            return inner.truncate(fd, to: length)
        }
    }

    func allocate(_ fd: CInt, offset: Int, length: Int) -> Int {
        failure(.allocate, path(fd)) ?? inner.allocate(fd, offset: offset, length: length)
    }

    func length(_ fd: CInt) -> Int { failure(.length, path(fd)) ?? inner.length(fd) }

    func readAhead(_ fd: CInt, offset: Int, length: Int) { inner.readAhead(fd, offset: offset, length: length) }

    func unlink(_ path: String) -> Int {
        if let error = failure(.unlink, path) { return error }
        return state.withLock { state in
            if state.isOff { return Int(-EIO) }
            guard let aside = putAside(path, &state) else { return inner.unlink(path) }
            state.names.append(.removed(path, aside: aside))
            state.files[aside] = state.files.removeValue(forKey: path)
            return 0
        }
    }

    func rename(_ from: String, to: String) -> Int {
        if let error = failure(.rename, from) { return error }
        return state.withLock { state in
            if state.isOff { return Int(-EIO) }
            let aside = putAside(to, &state)
            let status = inner.rename(from, to: to)
            guard status == 0 else {
                if let aside { move(aside, to) }
                return status
            }
            state.names.append(.renamed(from: from, to: to, aside: aside))
            state.files[to] = state.files.removeValue(forKey: from)
            for (fd, path) in state.paths where path == from { state.paths[fd] = to }
            return 0
        }
    }

    func mayCommit() -> Int { failure(.commit, "book") ?? inner.mayCommit() }

    func free(_ path: String) -> Int {
        failure(.free, path) ?? state.withLock { $0.freeBytes } ?? inner.free(path)
    }
}

extension FaultyCalls {
    private func path(_ fd: CInt) -> String { state.withLock { $0.paths[fd] ?? "" } }

    private func failure(_ kind: Kind, _ path: String) -> Int? {
        var short = Int.max
        return failure(kind, path, short: &short)
    }

    private func failure(_ kind: Kind, _ path: String, short: inout Int) -> Int? {
        var flip: Int?
        return failure(kind, path, short: &short, flip: &flip, waits: true)
    }

    /// What a call is to return, nil: it is made.
    private func failure(
        _ kind: Kind, _ path: String, short: inout Int, flip: inout Int?, waits: Bool
    ) -> Int? {
        let (isOff, faults) = state.withLock { state in
            state.counts[kind, default: 0] += 1
            return (state.isOff, due(kind, path, waits, &state.rules))
        }
        if isOff { return Int(-EIO) }
        for fault in faults {
            switch fault {
            case .fail(let code): return Int(-code)
            case .wouldBlock: return Int(-EAGAIN)
            case .short(let bytes): short = min(short, max(bytes, 1))
            case .delay(let duration):
                let (seconds, attoseconds) = duration.components
                usleep(UInt32(seconds) * 1_000_000 + UInt32(attoseconds / 1_000_000_000_000))
            case .flip(let bit): flip = bit
            }
        }
        return nil
    }

    private func due(_ kind: Kind, _ path: String, _ waits: Bool, _ rules: inout [Rule]) -> [Fault] {
        var faults: [Fault] = []
        for index in rules.indices {
            let rule = rules[index]
            guard rule.kinds.contains(kind), rule.path.isEmpty || path.contains(rule.path) else { continue }
            if rule.fault == .wouldBlock && waits { continue }
            if rule.skips > 0 {
                rules[index].skips -= 1
            } else if rule.times > 0 {
                rules[index].times -= 1
                faults.append(rule.fault)
            }
        }
        return faults
    }

    /// Keeps the bytes that are about to change.
    private func remember(_ path: String, _ range: Range<Int>, _ state: inout State) {
        guard !path.isEmpty else { return }
        let fd = unsafe Glibc.open(path, O_RDONLY)
        guard fd >= 0 else { return }  // deleted: nothing of it can come back
        defer { Glibc.close(fd) }
        var old = state.files[path] ?? Unsynchronized(length: Int(lseek(fd, 0, SEEK_END)))
        var page = range.lowerBound / FaultyCalls.pageBytes
        while page * FaultyCalls.pageBytes < range.upperBound {
            if old.pages[page] == nil {
                old.pages[page] = unsafe [UInt8](unsafeUninitializedCapacity: FaultyCalls.pageBytes) { room, count in
                    let start = page * FaultyCalls.pageBytes
                    count = max(0, unsafe pread(fd, room.baseAddress, FaultyCalls.pageBytes, start))
                }
            }
            page += 1
        }
        state.files[path] = old
    }

    /// nil: there is no such file, or it cannot be moved.
    private func putAside(_ path: String, _ state: inout State) -> String? {
        guard exists(path) else { return nil }
        state.asideCount += 1
        _ = unsafe mkdir(asidePath, 0o700)
        let aside = "\(asidePath)/\(state.asideCount)"
        return move(path, aside) ? aside : nil
    }

    private func limited(
        _ vectors: UnsafePointer<iovec>, _ count: Int, _ limit: Int, _ call: (UnsafePointer<iovec>, Int) -> Int
    ) -> Int {
        var some = unsafe [iovec]()
        var left = limit
        for index in 0..<count where left > 0 {
            var vector = unsafe vectors[index]
            unsafe vector.iov_len = min(vector.iov_len, left)
            unsafe left -= vector.iov_len
            unsafe some.append(vector)
        }
        return unsafe some.withUnsafeBufferPointer { unsafe call($0.baseAddress!, $0.count) }
    }

    private static func flip(_ bit: Int, _ vectors: UnsafePointer<iovec>) {
        var at = bit / 8
        var index = 0
        while unsafe at >= vectors[index].iov_len {
            unsafe at -= vectors[index].iov_len
            index += 1
        }
        let byte = unsafe vectors[index].iov_base + at
        unsafe byte.storeBytes(of: byte.load(as: UInt8.self) ^ 1 << UInt8(bit % 8), as: UInt8.self)
    }
}

private func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

@discardableResult
private func move(_ from: String, _ to: String) -> Bool { unsafe Glibc.rename(from, to) == 0 }

private func delete(_ path: String) { _ = unsafe Glibc.unlink(path) }

private func size(_ path: String) -> Int {
    var facts = stat()
    return unsafe stat(path, &facts) == 0 ? Int(facts.st_size) : 0
}

private func parent(of path: String) -> String {
    let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    return end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
}

/// Which of the unsynchronized changes are on the medium.
private struct Random {
    private var state: UInt64
    private let survival: FaultyCalls.Survival

    init(_ survival: FaultyCalls.Survival) {
        self.survival = survival
        if case .random(let seed) = survival { state = seed } else { state = 0 }
    }

    mutating func keeps() -> Bool {
        switch survival {
        case .nothing: return false
        case .everything: return true
        case .random:
            state &+= 0x9E37_79B9_7F4A_7C15  // SplitMix64
            var z = state
            z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
            return (z ^ z >> 31) & 1 == 1
        }
    }
}
