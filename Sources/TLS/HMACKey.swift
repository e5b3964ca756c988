/// A key for HMAC with SHA-256 (RFC 2104), prepared for many codes: the two blocks that depend on the key alone are hashed once.
///
/// A class, because the two states are long, and everybody shares them.
package final class HMACKey: Sendable {
    private let inner: HashState
    private let outer: HashState
    private static let blockBytes = 64

    package init(_ key: [UInt8]) {
        var block = key.count > HMACKey.blockBytes ? Digest.sha256(key) : key
        block += [UInt8](repeating: 0, count: HMACKey.blockBytes - block.count)
        inner = HMACKey.state(block.map { $0 ^ 0x36 })
        outer = HMACKey.state(block.map { $0 ^ 0x5C })
    }

    private static func state(_ block: [UInt8]) -> HashState {
        guard var state = HashState(.sha256) else { preconditionFailure("SHA-256 is computed in parts") }
        state.add(block.span)
        return state
    }

    /// - Returns: the code of the bytes of `beginning` and `rest` together: 32 bytes.
    package func code(_ beginning: [UInt8], _ rest: borrowing Span<UInt8>) -> [UInt8] {
        var state = inner
        state.add(beginning.span)
        state.add(rest)
        var hash = InlineArray<32, UInt8>(repeating: 0)
        state.finish(into: &hash)
        state = outer
        state.add(hash.span)
        state.finish(into: &hash)
        return (0..<hash.count).map { hash[$0] }
    }
}
