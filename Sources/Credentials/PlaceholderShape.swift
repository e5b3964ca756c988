/// How a placeholder looks: like the secret for which it stands, so that clients that check the form of a token accept it.
///
/// It keeps the words in front of the random part of the secret (`ghp_`, `sk-ant-api03-`), its length and its kinds of characters.
package struct PlaceholderShape: Equatable, Sendable {
    /// What a placeholder is guessed with at least: 128 bits.
    package static let bitsMin = 128

    package let prefix: [UInt8]
    package let randomCount: Int
    package let alphabet: [UInt8]

    /// - Parameter prefix: what placeholders begin with. Nil: what the secret begins with, if that is made of words.
    package init(like secret: Secret, prefix: [UInt8]? = nil) {
        self.prefix = prefix ?? PlaceholderShape.words(infrontOf: secret.bytes)
        let random = secret.bytes.dropFirst(min(self.prefix.count, secret.bytes.count))
        alphabet = PlaceholderShape.alphabet(of: random)
        // 4 bits in a hexadecimal digit, 5 and more in a letter or digit.
        let bits = alphabet.count == 16 ? 4 : 5
        randomCount = max(random.count, (PlaceholderShape.bitsMin + bits - 1) / bits)
    }

    /// A new placeholder.
    ///
    /// - Parameter randomByte: a byte that nobody can predict.
    package func make(randomByte: () -> UInt8) -> [UInt8] {
        var text = prefix
        // Larger values are thrown away: with them, some characters would come more often than others.
        let limit = 256 - 256 % alphabet.count
        while text.count < prefix.count + randomCount {
            let byte = Int(randomByte())
            if byte < limit { text.append(alphabet[byte % alphabet.count]) }
        }
        return text
    }

    /// Short words of small letters and digits, each with `_` or `-` behind it. Anything else may be a part of the secret itself.
    private static func words(infrontOf secret: [UInt8]) -> [UInt8] {
        var end = 0
        var index = 0
        while index < min(secret.count, 24) {
            let byte = secret[index]
            if byte == 0x5F || byte == 0x2D {
                guard index > end else { break }
                end = index + 1
            } else if !(isSmall(byte) || (isDigit(byte) && index > end)) || index - end >= 8 {
                break
            }
            index += 1
        }
        return Array(secret[..<end])
    }

    private static func alphabet(of random: ArraySlice<UInt8>) -> [UInt8] {
        let digits = Array(UInt8(ascii: "0")...UInt8(ascii: "9"))
        let small = Array(UInt8(ascii: "a")...UInt8(ascii: "z"))
        let large = Array(UInt8(ascii: "A")...UInt8(ascii: "Z"))
        if random.count >= 16, random.allSatisfy({ isDigit($0) || (0x61...0x66).contains($0) }) {
            return digits + small.prefix(6)
        }
        let (hasSmall, hasLarge) = (random.contains(where: isSmall), random.contains { (0x41...0x5A).contains($0) })
        if hasSmall == hasLarge { return digits + large + small }
        return digits + (hasSmall ? small : large)
    }

    private static func isSmall(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
