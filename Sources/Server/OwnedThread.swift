import EventLoop
import Synchronization

/// A thread to be waited for, once.
final class OwnedThread: Sendable {
    private let handle: Mutex<ThreadHandle?>
    init(_ handle: consuming ThreadHandle) { self.handle = Mutex(handle) }
    func join() {
        guard let handle = handle.withLock({ $0.take() }) else { return }
        handle.join()
    }
}
