import Glibc
import Testing

@Suite("Simulation: Transaction and Caching in a random world")
struct SimulationTests {
    /// Of one world; then what is under way has to end, and another world begins.
    static let stepsPerWorld = 500

    @Test func `no client ever sees what it must not`() {
        let seed = Settings.seed ?? 1
        let steps = Settings.steps ?? 100_000
        var counts: [World.Happening: Int] = [:]
        var done = 0
        var worlds: UInt64 = 0
        while done < steps {
            let world = World(seed: seed &+ worlds)
            world.run(min(SimulationTests.stepsPerWorld, steps - done))
            if let violation = world.violation {
                let replay = "LARDER_SIMULATE_SEED=\(world.seed) LARDER_SIMULATE_STEPS=\(SimulationTests.stepsPerWorld)"
                Issue.record("\(violation)\nafter \(done) steps of other worlds; to see it again: \(replay)")
                return
            }
            counts.merge(world.counts) { $0 + $1 }
            done += SimulationTests.stepsPerWorld
            worlds += 1
        }
        guard done >= 100_000 else { return }
        let missing = World.Happening.allCases.filter { counts[$0] == nil }
        #expect(missing.isEmpty, "a world in which these never happen shows nothing of them")
    }

    @Test func `a seed gives the same world again`() {
        let once = World(seed: 7)
        let again = World(seed: 7)
        for _ in 0..<300 {
            once.advance()
            again.advance()
        }
        #expect(!once.events.isEmpty)
        #expect(once.events == again.events)
        let another = World(seed: 8)
        for _ in 0..<300 { another.advance() }
        #expect(another.events != once.events)
    }

    /// From the environment: which world is the first, and how much is to happen.
    private enum Settings {
        static var seed: UInt64? { value("LARDER_SIMULATE_SEED") }
        static var steps: Int? { value("LARDER_SIMULATE_STEPS").map { Int(clamping: $0) } }

        private static func value(_ name: String) -> UInt64? {
            unsafe getenv(name).flatMap { unsafe UInt64(String(cString: $0)) }
        }
    }
}
