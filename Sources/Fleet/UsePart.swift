import Message

/// What one node has used of a budget in one window, as it stands in Redis: `GENERATION BYTES CODE`.
///
/// The generation is when the budget was reset last, in milliseconds since 1970; zero if it was not. A part of an earlier generation counts no more.
package struct UsePart: Equatable, Sendable {
    /// A part that was read has at most `generationMax`.
    package let generation: UInt64
    package let bytes: UInt64

    package init(generation: UInt64, bytes: UInt64) {
        self.generation = generation
        self.bytes = bytes
    }

    /// A reset follows every generation: it makes the next number, if its clock is behind.
    static let generationMax: UInt64 = 1 << 53 - 1

    /// The field for the time of the last reset. No node has this name.
    package static let resetField = Array("#".utf8)

    /// - Parameters:
    ///   - key: the name of the budget in Redis.
    ///   - field: the name of the node, or `resetField`. Empty for a value without fields.
    package func encoded(key: [UInt8], field: [UInt8], hash: some FleetHash) -> [UInt8] {
        let text = Array("\(generation) \(bytes)".utf8)
        return text + [0x20] + hexadecimal(UsePart.code(text, key, field, hash))
    }

    /// Returns nil for what no node of the fleet has written under this name.
    package init?(_ value: [UInt8], key: [UInt8], field: [UInt8], hash: some FleetHash) {
        guard value.count <= 96 else { return nil }
        let parts = value.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3, let generation = parseDecimal(parts[0]),
            generation <= UsePart.generationMax, let bytes = parseDecimal(parts[1]),
            areEqualCodes(
                hexadecimal(UsePart.code(Array(value[..<(parts[2].startIndex - 1)]), key, field, hash)), parts[2])
        else { return nil }
        self.init(generation: generation, bytes: bytes)
    }

    /// 128 bits. Each piece but the last stands in front of a NUL, which none of them has.
    private static func code(_ text: [UInt8], _ key: [UInt8], _ field: [UInt8], _ hash: some FleetHash) -> [UInt8] {
        Array(hash.code(for: .use, key + [0] + field + [0] + text).prefix(16))
    }
}
