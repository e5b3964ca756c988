/// A 128-bit hash of a primary cache key, which is a normalised URI (RFC 9111 §2).
///
/// The hash finds a response but does not decide: whoever looks something up by it compares the URI as well.
package struct CacheKey: Hashable, Sendable {
    package let high, low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The bits are well mixed, so one word of them is a sufficient hash for a dictionary.
    package func hash(into hasher: inout Hasher) { hasher.combine(low) }
}

/// Hashes keys with a secret, so that nobody outside can choose URIs that collide.
///
/// The hash has two lanes of multiply-and-fold over blocks of 16 bytes, similar to wyhash: it is fast on short keys and has no
/// cryptographic strength. The last block is not padded but overlaps the one before. The length, which is part of the hash, tells such
/// inputs apart.
package struct CacheKeyHasher: Sendable {
    private let secret: (UInt64, UInt64)

    package init(secret: (UInt64, UInt64)) {
        // Spread the bits, so that even a poor secret such as zero gives four words with many ones.
        let a = fold(secret.0 ^ 0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93)
        let b = fold(secret.1 ^ 0xC2B2_AE3D_27D4_EB4F, 0xA5CB_9243_F2CE_D9AD)
        self.secret = (secret.0 ^ b ^ 0x8BB8_4B93_962E_ACC9, secret.1 ^ a ^ 0x2D35_8DCC_AA6C_78A5)
    }

    package func key(of bytes: RawSpan) -> CacheKey {
        let count = bytes.byteCount
        var a = secret.0 ^ UInt64(count)
        var b = secret.1 ^ 0x4B33_A62E_D433_D4A3
        var offset = 0
        while offset + 16 < count {
            mix(&a, &b, word(bytes, offset), word(bytes, offset + 8))
            offset += 16
        }
        let (first, last) = lastBlock(bytes, count)
        mix(&a, &b, first, last)
        return CacheKey(
            high: fold(a ^ secret.1, b ^ 0xE703_7ED1_A0B4_28DB), low: fold(b ^ secret.0, a ^ 0x8EBC_6AF0_9C88_C6E3))
    }

    package func key(of bytes: borrowing Span<UInt8>) -> CacheKey { unsafe key(of: bytes.bytes) }

    @inline(__always)
    private func mix(_ a: inout UInt64, _ b: inout UInt64, _ x: UInt64, _ y: UInt64) {
        let previous = a
        a = fold(x ^ a, y ^ secret.1 ^ b)
        b = fold(y ^ previous ^ secret.0, x ^ b ^ 0x5899_65CC_7537_4CC3)
    }

    /// The last 16 bytes. If there are fewer, both ends, which overlap.
    @inline(__always)
    private func lastBlock(_ bytes: RawSpan, _ count: Int) -> (UInt64, UInt64) {
        if count >= 16 { return (word(bytes, count - 16), word(bytes, count - 8)) }
        if count >= 8 { return (word(bytes, 0), word(bytes, count - 8)) }
        var value: UInt64 = 0
        for offset in 0..<count { value = value << 8 | UInt64(byte(bytes, offset)) }
        return (value, 0)
    }
}

/// Multiplies to 128 bits and folds both halves into one word.
@inline(__always)
private func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.high ^ product.low
}

/// Bounds are checked. It is "unsafe" only because any bits are taken for a number, which is right here.
@inline(__always)
private func word(_ bytes: RawSpan, _ offset: Int) -> UInt64 {
    unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
}

@inline(__always)
private func byte(_ bytes: RawSpan, _ offset: Int) -> UInt8 {
    unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt8.self)
}
