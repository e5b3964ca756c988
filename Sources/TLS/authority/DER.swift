/// Distinguished Encoding Rules (X.690 §10): as much as the extensions of a certificate, public keys and signatures need.
enum DER {
    static func sequence(_ parts: [UInt8]...) -> [UInt8] { element(0x30, parts.flatMap { $0 }) }
    static func octetString(_ bytes: [UInt8]) -> [UInt8] { element(0x04, bytes) }
    static let `true`: [UInt8] = element(0x01, [0xFF])

    /// A non-negative number below 128.
    static func integer(_ value: UInt8) -> [UInt8] {
        precondition(value < 128)
        return element(0x02, [value])
    }

    /// A non-negative number of any length, big-endian.
    static func number(_ bytes: [UInt8]) -> [UInt8] {
        let digits = Array(bytes.drop { $0 == 0 })
        // The highest bit is the sign (X.690 §8.3).
        let isPlain = digits.first.map { $0 < 0x80 } ?? false
        return element(0x02, isPlain ? digits : [0] + digits)
    }

    static let null: [UInt8] = element(0x05, [])

    /// An object identifier, its content encoded already.
    static func identifier(_ content: [UInt8]) -> [UInt8] { element(0x06, content) }

    /// Whole bytes of bits.
    static func bitString(_ bytes: [UInt8]) -> [UInt8] { element(0x03, [0] + bytes) }

    /// Named bits, of which bit 0 is the highest of the first byte. Zeros at the end are left out (X.690 §11.2.2).
    static func bits(_ numbers: [Int]) -> [UInt8] {
        var byte: UInt8 = 0
        for number in numbers {
            precondition((0..<8).contains(number))
            byte |= 0x80 >> UInt8(number)
        }
        return element(0x03, [UInt8(byte.trailingZeroBitCount), byte])
    }

    /// An implicit context-specific tag around primitive content: `[number] IMPLICIT`.
    static func tagged(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] { element(0x80 | number, bytes) }

    /// An implicit context-specific tag around elements.
    static func taggedSequence(_ number: UInt8, _ bytes: [UInt8]) -> [UInt8] { element(0xA0 | number, bytes) }

    private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] { [tag] + length(content.count) + content }

    private static func length(_ count: Int) -> [UInt8] {
        if count < 0x80 { return [UInt8(count)] }
        if count < 0x100 { return [0x81, UInt8(count)] }
        precondition(count < 0x1_0000)
        return [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
    }
}
