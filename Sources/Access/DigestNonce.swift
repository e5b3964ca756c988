import Message

/// A nonce of Digest (RFC 7616 §3.3): when it was made, a random number, and a code over both.
///
/// The code is made with a key of this process, so that nothing has to be kept of a nonce before it is used. After a restart no nonce is
/// known any more: a client gets `stale=true`, and sends its request once more without asking its user.
package struct DigestNonce: Hashable, Sendable {
    /// Milliseconds of the monotonic clock.
    package let issued: UInt64
    let number: UInt64
}

/// Makes and reads nonces. All workers have the same key, and a reload does not change it.
package struct DigestNonces: Sendable {
    private let hash: SipHash
    private let random: @Sendable () -> UInt64
    /// How long a nonce can be used.
    package let lifetime: Duration

    /// - Parameter hash: with a key that is used for nothing else.
    package init(_ hash: SipHash, lifetime: Duration, random: @escaping @Sendable () -> UInt64) {
        self.hash = hash
        self.lifetime = lifetime
        self.random = random
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
        let nonce = DigestNonce(issued: milliseconds(now), number: random())
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
        /// It has been valid, or it is of another process.
        case stale
    }

    package func read(_ text: [UInt8], at now: Duration) -> Reading {
        guard let words = words(of: text) else { return .stale }
        let nonce = DigestNonce(issued: words[0], number: words[1])
        let code = code(of: nonce)
        // Both halves are looked at, whatever the first one is.
        guard (code.low ^ words[2]) | (code.high ^ words[3]) == 0 else { return .stale }
        let age = Duration.milliseconds(Int64(clamping: milliseconds(now) &- nonce.issued))
        guard nonce.issued <= milliseconds(now), age < lifetime else { return .stale }
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
