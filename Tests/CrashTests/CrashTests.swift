import Foundation
import ProgramUnderTest
import Synchronization
import Testing

/// The proof that the store survives anything: the real program is killed at random moments under load, started again in the same
/// directory, and every byte that it serves afterwards is verified.
///
/// LARDER_CRASH_ROUNDS=200 for more rounds, LARDER_CRASH_SEED=n for the same again, LARDER_CRASH_MEMORY=n for n MiB of memory
/// in each life, LARDER_CRASH_KEEP=1 to look at what is left after a failure.
@Suite("Killed at any moment", .serialized)
struct CrashTests {
    static let rounds = ProcessInfo.processInfo.environment["LARDER_CRASH_ROUNDS"].flatMap { Int($0) } ?? 20
    static let seed =
        ProcessInfo.processInfo.environment["LARDER_CRASH_SEED"].flatMap { UInt64($0) } ?? .random(in: 1...999_999)
    static let isMemoryOnly = ProcessInfo.processInfo.environment["LARDER_CRASH_DISK"] == "off"

    @Test(.timeLimit(.minutes(60)))
    func `whatever is served after a kill is whole and right, and what was committed is there`() async throws {
        print("crash test: LARDER_CRASH_SEED=\(Self.seed) LARDER_CRASH_ROUNDS=\(Self.rounds)")
        let result = try await blocking {
            let trial = try Trial(seed: Self.seed, isMemoryOnly: Self.isMemoryOnly)
            defer { trial.end() }
            trial.run(rounds: Self.rounds)
            return (summary: trial.summary, history: trial.history, faults: trial.world.faults)
        }
        print("crash test: \(result.summary)")
        if !result.faults.isEmpty { print(result.history) }
        for fault in result.faults { Issue.record("LARDER_CRASH_SEED=\(Self.seed): \(fault)") }
    }
}
