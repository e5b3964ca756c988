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
    /// The latest time at which a count was used.
    private var latest: UInt64 = 0
    private let countMax: Int
    /// Those that were used since the other nodes of a fleet were told. Nil: there are none.
    private var untold: Set<DigestNonce>?

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
    ///   - valid: when the nonces that are valid were made, in milliseconds, until now.
    package mutating func use(_ count: UInt32, of nonce: DigestNonce, valid: ClosedRange<UInt64>) -> Bool {
        notice(valid.upperBound)
        guard take(count, of: nonce, valid) else { return false }
        if untold != nil { note(nonce) }
        return true
    }

    private mutating func take(_ count: UInt32, of nonce: DigestNonce, _ valid: ClosedRange<UInt64>) -> Bool {
        guard var window = windows[nonce] else {
            if let forgottenUntil, nonce.issued <= forgottenUntil { return false }
            add(nonce, Window(highest: count, used: 1), valid)
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

    private mutating func add(_ nonce: DigestNonce, _ window: Window, _ valid: ClosedRange<UInt64>) {
        windows[nonce] = window
        order.append(nonce)
        // The clock may be set back by less than `notice` heeds, so that those are valid again that have just ceased to be.
        let lowerBound = valid.lowerBound - min(NonceCounts.skewMax, valid.lowerBound)
        while start < order.count, order[start].issued < lowerBound || windows.count > countMax {
            let first = order[start]
            // One from the future is of the time before the clock was set back. No nonce would be accepted until then.
            if first.issued >= lowerBound, first.issued <= valid.upperBound.saturatingAdd(NonceCounts.skewMax) {
                forgottenUntil = max(forgottenUntil ?? 0, first.issued)
            }
            windows[first] = nil
            start += 1
        }
        guard start > countMax else { return }
        order.removeFirst(start)
        start = 0
    }

    /// In a fleet, nonces are dated by the wall clock. If it was set back, nonces of an earlier time are valid once more that may have been used and forgotten, and none that was
    /// made until now counts as unused.
    private mutating func notice(_ now: UInt64) {
        if now.saturatingAdd(NonceCounts.skewMax) < latest {
            forgottenUntil = now
            latest = now
        } else {
            latest = max(latest, now)
        }
    }

    private static let skewMax = milliseconds(DigestNonces.skewMax)

    // MARK: a fleet

    /// Counts of one nonce that were used, as nodes of a fleet tell each other.
    package struct Told: Equatable, Sendable {
        package let nonce: DigestNonce
        package let highest: UInt32
        /// Bit n: the count `highest - n` was used.
        package let used: UInt128

        package init(nonce: DigestNonce, highest: UInt32, used: UInt128) {
            self.nonce = nonce
            self.highest = highest
            self.used = used
        }
    }

    /// Notes from now on what the other nodes have to be told.
    package mutating func share() { untold = [] }

    /// More do not wait to be told. Their counts can be used once more on each other node.
    private static let untoldMax = 4_096

    private mutating func note(_ nonce: DigestNonce) {
        if untold.map({ $0.count < NonceCounts.untoldMax }) ?? false { untold?.insert(nonce) }
    }

    /// The nonces that were used since they were told. Taken once.
    package mutating func takeUntold(_ most: Int) -> [Told] {
        guard let nonces = untold, !nonces.isEmpty else { return [] }
        let taken = nonces.prefix(most)
        untold?.subtract(taken)
        return taken.compactMap { nonce in
            windows[nonce].map { Told(nonce: nonce, highest: $0.highest, used: $0.used) }
        }
    }

    /// Another node has used these counts. What either node has used counts as used.
    ///
    /// - Parameter valid: as in `use`.
    package mutating func count(_ told: Told, valid: ClosedRange<UInt64>) {
        guard told.nonce.issued >= valid.lowerBound else { return }
        guard var window = windows[told.nonce] else {
            return add(told.nonce, Window(highest: told.highest, used: told.used), valid)
        }
        if told.highest > window.highest {
            window.used = NonceCounts.older(window.used, by: told.highest - window.highest) | told.used
            window.highest = told.highest
        } else {
            window.used |= NonceCounts.older(told.used, by: window.highest - told.highest)
        }
        windows[told.nonce] = window
    }

    private static func older(_ used: UInt128, by distance: UInt32) -> UInt128 {
        distance < windowBits ? used << UInt128(distance) : 0
    }
}

extension UInt64 {
    fileprivate func saturatingAdd(_ other: UInt64) -> UInt64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
