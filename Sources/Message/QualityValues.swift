// Preferences with weights (RFC 9110 §12.4.2), as in Accept, Accept-Encoding and TE.

/// The members of a list with weights, in order. `token` is the text before the first semicolon (a coding, a media range). `weight` is in
/// thousandths: 1000 if there is no `q`, and 0 for "not acceptable". A malformed weight counts as 0, because it is better not to send
/// what may be unwanted.
package func qualityValues(_ value: ArraySlice<UInt8>) -> [(token: ArraySlice<UInt8>, weight: Int)] {
    var result: [(token: ArraySlice<UInt8>, weight: Int)] = []
    forEachListElement(value) { element in
        var token: ArraySlice<UInt8>?
        var weight = 1000
        forEachElement(element, separator: 0x3B) { part in
            if token == nil {
                token = part
            } else if let parameter = weightText(part) {
                weight = parseWeight(parameter) ?? 0
            }
        }
        if let token { result.append((token, weight)) }
    }
    return result
}

/// The value of a parameter `q`. Nil for other parameters.
private func weightText(_ part: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    guard let equals = part.firstIndex(of: 0x3D) else { return nil }
    return equalsIgnoringCase(trimOWS(part[..<equals]), "q") ? trimOWS(part[(equals + 1)...]) : nil
}

/// Parses `( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] )`. Returns thousandths.
private func parseWeight(_ text: ArraySlice<UInt8>) -> Int? {
    guard let first = text.first, first == 0x30 || first == 0x31 else { return nil }
    let rest = text.dropFirst()
    guard rest.isEmpty || rest.first == 0x2E, rest.count <= 4 else { return nil }
    var thousandths = Int(first - 0x30) * 1000
    var unit = 100
    for byte in rest.dropFirst() {
        guard isDigit(byte) else { return nil }
        thousandths += Int(byte - 0x30) * unit
        unit /= 10
    }
    return thousandths <= 1000 ? thousandths : nil
}

/// The content codings that Larder knows (RFC 9110 §8.4.1 and the IANA registry).
package enum ContentCoding: Sendable, CaseIterable {
    case identity, gzip, deflate, compress, br, zstd

    package var text: StaticString {
        switch self {
        case .identity: "identity"
        case .gzip: "gzip"
        case .deflate: "deflate"
        case .compress: "compress"
        case .br: "br"
        case .zstd: "zstd"
        }
    }

    /// Returns nil for another coding. `x-gzip` and `x-compress` equal the names without the prefix (§8.4.1).
    package init?(name: some Collection<UInt8>) {
        let bytes = Array(name)[...]
        let plain = bytes.count > 2 && equalsIgnoringCase(bytes.prefix(2), "x-") ? bytes.dropFirst(2) : bytes
        guard
            let coding = ContentCoding.allCases.first(where: { equalsIgnoringCase(bytes, $0.text) })
                ?? [.gzip, .compress].first(where: { equalsIgnoringCase(plain, $0.text) })
        else { return nil }
        self = coding
    }
}
