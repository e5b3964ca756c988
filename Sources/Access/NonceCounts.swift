/// Which counts (`nc`) of which nonces have been used, so that no request can be sent again by somebody who saw it (RFC 7616 §5.5).
///
/// A client may use one nonce on several connections, whose requests arrive in any order: of the last 128 counts each is accepted once.
/// What is below them counts as used.
package struct NonceCounts: Sendable {
    private struct Window {
        var highest: UInt32
        /// Bit n: the count `highest - n` was used.
        var used: UInt128
    }
    private var windows: [DigestNonce: Window] = [:]
    /// In the order of their first use, from `start`.
    private var order: [DigestNonce] = []
    private var start = 0
    /// A nonce from this time or before it that is not in the table may have been used: it was removed to make room.
    private var forgottenUntil: UInt64?
    private let countMax: Int

    package static let windowBits: UInt32 = 128

    /// - Parameter countMax: how many nonces are remembered.
    package init(countMax: Int = 1 << 16) {
        precondition(countMax > 0)
        self.countMax = countMax
    }

    package var count: Int { windows.count }

    /// Uses a count. Returns false if it has been used, or may have been.
    ///
    /// - Parameters:
    ///   - nonce: one that is valid. Those that no longer are can be forgotten.
    ///   - oldest: when the oldest nonce that is valid was made, in milliseconds.
    package mutating func use(_ count: UInt32, of nonce: DigestNonce, oldest: UInt64) -> Bool {
        guard var window = windows[nonce] else {
            if let forgottenUntil, nonce.issued <= forgottenUntil { return false }
            add(nonce, Window(highest: count, used: 1), oldest: oldest)
            return true
        }
        if count > window.highest {
            let distance = count - window.highest
            window.used = distance < NonceCounts.windowBits ? window.used << UInt128(distance) : 0
            window.used |= 1
            window.highest = count
        } else {
            let distance = window.highest - count
            guard distance < NonceCounts.windowBits, window.used >> UInt128(distance) & 1 == 0 else { return false }
            window.used |= 1 << UInt128(distance)
        }
        windows[nonce] = window
        return true
    }

    private mutating func add(_ nonce: DigestNonce, _ window: Window, oldest: UInt64) {
        windows[nonce] = window
        order.append(nonce)
        while start < order.count, order[start].issued < oldest || windows.count > countMax {
            let first = order[start]
            if first.issued >= oldest { forgottenUntil = max(forgottenUntil ?? 0, first.issued) }
            windows[first] = nil
            start += 1
        }
        guard start > countMax else { return }
        order.removeFirst(start)
        start = 0
    }
}
