import Message

/// Certificates in PEM (RFC 7468): text with base 64 between two lines.
package enum PEMCertificates {
    /// The certificates of a file in DER, in their order, each once. Text around them, and blocks of other kinds, are skipped, and so is a
    /// block whose content is not base 64.
    package static func read(_ file: some Sequence<UInt8>) -> [[UInt8]] {
        var found: [[UInt8]] = []
        var known: Set<[UInt8]> = []
        var content: [UInt8]?
        for line in Array(file).split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let line = Array(trimOWS(line))
            if line == begin {
                content = []
            } else if line == end {
                if let der = content.flatMap({ decodeBase64($0) }), !der.isEmpty, known.insert(der).inserted {
                    found.append(der)
                }
                content = nil
            } else {
                content?.append(contentsOf: line)
            }
        }
        return found
    }

    /// Writes certificates one after the other, in lines of 64 characters.
    package static func write(_ certificates: [[UInt8]]) -> [UInt8] {
        var text: [UInt8] = []
        for certificate in certificates {
            text += begin + [0x0A]
            var digits = encodeBase64(certificate)[...]
            while !digits.isEmpty {
                text += digits.prefix(64) + [0x0A]
                digits = digits.dropFirst(64)
            }
            text += end + [0x0A]
        }
        return text
    }

    private static let begin = Array("-----BEGIN CERTIFICATE-----".utf8)
    private static let end = Array("-----END CERTIFICATE-----".utf8)
}
