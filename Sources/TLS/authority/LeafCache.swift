import Synchronization

/// The leaves that were issued, for all workers. A leaf that has not been used for a while is forgotten: at least the last
/// half of `capacity` names are kept.
package final class LeafCache: Sendable {
    package let authority: CertificateAuthority
    private let generationMax: Int

    private struct State {
        var young: [LeafName: Leaf] = [:]
        var old: [LeafName: Leaf] = [:]
    }
    private let state = Mutex(State())

    /// - Parameter capacity: the most leaves that are kept. Each takes about 2 KiB.
    package init(_ authority: CertificateAuthority, capacity: Int = 10_000) {
        precondition(capacity >= 2)
        self.authority = authority
        generationMax = capacity / 2
    }

    /// The leaf for a new connection. Returns nil if there is none, or if it is time for another.
    ///
    /// - Parameter now: seconds since 1970.
    package func leaf(for name: LeafName, at now: Int64) -> Leaf? {
        state.withLock { state in
            if let leaf = state.young[name] { return leaf.isCurrent(at: now) ? leaf : nil }
            guard let leaf = state.old.removeValue(forKey: name), leaf.isCurrent(at: now) else { return nil }
            insert(leaf, &state)
            return leaf
        }
    }

    /// Issues a leaf and keeps it. If another thread has done so in the meantime, that leaf is returned.
    ///
    /// Signing happens outside the lock.
    package func issue(_ name: LeafName, at now: Int64) throws(AuthorityError) -> Leaf {
        let leaf = try authority.issue(name, at: now)
        return state.withLock { state in
            if let other = state.young[name] ?? state.old[name], other.isCurrent(at: now) { return other }
            state.old[name] = nil
            insert(leaf, &state)
            return leaf
        }
    }

    package var count: Int { state.withLock { $0.young.count + $0.old.count } }

    private func insert(_ leaf: Leaf, _ state: inout State) {
        if state.young.count >= generationMax, state.young[leaf.name] == nil {
            state.old = state.young
            state.young = [:]
        }
        state.young[leaf.name] = leaf
    }
}

extension Leaf {
    /// False before `notBefore`, too: the clock has been set back.
    fileprivate func isCurrent(at now: Int64) -> Bool { now >= notBefore && now < renewFrom }
}
