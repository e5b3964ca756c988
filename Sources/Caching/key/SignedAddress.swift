package import Message

/// An address with a signature in its query: whoever has it may fetch what is stored there, until it expires.
///
/// Stores for objects and delivery networks make such addresses anew for each request, so a key that has the signature is never hit. The key
/// here leaves it out, and ends with `#signed`: a URI has no fragment, so what was fetched with a signature is never found without one.
/// Who may have what is stored under such a key is another question (`ProvenAccess`).
package struct SignedAddress: Sendable, Equatable {
    /// The key without the signature.
    package let key: [UInt8]
    /// When the signature expires. Nil if that is not known.
    package let expiry: WallTime?

    /// Returns nil if the address has no signature that Larder knows.
    ///
    /// - Parameters:
    ///   - uri: the normalised URI of the request.
    ///   - key: what the key rules make of it.
    ///   - others: names of parameters that are part of a signature at this host, beyond those of the known schemes.
    package init?(_ uri: [UInt8], key: [UInt8], others: [ParameterPattern] = []) {
        let parameters = QueryParameters(uri)
        guard !parameters.isEmpty else { return nil }
        let scheme = SignatureScheme.known.first { $0.signs(parameters) }
        guard scheme != nil || parameters.contains(where: { name in others.contains { $0.matches(name) } }) else {
            return nil
        }
        self.key = SignedAddress.key(key, without: (scheme?.names ?? []) + others)
        expiry = scheme?.expiry(parameters)
    }

    /// The key under which the responses are stored that were fetched with a signature, from the key of any address for the same.
    package static func key(for uri: [UInt8], key: [UInt8], others: [ParameterPattern]) -> [UInt8] {
        SignedAddress(uri, key: key, others: others)?.key ?? key + Array(suffix)
    }

    private static func key(_ key: [UInt8], without names: [ParameterPattern]) -> [UInt8] {
        var key = key
        KeyRules(query: .dropping(names)).apply(to: &key)
        return key + Array(suffix)
    }

    private static let suffix = "#signed".utf8
}

/// The parameters of a query, as sent.
struct QueryParameters {
    private let parameters: [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)]

    init(_ uri: [UInt8]) {
        guard let mark = uri.firstIndex(of: UInt8(ascii: "?")) else {
            parameters = []
            return
        }
        parameters = uri[(mark + 1)...].split(separator: UInt8(ascii: "&")).map { parameter in
            let name = parameter.prefix { $0 != UInt8(ascii: "=") }
            return (name, parameter[name.endIndex...].dropFirst())
        }
    }

    var isEmpty: Bool { parameters.isEmpty }

    func contains(where isWanted: (ArraySlice<UInt8>) -> Bool) -> Bool { parameters.contains { isWanted($0.name) } }

    func contains(where isWanted: (_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Bool) -> Bool {
        parameters.contains { isWanted($0.name, $0.value) }
    }

    /// The names of such parameters.
    func filter(_ isWanted: (_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Bool) -> [String] {
        parameters.filter { isWanted($0.name, $0.value) }.map { String(decoding: $0.name, as: UTF8.self) }
    }

    /// The value of the only parameter with this name, with its percent-encoding decoded. Nil if it is empty, too.
    func value(_ name: String) -> [UInt8]? {
        let found = parameters.filter { $0.name.elementsEqual(name.utf8) }
        guard found.count == 1, !found[0].value.isEmpty else { return nil }
        return percentDecoded(found[0].value)
    }
}

/// One way to sign addresses: what is part of the signature, and when it expires.
private struct SignatureScheme: Sendable {
    enum Expiry: Sendable {
        /// An instant, and for how many seconds the signature holds from then on.
        case lifetime(from: String, seconds: String)
        /// Seconds since 1970.
        case epoch(String)
        case instant(String)
    }

    /// The parameters without which there is no signature.
    let required: [String]
    /// The parameters that are part of the signature. What changes the response, such as `response-content-type`, is not.
    let names: [ParameterPattern]
    private let expires: Expiry

    init(_ required: [String], _ names: [String], _ expires: Expiry) {
        self.required = required
        self.names = names.compactMap { ParameterPattern($0) }
        self.expires = expires
    }

    func signs(_ parameters: QueryParameters) -> Bool { required.allSatisfy { parameters.value($0) != nil } }

    func expiry(_ parameters: QueryParameters) -> WallTime? {
        switch expires {
        case .lifetime(let from, let seconds):
            guard let start = parameters.value(from).flatMap({ parseTimestamp($0) }),
                let lifetime = parameters.value(seconds).flatMap({ parseDecimal($0) })
            else { return nil }
            return start + Seconds(Int64(clamping: lifetime))
        case .epoch(let name):
            return parameters.value(name).flatMap { parseDecimal($0) }.map {
                WallTime(secondsSinceEpoch: Int64(clamping: min($0, 1 << 40)))
            }
        case .instant(let name): return parameters.value(name).flatMap { parseTimestamp($0) }
        }
    }

    static let known = [
        // Amazon S3 and what is compatible with it: Signature Version 4, and Version 2 before it.
        SignatureScheme(
            ["X-Amz-Signature", "X-Amz-Credential"], ["X-Amz-*"],
            .lifetime(from: "X-Amz-Date", seconds: "X-Amz-Expires")),
        SignatureScheme(
            ["Signature", "AWSAccessKeyId", "Expires"],
            ["Signature", "AWSAccessKeyId", "Expires", "x-amz-security-token"], .epoch("Expires")),
        // Amazon CloudFront, with a canned or a custom policy.
        SignatureScheme(
            ["Signature", "Key-Pair-Id"], ["Signature", "Key-Pair-Id", "Expires", "Policy", "Hash-Algorithm"],
            .epoch("Expires")),
        // Google Cloud Storage: V4, and V2 before it.
        SignatureScheme(
            ["X-Goog-Signature"], ["X-Goog-*"], .lifetime(from: "X-Goog-Date", seconds: "X-Goog-Expires")),
        SignatureScheme(
            ["Signature", "GoogleAccessId", "Expires"], ["Signature", "GoogleAccessId", "Expires"], .epoch("Expires")),
        // Azure Storage: shared access signatures.
        SignatureScheme(
            ["sig", "sv"],
            [
                "saoid", "scid", "sdd", "se", "si", "sig", "sip", "ske", "skoid", "sks", "skt", "sktid", "skv", "sp",
                "spr", "sr", "srt", "ss", "st", "suoid", "sv",
            ], .instant("se")),
    ]
}

/// Percent-encoded octets decoded (RFC 3986 §2.1). What is not a valid encoding stays.
private func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
    guard text.contains(UInt8(ascii: "%")) else { return Array(text) }
    var result: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
        if byte == UInt8(ascii: "%"), let high = rest.first.flatMap({ hexValue($0) }),
            let low = rest.dropFirst().first.flatMap({ hexValue($0) })
        {
            result.append(high << 4 | low)
            rest = rest.dropFirst(2)
        } else {
            result.append(byte)
        }
    }
    return result
}
