import TLS
import Testing

@Suite("The cache of leaves")
struct AuthorityCacheTests {
    static let now = AuthorityFixture.now

    private func name(_ number: Int) -> LeafName { .dns("h\(number).example.org") }

    @Test func `a leaf is issued once, until half of its lifetime has passed`() throws {
        let cache = LeafCache(try AuthorityFixture(permitting: nil).authority)
        #expect(cache.leaf(for: name(1), at: Self.now) == nil)
        let first = try cache.issue(name(1), at: Self.now)
        #expect(cache.leaf(for: name(1), at: Self.now) === first)
        #expect(cache.leaf(for: name(2), at: Self.now) == nil)
        #expect(try cache.issue(name(1), at: Self.now + 1) === first)
        #expect(cache.leaf(for: name(1), at: first.renewFrom - 1) === first)
        #expect(cache.leaf(for: name(1), at: first.renewFrom) == nil)
        let second = try cache.issue(name(1), at: first.renewFrom)
        #expect(second !== first)
        #expect(cache.leaf(for: name(1), at: first.renewFrom) === second)
        // The clock was set back to before the leaf is valid.
        #expect(cache.leaf(for: name(1), at: second.notBefore - 1) == nil)
    }

    @Test func `the cache is bounded and keeps the names in use`() throws {
        let cache = LeafCache(try AuthorityFixture(permitting: nil).authority, capacity: 10)
        for number in 0..<100 {
            _ = try cache.issue(name(number), at: Self.now)
            #expect(cache.count <= 10)
            if number > 0 { #expect(cache.leaf(for: name(0), at: Self.now) != nil) }
            #expect(cache.leaf(for: name(max(number - 1, 0)), at: Self.now) != nil)
        }
        #expect(cache.leaf(for: name(50), at: Self.now) == nil)
    }

    @Test func `threads share one leaf`() async throws {
        let cache = LeafCache(try AuthorityFixture(permitting: nil).authority)
        let leaves = try await withThrowingTaskGroup(of: Leaf.self) { group in
            for _ in 0..<16 { group.addTask { try cache.issue(.dns("a.example.org"), at: Self.now) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(leaves.allSatisfy { $0 === leaves[0] })
        #expect(cache.count == 1)
    }

    @Test func `a refused name is not kept`() throws {
        let cache = LeafCache(try AuthorityFixture(permitting: ["example.org"]).authority)
        #expect(throws: AuthorityError.notPermitted(.dns("a.test"))) { try cache.issue(.dns("a.test"), at: Self.now) }
        #expect(cache.count == 0)
    }
}
