/// Decides when memory that was freed is given back to the system.
///
/// The allocator keeps what is freed for what comes next. Longer pieces do not fit there while memory beside it is in use: after a million short
/// responses, a store full of long ones took twice its budget. Giving whole pages back takes up to a tenth of a second, during which nobody
/// can allocate. So it is done if there is much to give back, and less often while little comes of it.
///
/// ```
/// watching ── much is unused ──▶ givingBack ── gaveBack() ──▶ measuring ── the next reading ──▶ watching, after a pause
/// ```
package struct HeapPolicy: Equatable, Sendable {
    private enum State: Equatable {
        /// - Parameter pause: so many readings are passed over.
        case watching(pause: Int)
        case givingBack(unused: UInt64)
        case measuring(before: UInt64)
    }
    private var state = State.watching(pause: 0)
    /// How many readings were last passed over because too little came of it.
    private var lastPause = 0
    /// What was unused after the last time.
    private var rest: UInt64 = 0

    /// Less than this many unused bytes are left to the allocator.
    package static let unusedMin: UInt64 = 64 << 20
    package static let pauseMax = 600

    package init() {}

    /// Takes a reading. Call `gaveBack` if memory was to be given back and that is done.
    ///
    /// - Parameters:
    ///   - memory: what the process has, in bytes.
    ///   - stored: what the memory tiers have of it, in bytes.
    /// - Returns: whether memory is to be given back now.
    package mutating func note(memory: UInt64, stored: UInt64) -> Bool {
        let unused = memory > stored ? memory - stored : 0
        let enough = max(HeapPolicy.unusedMin, stored / 8)
        switch state {
        case .givingBack: return false
        case .measuring(let before):
            let isWorthIt = unused <= before - before / 8
            lastPause = isWorthIt ? 0 : min(max(1, lastPause * 2), HeapPolicy.pauseMax)
            rest = unused
            state = .watching(pause: lastPause)
            return false
        case .watching(let pause):
            guard unused >= enough else {
                (lastPause, rest) = (0, min(rest, unused))
                state = .watching(pause: 0)
                return false
            }
            guard pause == 0 || unused >= rest + enough else {
                state = .watching(pause: pause - 1)
                return false
            }
            state = .givingBack(unused: unused)
            return true
        }
    }

    /// Memory was given back, as far as that was possible.
    package mutating func gaveBack() {
        guard case .givingBack(let unused) = state else { preconditionFailure("memory is given back when it is due") }
        state = .measuring(before: unused)
    }
}
