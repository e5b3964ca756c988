import Fleet
import Testing

private let second: UInt64 = 1_000_000_000
private let epoch = StreamEpoch(Array("run random".utf8))!
private let otherEpoch = StreamEpoch(Array("run other".utf8))!

private func position(_ number: UInt64, _ epoch: StreamEpoch = epoch) -> StreamPosition {
    StreamPosition(epoch: epoch, id: StreamID(milliseconds: number, sequence: 0))
}

private func entry(
    at number: UInt64, seen: Int64 = 1, run: String = "r1", peer: String? = nil, epoch: StreamEpoch = epoch,
    secret: some FleetHash = hash
) -> RegisterEntry {
    RegisterEntry(
        seenAt: seen, position: position(number, epoch), run: run, release: "0.1.0", peer: peer, hash: secret)
}

@Suite("Fleet: what a node says in the register") struct RegisterEntryTests {
    @Test func `it is read as it was written, under its name alone`() {
        for peer in [nil, "10.0.0.1:3130"] {
            let said = entry(at: 7, peer: peer)
            let value = said.value(of: "a", hash: hash)
            #expect(RegisterEntry.read(value, of: "a", hash: hash) == .node(said))
            #expect(RegisterEntry.read(value, of: "b", hash: hash) == .otherSecret(peer: peer))
            #expect(RegisterEntry.read(value, of: "a", hash: otherHash) == .otherSecret(peer: peer))
        }
    }

    @Test func `no changed byte passes for the word of the node`() {
        let value = entry(at: 7, peer: "a:1").value(of: "a", hash: hash)
        for index in value.indices {
            var changed = value
            changed[index] ^= 1
            if case .node = RegisterEntry.read(changed, of: "a", hash: hash) { Issue.record("byte \(index)") }
        }
    }

    @Test func `an earlier release has its four words`() {
        let value = Array("17 5-3 r1 0.0.9".utf8)
        #expect(
            RegisterEntry.read(value, of: "a", hash: hash)
                == .unproven(
                    seenAt: 17, position: StreamID(milliseconds: 5, sequence: 3), run: "r1", release: "0.0.9"))
        for nonsense in ["", "x", "1 2 3", "17 5 r1 0.0.9", "17 5-3 r1 0.0.9 x", String(repeating: "9", count: 2000)] {
            #expect(RegisterEntry.read(Array(nonsense.utf8), of: "a", hash: hash) == .nonsense)
        }
    }
}

@Suite("Fleet: which nodes have applied a purge") struct KnownNodesTests {
    private var known = KnownNodes()

    private mutating func hear(_ values: [String: [UInt8]], at now: UInt64) -> [String] {
        known.read(values.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }, hash: hash, now: now)
    }

    private func states(
        of number: UInt64?, members: [String] = [], at now: UInt64, epoch: StreamEpoch = epoch
    ) -> [String: NodeStanding.State] {
        Dictionary(
            uniqueKeysWithValues: known.standings(
                of: number.map { position($0, epoch) }, own: ("own", "r0"), members: members, hash: hash, now: now
            ).map { ($0.name, $0.state) })
    }

    @Test mutating func `a node has applied what it says, of the same data`() {
        _ = hear(
            [
                "a": entry(at: 7).value(of: "a", hash: hash),
                "own": entry(at: 9, run: "r0").value(of: "own", hash: hash),
            ], at: 0)
        #expect(states(of: 7, at: 0) == ["a": .applied])
        #expect(states(of: 8, at: 3 * second) == ["a": .silent(seconds: 3)])
        #expect(states(of: nil, at: 0) == ["a": .silent(seconds: 0)])
        #expect(states(of: 7, at: 0, epoch: otherEpoch) == ["a": .silent(seconds: 0)])
        #expect(known.isWorthWaiting(for: position(8), ownName: "own", hash: hash, now: 0))
        #expect(!known.isWorthWaiting(for: position(7), ownName: "own", hash: hash, now: 0))
        #expect(!known.isWorthWaiting(for: position(8), ownName: "own", hash: hash, now: 16 * second))
    }

    @Test mutating func `who refuses, and who cannot show it, has not applied it`() {
        _ = hear(
            [
                "a": entry(at: 99, secret: otherHash).value(of: "a", hash: otherHash),
                "b": Array("17 99-0 r1 0.0.9".utf8),
            ], at: 0)
        #expect(states(of: 7, at: 0) == ["a": .refused(.otherSecret), "b": .unproven(.release)])
        #expect(!known.isWorthWaiting(for: position(7), ownName: "own", hash: hash, now: 0))
    }

    @Test mutating func `the server may lose the register, and a node stays known for a day`() {
        _ = hear(["a": entry(at: 7).value(of: "a", hash: hash)], at: 0)
        #expect(hear([:], at: 20 * second).isEmpty)
        #expect(states(of: 8, at: 20 * second) == ["a": .silent(seconds: 20)])
        #expect(known.present(now: 20 * second).isEmpty)
        known.listens(now: 20 * second)
        #expect(known.present(now: 20 * second).map(\.name) == ["a"])
        #expect(states(of: 8, at: 86_400 * second) == ["a": .silent(seconds: 86_400)])
        let value = entry(at: 7).value(of: "a", hash: hash)
        #expect(hear(["a": value], at: 86_401 * second) == ["a"], "it may leave the register")
        #expect(states(of: 8, at: 86_401 * second).isEmpty)
    }

    @Test mutating func `what nobody proved is forgotten soon, and takes no place of a node`() {
        var values: [String: [UInt8]] = [:]
        for number in 0..<300 { values["x\(number)"] = Array("17 99-0 r1 0.0.9".utf8) }
        _ = hear(values, at: 0)
        _ = hear(["a": entry(at: 7).value(of: "a", hash: hash)], at: second)
        #expect(states(of: 7, at: second)["a"] == .applied)
        #expect(states(of: 7, at: second).count == KnownNodes.countMax)
        _ = hear([:], at: 200 * second)
        #expect(states(of: 7, at: 200 * second) == ["a": .applied])
    }

    @Test mutating func `what is written over a node's word is not its word`() {
        _ = hear(["a": entry(at: 7).value(of: "a", hash: hash)], at: 0)
        _ = hear(["a": Array("made up".utf8)], at: second)
        #expect(states(of: 7, at: second) == ["a": .refused(.otherSecret)])
        #expect(states(of: 7, at: 80_000 * second) == ["a": .refused(.otherSecret)], "the node is known all the same")
    }

    @Test mutating func `two nodes with one name have applied nothing for certain`() {
        for (second, run) in [(0, "r1"), (1, "r2"), (2, "r1")] as [(UInt64, String)] {
            let said = entry(at: 7, seen: Int64(second), run: run)
            _ = hear(["a": said.value(of: "a", hash: hash)], at: second)
            // A node that was started again has another run, and its earlier one does not come back.
            #expect(states(of: 7, at: second) == ["a": second < 2 ? .applied : .unproven(.namesake)])
        }
        _ = hear(["own": entry(at: 9, run: "another").value(of: "own", hash: hash)], at: 3)
        #expect(states(of: 7, at: 3)["own"] == .unproven(.namesake))
    }

    @Test mutating func `a member that was never heard is not passed over`() {
        _ = hear(["a": entry(at: 7, peer: "1.1.1.1:1").value(of: "a", hash: hash)], at: 0)
        #expect(
            states(of: 7, members: ["1.1.1.1:1", "2.2.2.2:2"], at: 0)
                == ["a": .applied, "2.2.2.2:2": .silent(seconds: nil)])
        // An earlier release does not say by which address it is asked.
        _ = hear(["b": Array("17 99-0 r1 0.0.9".utf8)], at: 0)
        #expect(
            states(of: 7, members: ["1.1.1.1:1", "2.2.2.2:2"], at: 0) == ["a": .applied, "b": .unproven(.release)])
    }
}
