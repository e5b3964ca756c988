import Synchronization

/// A thread that is joined once.
package final class OwnedThread: Sendable {
    private let handle: Mutex<ThreadHandle?>

    package init(_ handle: consuming sending ThreadHandle) { self.handle = Mutex(handle) }

    package func join() {
        guard let handle = handle.withLock({ $0.take() }) else { return }
        handle.join()
    }
}
