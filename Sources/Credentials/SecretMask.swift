import Message

/// Replaces a secret in bytes that come in pieces, so that who reads them does not learn it: as it is, percent-encoded, with escapes of
/// JSON, and in base 64. Everything keeps its length.
package struct SecretMask: Sendable {
    private struct Pattern: Sendable {
        let bytes: [UInt8]
        let replacement: [UInt8]
    }
    /// The shortest secret, in bytes, that is looked for.
    package static let bytesMin = 8

    /// The longest first: one may be a part of another.
    private let patterns: [Pattern]
    private let isFirstByte: [Bool]
    /// The last bytes of the pieces so far, which may begin a pattern.
    private var held: [UInt8] = []
    /// How many times the secret was replaced.
    package private(set) var count = 0

    /// - Parameters:
    ///   - stand-in: what takes the place of the secret where it stands as it is, if it is as long. Otherwise, and in other encodings, there
    ///     are asterisks.
    ///   - encoded: texts that contain the secret and were sent, such as the credentials of Basic, and what the client had in their place.
    package init(_ secret: Secret, standIn: [UInt8]?, encoded: [(sent: [UInt8], own: [UInt8])] = []) {
        let bytes = secret.bytes
        var patterns = [
            Pattern(
                bytes: bytes,
                replacement: standIn.flatMap { $0.count == bytes.count ? $0 : nil } ?? SecretMask.stars(bytes))
        ]
        for (sent, own) in encoded {
            patterns.append(
                Pattern(bytes: sent, replacement: own.count == sent.count ? own : SecretMask.stars(sent)))
        }
        var seen = Set(patterns.map(\.bytes))
        for form in SecretMask.forms(of: bytes) where form.count >= 8 && seen.insert(form).inserted {
            patterns.append(Pattern(bytes: form, replacement: SecretMask.stars(form)))
        }
        self.patterns = patterns.filter { !$0.bytes.isEmpty }.sorted { $0.bytes.count > $1.bytes.count }
        var isFirstByte = [Bool](repeating: false, count: 256)
        for pattern in self.patterns { isFirstByte[Int(pattern.bytes[0])] = true }
        self.isFirstByte = isFirstByte
    }

    /// Takes a piece. Returns what can be passed on: all but the last bytes if they may begin a pattern.
    package mutating func take(_ piece: [UInt8]) -> [UInt8] { take(piece, isLast: false) }

    /// The rest.
    package mutating func finish() -> [UInt8] { take([], isLast: true) }

    /// Replaces the secret in a whole text.
    package mutating func apply(to text: [UInt8]) -> [UInt8] {
        precondition(held.isEmpty, "a text stands for itself")
        return take(text, isLast: true)
    }

    private mutating func take(_ piece: [UInt8], isLast: Bool) -> [UInt8] {
        var bytes = held.isEmpty ? piece : held + piece
        held = []
        var index = 0
        scan: while index < bytes.count {
            guard isFirstByte[Int(bytes[index])] else {
                index += 1
                continue
            }
            for pattern in patterns {
                let present = min(pattern.bytes.count, bytes.count - index)
                guard bytes[index..<(index + present)].elementsEqual(pattern.bytes.prefix(present)) else { continue }
                if present < pattern.bytes.count {
                    if isLast { continue }
                    held = Array(bytes[index...])
                    bytes.removeSubrange(index...)
                    break scan
                }
                bytes.replaceSubrange(index..<(index + present), with: pattern.replacement)
                count += 1
                index += present - 1
                break
            }
            index += 1
        }
        return bytes
    }

    private static func stars(_ bytes: [UInt8]) -> [UInt8] { [UInt8](repeating: UInt8(ascii: "*"), count: bytes.count) }

    private static func forms(of secret: [UInt8]) -> [[UInt8]] {
        let encoded = percentEncoded(secret)
        var forms = [encoded, lowercasingEscapes(encoded)]
        var json: [UInt8] = []
        var jsonWithSlashes: [UInt8] = []
        for byte in secret {
            if byte == 0x22 || byte == 0x5C { json.append(0x5C) }
            if byte == 0x22 || byte == 0x5C || byte == 0x2F { jsonWithSlashes.append(0x5C) }
            json.append(byte)
            jsonWithSlashes.append(byte)
        }
        forms += [json, jsonWithSlashes]
        // The digits that the secret alone decides, for each place of its first byte in a group of three.
        for skipped in 0..<3 where secret.count >= skipped + 3 {
            let groups = (secret.count - skipped) / 3
            let digits = encodeBase64(secret[skipped..<(skipped + 3 * groups)])
            forms += [digits, digits.map { $0 == 0x2B ? 0x2D : $0 == 0x2F ? 0x5F : $0 }]
        }
        return forms
    }
}

/// With the digits of percent-encodings in lower case.
private func lowercasingEscapes(_ text: [UInt8]) -> [UInt8] {
    var result = text
    for index in text.indices where index >= 1 && (text[index - 1] == 0x25 || (index >= 2 && text[index - 2] == 0x25)) {
        if (0x41...0x46).contains(text[index]) { result[index] |= 0x20 }
    }
    return result
}
