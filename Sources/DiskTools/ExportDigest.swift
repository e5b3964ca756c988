/// The digest that shows that an archive is complete: the SHA-256 over the SHA-256 of each MiB of it, written as lines of hexadecimal
/// digits. It can be computed in pieces, and without Larder:
///
///     head -c BYTES FILE.tar | split -b 1M --filter='sha256sum | cut -c1-64' | sha256sum
struct ExportDigest {
    static let pieceBytes = 1 << 20
    private let sha256: @Sendable ([UInt8]) -> [UInt8]
    /// The digests of the whole pieces, 32 bytes each.
    private var digests: [UInt8] = []
    private var piece: [UInt8] = []

    init(sha256: @escaping @Sendable ([UInt8]) -> [UInt8]) { self.sha256 = sha256 }

    /// How many bytes were added.
    var byteCount: UInt64 { UInt64(digests.count / 32 * Self.pieceBytes + piece.count) }

    mutating func add(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.pieceBytes - piece.count)
            piece += part
            rest = rest.dropFirst(part.count)
            guard piece.count == Self.pieceBytes else { return }
            digests += sha256(piece)
            precondition(digests.count % 32 == 0, "a SHA-256 has 32 bytes")
            piece.removeAll(keepingCapacity: true)
        }
    }

    /// 64 hexadecimal digits.
    var value: String {
        let all = piece.isEmpty ? digests : digests + sha256(piece)
        var lines: [UInt8] = []
        lines.reserveCapacity(all.count / 32 * 65)
        for start in stride(from: 0, to: all.count, by: 32) {
            lines += hexadecimal(all[start..<start + 32])
            lines.append(0x0A)
        }
        return String(decoding: hexadecimal(sha256(lines)[...]), as: UTF8.self)
    }
}

private func hexadecimal(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
}
