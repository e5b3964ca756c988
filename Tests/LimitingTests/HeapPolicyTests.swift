import Limiting
import Testing

@Suite("Memory that is given back to the system") struct HeapPolicyTests {
    private static let mebibyte: UInt64 = 1 << 20

    /// The readings at which memory was given back, if that leaves `after` MiB unused.
    private func dueAt(_ readings: [UInt64], stored: UInt64 = 1024, after: (UInt64) -> UInt64) -> [Int] {
        var policy = HeapPolicy()
        var due: [Int] = []
        var isMeasured = true
        for (index, unused) in readings.enumerated() {
            let present = isMeasured ? unused : after(unused)
            isMeasured = true
            guard policy.note(memory: (stored + present) * Self.mebibyte, stored: stored * Self.mebibyte) else {
                continue
            }
            due.append(index)
            policy.gaveBack()
            isMeasured = false
        }
        return due
    }

    @Test func `an eighth of what is stored is enough, but not less than 64 MiB`() {
        #expect(dueAt([0, 127], after: { _ in 0 }) == [])
        #expect(dueAt([0, 128], after: { _ in 0 }) == [1])
        #expect(dueAt([63], stored: 8, after: { _ in 0 }) == [])
        #expect(dueAt([64], stored: 8, after: { _ in 0 }) == [0])
    }

    @Test func `what brings much is done again at once`() {
        #expect(dueAt([200, 200, 200, 200, 200], after: { $0 / 2 }) == [0, 2, 4])
    }

    @Test func `what brings little is done more and more seldom, and at last every ten minutes`() {
        let due = dueAt(Array(repeating: 200, count: 10_000), after: { $0 })
        #expect(due.prefix(5) == [0, 3, 7, 13, 23])
        let distances = zip(due.dropFirst(), due).map { $0 - $1 }
        #expect(distances.last == HeapPolicy.pauseMax + 2)
    }

    @Test func `as much again ends a pause`() {
        let readings = Array(repeating: UInt64(200), count: 30) + [327, 328]
        #expect(dueAt(readings, after: { $0 }) == [0, 3, 7, 13, 23, 31])
    }

    @Test func `a pause is forgotten when little is unused`() {
        #expect(dueAt(Array(repeating: 200, count: 24) + [200, 0, 200], after: { $0 }) == [0, 3, 7, 13, 23, 26])
    }

    @Test func `nothing is given back twice at the same time`() {
        var policy = HeapPolicy()
        let first = policy.note(memory: 1 << 30, stored: 0)
        let second = policy.note(memory: 2 << 30, stored: 0)
        #expect(first && !second)
        policy.gaveBack()
        // What is stored is read a little later than what the process has, and may be more.
        let measured = policy.note(memory: 1 << 20, stored: 2 << 20)
        #expect(!measured)
    }
}
