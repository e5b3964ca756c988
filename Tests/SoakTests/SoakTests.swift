import Foundation
import ProgramUnderTest
import Testing

/// Faults of every kind, combined, between origins and clients that check every byte.
///
/// LARDER_SOAK_SECONDS=60 for a long run, LARDER_SOAK_SEED=n for the same faults again, LARDER_SOAK_STORAGE=memory or disk
/// for one of the two, LARDER_SOAK_KEEP=1 to look at the access log afterwards.
@Suite("Soak", .serialized)
struct SoakTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let seconds = environment["LARDER_SOAK_SECONDS"].flatMap { Int($0) }
    private static let seed = environment["LARDER_SOAK_SEED"].flatMap { UInt64($0) } ?? 1
    static let storages = Soak.Storage.allCases.filter {
        environment["LARDER_SOAK_STORAGE"] ?? $0.rawValue == $0.rawValue
    }

    @Test(.timeLimit(.minutes(60)), arguments: storages)
    func `no answer is wrong, whatever the origins do`(_ storage: Soak.Storage) async throws {
        var soak = Soak(seed: Self.seed, storage: storage)
        soak.seconds = Self.seconds
        if Self.seconds == nil { soak.requestsMax = 2500 }
        let result = try await blocking { [soak] in try soak.run() }
        print("soak: \(result.summary)")
        for kind in result.wrongKinds { print("soak: \(kind)") }
        for wrong in result.wrongs { Issue.record("\(wrong)") }
        let tally = result.tally
        #expect(tally.wrong == 0)
        // A soak that provokes nothing proves nothing.
        for (what, count) in [
            ("hits", tally.hits), ("parts", tally.parts), ("several parts", tally.multiparts),
            ("304", tally.notModified), ("interim responses", tally.interims), ("broken off", tally.brokenOff),
            ("refused", tally.refused), ("tunnels", tally.tunnels), ("clients that left", tally.left),
            ("resumptions", tally.resumptions), ("redirects that were followed", tally.detours),
            ("log-ins", result.challenges), ("answers whose reuse was judged", tally.vouched),
            ("pages of one cookie", tally.owned), ("origins by a name", tally.named), ("admissions", tally.admitted),
            ("denials", tally.denied), ("questions for a user", tally.challenged),
            ("bodies that were promised", tally.promised), ("hits of those", tally.promisedHits),
            ("those that waited for another's fetch", tally.promisedJoined),
            ("those above 1 MiB", tally.promisedLarge), ("bodies that were not as promised", result.mismatches),
            ("fetches that broke off for others as well", tally.promisedJoinedBroken), ("purges", tally.purges),
            ("promises kept afterwards", tally.healed), ("promises that were stored", tally.kept),
        ] {
            #expect(count > 0, "\(what) never happened")
        }
        for fault in Fault.allCases where fault != .silence || Self.seconds != nil {
            #expect(result.faultCounts[fault] ?? 0 > 0, "\(fault) never happened")
        }
    }
}
