import Glibc

/// Turns signals to the process into jobs of one loop, so that no code runs in a signal handler.
///
/// Every thread that starts after `block` blocks the signals. One thread waits for them with sigwait(3).
package enum SignalWatcher {
    /// Blocks the signals for this thread and the threads that it starts. Must be called before any other thread runs.
    package static func block(_ signals: [CInt]) {
        var set = signalSet(signals)
        _ = unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Calls back on the loop of `inbox` for each signal, until the process ends.
    package static func watch(
        _ signals: [CInt], inbox: Inbox, _ arrived: @escaping @Sendable (CInt) -> Void
    ) throws(EventLoopError) {
        _ = try startThread(name: "larder-signals") {
            var set = signalSet(signals)
            while true {
                var signal: CInt = 0
                guard unsafe sigwait(&set, &signal) == 0 else { continue }
                inbox.post { [signal] in arrived(signal) }
            }
        }
    }

    private static func signalSet(_ signals: [CInt]) -> sigset_t {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for signal in signals { unsafe sigaddset(&set, signal) }
        return set
    }
}
