import CLarder
import Glibc

/// A thread that was started and must be joined.
package struct ThreadHandle: ~Copyable, Sendable {
    private let raw: pthread_t

    fileprivate init(_ raw: pthread_t) { self.raw = raw }

    deinit { _ = pthread_detach(raw) }

    /// Waits until the thread's body has returned.
    package consuming func join() {
        let status = pthread_join(raw, nil)
        precondition(status == 0, "a thread is joined once, and not by itself")
        discard self
    }
}

/// Runs `body` on a new thread.
///
/// - Parameter name: the name that `top -H` and debuggers show. The kernel keeps 15 bytes.
package func startThread(
    name: String, _ body: @escaping @Sendable () -> Void
) throws(EventLoopError) -> ThreadHandle {
    let start = unsafe Unmanaged.passRetained(
        ThreadStart(name: String(decoding: name.utf8.prefix(15), as: UTF8.self), body))
    var raw = pthread_t()
    let status = unsafe pthread_create(
        &raw, nil,
        { context in
            let start = unsafe Unmanaged<ThreadStart>.fromOpaque(context!).takeRetainedValue()
            _ = unsafe clarder_name_thread(start.name)  // a failure does not matter
            start.body()
            return nil
        }, unsafe start.toOpaque())
    guard status == 0 else {
        unsafe start.release()
        throw .noThread(errno: status)
    }
    return ThreadHandle(raw)
}

private final class ThreadStart: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, _ body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}
