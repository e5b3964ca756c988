import Authentication
import EventLoop

/// The counts of attempts to authenticate, for all workers.
struct AttemptLedger: SharedAttempts {
    private let attempts: Locked<Attempts>

    /// - Parameter failureKey: with which the nodes of a fleet name to each other who failed. Nil: this process counts alone.
    init(failureKey: [UInt8]? = nil) {
        var attempts = Attempts()
        if let failureKey {
            attempts.failures.share(SipHash(bytes: failureKey))
            attempts.nonces.share()
        }
        self.attempts = Locked(attempts)
    }

    func withAttempts<Result>(_ body: (inout Attempts) -> Result) -> Result { attempts.withLock { body(&$0) } }
}
