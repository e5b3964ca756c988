import Glibc
import Testing

@Suite("Simulation: Transaction and Caching in a random world")
struct SimulationTests {
    /// Of one world; then it is left to end, and another begins.
    static let stepsPerWorld = 500

    @Test func `no client ever sees what it must not`() {
        let steps = setting("LARDER_SIMULATE_STEPS").map { Int($0) } ?? 100_000
        var seed = setting("LARDER_SIMULATE_SEED") ?? 1
        var done = 0
        var counts: [World.Happening: Int] = [:]
        while done < steps {
            let world = World(seed: seed)
            var left = min(SimulationTests.stepsPerWorld, steps - done)
            done += left
            while left > 0, world.violation == nil {
                world.advance()
                left -= 1
            }
            if world.violation == nil, !world.drain() {
                world.violated("something waits for ever", world.exchanges.first)
            }
            if world.violation == nil { world.balance() }
            if let violation = world.violation {
                Issue.record(
                    "\(violation)\nafter \(done) steps in all; replay: LARDER_SIMULATE_SEED=\(seed) LARDER_SIMULATE_STEPS=500"
                )
                return
            }
            counts.merge(world.counts) { $0 + $1 }
            seed += 1
        }
        print(counts.sorted { "\($0.key)" < "\($1.key)" }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
    }

    private func setting(_ name: String) -> UInt64? {
        unsafe getenv(name).flatMap { unsafe UInt64(String(cString: $0)) }
    }
}
