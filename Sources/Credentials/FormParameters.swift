import Message

/// A name and a value of a query or a form, both percent-encoded as signatures demand: every byte but the unreserved ones (RFC 3986 §2.3), with
/// capital digits.
struct EncodedParameter: Equatable, Comparable {
    let name: [UInt8]
    let value: [UInt8]

    /// - Parameters: decoded.
    init(_ name: some Sequence<UInt8>, _ value: some Sequence<UInt8>) {
        self.name = percentEncoded(name)
        self.value = percentEncoded(value)
    }

    /// By name, then by value, in the order of the encoded bytes.
    static func < (a: EncodedParameter, b: EncodedParameter) -> Bool {
        if a.name != b.name { return a.name.lexicographicallyPrecedes(b.name) }
        return a.value.lexicographicallyPrecedes(b.value)
    }
}

/// Reads `name=value&name=value` (application/x-www-form-urlencoded), where "+" is a space. A name alone has an empty value. Empty parts are
/// skipped.
func parseForm(_ bytes: some Collection<UInt8>) -> [EncodedParameter] {
    bytes.split(separator: UInt8(ascii: "&")).map { part in
        let name = part.prefix { $0 != UInt8(ascii: "=") }
        return EncodedParameter(
            percentDecode(name, plusIsSpace: true),
            percentDecode(part.dropFirst(name.count + 1), plusIsSpace: true))
    }
}

/// `name=value&name=value` in the order of the encoded bytes.
func canonicalForm(_ parameters: [EncodedParameter]) -> [UInt8] {
    Array(parameters.sorted().map { $0.name + [UInt8(ascii: "=")] + $0.value }.joined(separator: [UInt8(ascii: "&")]))
}
