import Message

/// A nonce of Digest (RFC 7616 §3.3): when it was made, a random number, and a code over both.
///
/// The code is made with a key of this process or of its fleet, so that nothing has to be kept of a nonce before it is used. Without a fleet, no nonce
/// is known any more after a restart: a client gets `stale=true`, and sends its request once more without asking its user.
package struct DigestNonce: Hashable, Sendable {
    /// Milliseconds of the monotonic clock, or in a fleet since 1970.
    package let issued: UInt64
    package let number: UInt64

    package init(issued: UInt64, number: UInt64) {
        self.issued = issued
        self.number = number
    }
}

/// Makes and reads nonces. All workers have the same key, and a reload does not change it; nor do the other nodes of a fleet have another one.
package struct DigestNonces: Sendable {
    private let hash: SipHash
    private let random: @Sendable () -> UInt64
    /// What is added to the monotonic clock, so that all nodes of a fleet tell the same time.
    private let clockOffset: @Sendable () -> Duration
    /// How far the clock of another node may be ahead.
    private let skewMax: Duration
    /// How long a nonce can be used.
    package let lifetime: Duration

    /// - Parameter hash: with a key that is used for nothing else.
    /// - Parameter clockOffset: what is added to the monotonic clock so that all nodes of a fleet tell the same time. Nil without a fleet.
    package init(
        _ hash: SipHash, lifetime: Duration, clockOffset: (@Sendable () -> Duration)? = nil,
        random: @escaping @Sendable () -> UInt64
    ) {
        self.hash = hash
        self.lifetime = lifetime
        self.random = random
        self.clockOffset = clockOffset ?? { .zero }
        skewMax = clockOffset == nil ? .zero : DigestNonces.skewMax
    }

    package static let skewMax = Duration.seconds(60)

    /// When the nonces that are valid were made, until now.
    func valid(now: Duration) -> ClosedRange<UInt64> {
        let time = max(now + clockOffset(), .zero)
        return milliseconds(max(time - lifetime, .zero))...milliseconds(time)
    }

    /// When a nonce was made, by the monotonic clock. Later than now if another node with a clock that is ahead has made it.
    func issueTime(of nonce: DigestNonce) -> Duration {
        .milliseconds(Int64(clamping: nonce.issued)) - clockOffset()
    }

    /// 64 hexadecimal digits.
    package func make(at now: Duration) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(64)
        add(at: now, to: &text)
        return text
    }

    /// Adds a new nonce to a text, without allocating if there is room.
    func add(at now: Duration, to text: inout [UInt8]) {
        let nonce = DigestNonce(issued: milliseconds(now + clockOffset()), number: random())
        let code = code(of: nonce)
        add(nonce.issued, to: &text)
        add(nonce.number, to: &text)
        add(code.low, to: &text)
        add(code.high, to: &text)
    }

    private func add(_ word: UInt64, to text: inout [UInt8]) {
        for shift in stride(from: 60, through: 0, by: -4) {
            text.append(hexadecimalDigit(UInt8(truncatingIfNeeded: word >> UInt64(shift) & 15)))
        }
    }

    package enum Reading: Equatable, Sendable {
        /// - Parameter isOld: a quarter of its life or less is left.
        case valid(DigestNonce, isOld: Bool)
        /// It has been valid, or it is of another process or another fleet.
        case stale
    }

    package func read(_ text: [UInt8], at now: Duration) -> Reading {
        guard let words = words(of: text) else { return .stale }
        let nonce = DigestNonce(issued: words[0], number: words[1])
        let code = code(of: nonce)
        // Both halves are looked at, whatever the first one is.
        guard (code.low ^ words[2]) | (code.high ^ words[3]) == 0 else { return .stale }
        let age = now - issueTime(of: nonce)
        guard age >= .zero - skewMax, age < lifetime else { return .stale }
        return .valid(nonce, isOld: age >= lifetime * 3 / 4)
    }

    private func code(of nonce: DigestNonce) -> SipHash.Digest {
        var message = InlineArray<16, UInt8>(repeating: 0)
        for index in 0..<8 {
            message[index] = UInt8(truncatingIfNeeded: nonce.issued >> UInt64(56 - 8 * index))
            message[8 + index] = UInt8(truncatingIfNeeded: nonce.number >> UInt64(56 - 8 * index))
        }
        return hash.digest(of: message.span, 0..<16)
    }

    private func words(of text: [UInt8]) -> [UInt64]? {
        guard text.count == 64 else { return nil }
        var words: [UInt64] = [0, 0, 0, 0]
        for (index, digit) in text.enumerated() {
            guard let value = hexValue(digit) else { return nil }
            words[index / 16] = words[index / 16] << 4 | UInt64(value)
        }
        return words
    }
}

func milliseconds(_ time: Duration) -> UInt64 {
    UInt64(clamping: time.components.seconds * 1000 + time.components.attoseconds / 1_000_000_000_000_000)
}
