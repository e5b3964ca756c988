import Fleet
import Testing

@Suite("Fleet: a server that fails") struct CircuitTests {
    static let second: UInt64 = 1_000_000_000

    /// Fails so often at this time.
    private func fail(_ circuit: inout Circuit, _ count: Int, at now: UInt64, jitter: UInt64 = 0) {
        for _ in 0..<count { circuit.settle(.ordinary, .failure(jitter: jitter), now: now) }
    }

    @Test func `failures within the window open the circuit`() {
        var circuit = Circuit(failuresToOpen: 3, windowNanoseconds: Self.second)
        fail(&circuit, 2, at: 0)
        #expect(circuit.permit(now: 0) == .ordinary && !circuit.isOpen)
        fail(&circuit, 1, at: Self.second - 1)
        #expect(circuit.permit(now: Self.second) == nil && circuit.isOpen)
    }

    @Test func `failures that are older than the window do not count`() {
        var circuit = Circuit(failuresToOpen: 3, windowNanoseconds: Self.second)
        for turn in 0..<100 { fail(&circuit, 1, at: UInt64(turn) * Self.second / 2) }
        #expect(!circuit.isOpen)
        // Successes in between change nothing: a server that answers every other time is not well.
        fail(&circuit, 1, at: 50 * Self.second)
        circuit.settle(.ordinary, .success, now: 50 * Self.second)
        fail(&circuit, 1, at: 50 * Self.second)
        #expect(circuit.isOpen)
    }

    @Test func `one probe goes when the time is over, and its success closes the circuit`() {
        var circuit = Circuit(failuresToOpen: 1)
        fail(&circuit, 1, at: 0)
        #expect(circuit.permit(now: Self.second - 1) == nil)
        #expect(circuit.permit(now: Self.second) == .probe)
        #expect(circuit.permit(now: Self.second) == nil && circuit.isOpen)
        // The late outcome of a call that began before.
        circuit.settle(.ordinary, .success, now: Self.second)
        circuit.settle(.ordinary, .failure(jitter: 0), now: Self.second)
        #expect(circuit.permit(now: 100 * Self.second) == nil)
        circuit.settle(.probe, .success, now: 100 * Self.second)
        #expect(circuit.permit(now: 100 * Self.second) == .ordinary && !circuit.isOpen)
    }

    /// When the probe goes after each of ten openings.
    private func waits(jitter: UInt64) -> [UInt64] {
        var circuit = Circuit(failuresToOpen: 1)
        fail(&circuit, 1, at: 0, jitter: jitter)
        var now: UInt64 = 0
        return (0..<10).map { _ in
            let start = now
            while circuit.permit(now: now) == nil { now += Self.second / 100 }
            circuit.settle(.probe, .failure(jitter: jitter), now: now)
            return (now - start) / (Self.second / 100)
        }
    }

    @Test func `the time grows from one second to thirty`() {
        #expect(waits(jitter: 0) == [100, 200, 400, 800, 1500, 1500, 1500, 1500, 1500, 1500])
        // The most that can be drawn: the remainder for half the time and one nanosecond.
        var longest: [UInt64] = []
        for seed in UInt64(0)..<200 {
            var numbers = SeededNumbers(state: seed)
            let drawn = waits(jitter: numbers.next())
            longest = longest.isEmpty ? drawn : zip(longest, drawn).map { max($0, $1) }
            for (wait, least) in zip(drawn, [100, 200, 400, 800, 1500, 1500, 1500, 1500, 1500, 1500]) {
                #expect(wait >= UInt64(least) && wait <= UInt64(least) * 2 + 1)
            }
        }
        #expect(longest[0] > 150 && longest[9] > 2800 && longest[9] <= 3001)
    }

    @Test(arguments: [(59, 400), (60, 100)])
    func `the time begins anew after a minute without an opening`(_ seconds: UInt64, _ expected: UInt64) {
        var circuit = Circuit(failuresToOpen: 1)
        fail(&circuit, 1, at: 0)
        _ = circuit.permit(now: Self.second)
        circuit.settle(.probe, .failure(jitter: 0), now: Self.second)
        _ = circuit.permit(now: 10 * Self.second)
        circuit.settle(.probe, .success, now: 10 * Self.second)
        let again = (10 + seconds) * Self.second
        fail(&circuit, 1, at: again)
        #expect(circuit.permit(now: again + expected * Self.second / 100 - 1) == nil)
        #expect(circuit.permit(now: again + expected * Self.second / 100) == .probe)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `whatever happens, a circuit is asked again within thirty seconds`(_ seed: UInt64) {
        var numbers = SeededNumbers(state: seed)
        var circuit = Circuit(failuresToOpen: 3)
        var now: UInt64 = 0
        var lastPermit: UInt64 = 0
        var pending: [Circuit.Permit] = []
        for _ in 0..<20_000 {
            now += UInt64.random(in: 0..<Self.second, using: &numbers)
            if let permit = circuit.permit(now: now) {
                pending.append(permit)
                lastPermit = now
            }
            if pending.contains(.probe) || Bool.random(using: &numbers), let permit = pending.popLast() {
                let outcome: Circuit.Outcome =
                    Int.random(in: 0..<3, using: &numbers) == 0
                    ? .success : .failure(jitter: numbers.next())
                circuit.settle(permit, outcome, now: now)
            }
            #expect(now - lastPermit <= 32 * Self.second)
        }
    }
}

@Suite("Fleet: the circuit of a node that is probed") struct CircuitProbeTests {
    @Test func `a circuit says that its probe is under way`() {
        var circuit = Circuit(failuresToOpen: 1)
        circuit.settle(.ordinary, .failure(jitter: 0), now: 0)
        #expect(circuit.isOpen && !circuit.isProbing)
        let permit = circuit.permit(now: 60_000_000_000)
        #expect(permit == .probe && circuit.isProbing)
        circuit.settle(.probe, .success, now: 60_000_000_001)
        #expect(!circuit.isOpen && !circuit.isProbing)
    }
}

@Suite("Fleet: writes that wait") struct WaitingWritesTests {
    @Test func `the sixty-fifth write is dropped and counted`() {
        var writes = WaitingWrites<Int>()
        for number in 0..<64 {
            let isAdded = writes.add(number, bytes: 1)
            #expect(isAdded)
        }
        let isAdded = writes.add(64, bytes: 1)
        #expect(!isAdded && writes.droppedCount == 1 && writes.count == 64)
        let first = writes.next()
        #expect(first == 0)
        let isRoom = writes.add(65, bytes: 1)
        #expect(isRoom)
        var order: [Int] = []
        while let write = writes.next() { order.append(write) }
        #expect(order == Array(1..<64) + [65] && writes.bytes == 0)
    }

    @Test func `what the writes hold in memory is bounded as well`() {
        var writes = WaitingWrites<String>(countMax: 8, bytesMax: 100)
        let added = [60, 41, 40, 1, 0].map { writes.add("\($0)", bytes: $0) }
        #expect(added == [true, false, true, false, true])
        #expect(writes.bytes == 100 && writes.droppedCount == 2)
        let first = writes.next()
        #expect(first == "60" && writes.bytes == 40)
        writes.dropAll()
        let none = writes.next()
        #expect(none == nil && writes.count == 0 && writes.bytes == 0 && writes.droppedCount == 4)
    }
}
