import EventLoop
import Synchronization

/// Whether the store writes. A failed write turns it off; a successful probe (`BookKeeper`) turns it on again.
///
/// While the store is off, new objects are refused and nothing is written, but reads continue, and removals are kept for the book.
/// Threads: any. Every job that writes asks `isOn` first; a job that has passed that test may still fail, which turns the store off
/// again.
final class DiskStoreHealth: Sendable {
    private let isOnNow = Atomic(true)
    private let reason = Locked("")
    private let wakeKeeper = Locked<(@Sendable () -> Void)?>(nil)
    private let path: String
    private let log: @Sendable (DiskEvent) -> Void

    init(path: String, log: @escaping @Sendable (DiskEvent) -> Void) {
        self.path = path
        self.log = log
    }

    var isOn: Bool { isOnNow.load(ordering: .acquiring) }

    var state: DiskStore.State { isOn ? .on : .off(reason: reason.withLock { $0 }) }

    /// - Parameter wakeKeeper: called by the thread that turns the store off. It must not block.
    func connect(wakeKeeper: @escaping @Sendable () -> Void) {
        self.wakeKeeper.withLock { known in
            precondition(known == nil, "a store has one keeper")
            known = wakeKeeper
        }
    }

    /// Releases the closure: it holds the keeper, which holds this.
    func disconnect() { wakeKeeper.withLock { $0 = nil } }

    /// Logged only when the store was on. The caller holds no lock of the store.
    func turnOff(_ why: String) {
        reason.withLock { $0 = why }
        guard isOnNow.exchange(false, ordering: .acquiringAndReleasing) else { return }
        log(DiskEvent(.error, "disk \(path) is off, nothing is stored there: \(why)"))
        // After the exchange: the keeper either sees the store off before it sleeps, or is asleep and is woken.
        wakeKeeper.withLock { $0 }?()
    }

    func turnOn() {
        guard !isOnNow.exchange(true, ordering: .acquiringAndReleasing) else { return }
        log(DiskEvent(.info, "disk \(path) is on again"))
    }
}
