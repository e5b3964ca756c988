import EventLoop
import Glibc

/// The open files of shared segments, by number. If too many are open, the one that was not used for the longest time is dropped;
/// it is closed once its last reader is done.
///
/// Threads: any. Two threads may open the same file at once; the second one replaces the first in the table, and both work. No file is
/// opened while the lock is held, because that may block.
final class DiskStoreFiles: Sendable {
    private struct Opened {
        var file: SegmentFile
        var lastUse: UInt64
    }
    private struct State {
        var opened: [UInt32: Opened] = [:]
        var uses: UInt64 = 0
    }
    private let state = Locked(State())
    private let directory: Directory
    private let calls: any DiskCalls
    private let openMax: Int

    init(directory: Directory, calls: any DiskCalls, openMax: Int) {
        self.directory = directory
        self.calls = calls
        precondition(openMax > 0, "a file that is read is open")
        self.openMax = openMax
    }

    /// - Parameter waits: whether the file may be opened, which may block. Otherwise `wouldBlock` is thrown if it is not open.
    func file(_ number: UInt32, waits: Bool) throws(DiskReadError) -> SegmentFile {
        // The number is enough: this process gives each number to one file only.
        if let file = known(number) { return file }
        guard waits else { throw .wouldBlock }
        let identity = SegmentIdentity(store: directory.storeID, number: number)
        do throws(DiskFileError) {
            // Records say themselves where they belong, so a damaged header does not cost them.
            let file = try SegmentFile.open(
                directory.segmentPath(number), identity, checksHeader: false, calls: calls)
            add(file)
            return file
        } catch {
            switch error {
            // Usually the file was reclaimed after the place was found. Whoever handles `damaged` looks into the index first.
            case .failed(ENOENT), .header: throw .damaged
            case .failed(let code): throw .failed(errno: code)
            }
        }
    }

    func add(_ file: SegmentFile) {
        // The file that is dropped is released, and perhaps closed, outside of the lock.
        let closed = state.withLock { state -> SegmentFile? in
            state.uses += 1
            state.opened[file.identity.number] = Opened(file: file, lastUse: state.uses)
            guard state.opened.count > openMax,
                let oldest = state.opened.min(by: { $0.value.lastUse < $1.value.lastUse })
            else { return nil }
            defer { precondition(state.opened.count <= openMax, "no more files are open than the limit") }
            return state.opened.removeValue(forKey: oldest.key)?.file
        }
        _ = closed
    }

    /// Drops the file: it was deleted.
    func forget(_ number: UInt32) {
        let closed = state.withLock { $0.opened.removeValue(forKey: number) }
        _ = closed
    }

    private func known(_ number: UInt32) -> SegmentFile? {
        state.withLock { state in
            state.uses += 1
            guard let file = state.opened[number]?.file else { return nil }
            state.opened[number]?.lastUse = state.uses
            return file
        }
    }
}
