import Authentication

/// The counts of one test, which has one thread.
final class OwnAttempts: SharedAttempts, @unchecked Sendable {
    private var attempts: Attempts

    init(_ attempts: Attempts = Attempts()) { self.attempts = attempts }

    func withAttempts<Result>(_ body: (inout Attempts) -> Result) -> Result { body(&attempts) }
}
