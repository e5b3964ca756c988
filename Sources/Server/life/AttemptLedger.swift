import Access
import EventLoop

/// The counts of attempts to authenticate, for all workers.
struct AttemptLedger: SharedAttempts {
    private let attempts = Locked(Attempts())

    func withAttempts<Result>(_ body: (inout Attempts) -> Result) -> Result { attempts.withLock { body(&$0) } }
}
