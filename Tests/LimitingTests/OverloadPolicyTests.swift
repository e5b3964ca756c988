import Limiting
import Testing

@Suite("Overload: what is shed, and when") struct OverloadPolicyTests {
    private func states(_ percents: [UInt64], of limit: UInt64? = 100) -> [OverloadPolicy.State] {
        var policy = OverloadPolicy()
        return percents.map { percent in
            _ = policy.note(memory: .init(used: percent, limit: limit), descriptors: .init(used: 0, limit: 100))
            return policy.state
        }
    }

    @Test func `a state is left at a lower level than the one at which it is entered`() {
        #expect(states([84, 85, 80, 79, 84]) == [.calm, .strained, .strained, .calm, .calm])
        #expect(states([94, 95, 90, 89, 94]) == [.strained, .overloaded, .overloaded, .strained, .strained])
        #expect(states([99, 10]) == [.overloaded, .calm])
    }

    @Test func `what comes closer to its limit counts`() {
        var policy = OverloadPolicy()
        #expect(
            policy.note(memory: .init(used: 1, limit: 100), descriptors: .init(used: 96, limit: 100)) == .overloaded)
        #expect(policy.note(memory: .init(used: 86, limit: 100), descriptors: .init(used: 1, limit: 100)) == .strained)
        #expect(policy.note(memory: .init(used: 86, limit: 100), descriptors: .init(used: 2, limit: 100)) == nil)
    }

    @Test func `what has no limit never runs out, and nothing overflows`() {
        #expect(states([.max], of: nil) == [.calm])
        #expect(states([.max], of: .max) == [.overloaded])
        #expect(states([0], of: 0) == [.overloaded])
    }

    @Test func `a quarter of the idle connections goes first, and all when it is serious`() {
        let counts = [0, 1, 4, 9]
        #expect(counts.map { OverloadPolicy.idleToClose(of: $0, in: .calm) } == [0, 0, 0, 0])
        #expect(counts.map { OverloadPolicy.idleToClose(of: $0, in: .strained) } == [0, 1, 1, 3])
        #expect(counts.map { OverloadPolicy.idleToClose(of: $0, in: .overloaded) } == counts)
    }
}
