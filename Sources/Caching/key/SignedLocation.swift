import Message

/// Until when a redirect leads somewhere: its `Location` may have a signature, which is worth nothing when it has expired, however long the origin
/// says that the redirect is fresh.
///
/// Returns nil if the response is no redirect, or leads to an address without a signature.
///
/// - Parameter received: when the response arrived. A signature that does not say when it expires is trusted for a minute from then on.
func endOfSignature(status: UInt16, _ fields: Fields, received: WallTime) -> WallTime? {
    guard StatusClass(status) == .redirection, let location = fields.first(.location),
        location.contains(UInt8(ascii: "?"))
    else { return nil }
    let uri = Array(location.prefix { $0 != UInt8(ascii: "#") })
    if let signed = SignedAddress(uri, key: uri) { return signed.expiry ?? received + unknownLifetime }
    let parameters = QueryParameters(uri)
    guard parameters.contains(where: { name, value in value.count >= 16 && hasWord(name, of: signatureWords) }) else {
        return nil
    }
    return parameters.ends.min() ?? received + unknownLifetime
}

private let unknownLifetime = Seconds(60)

/// Words in the names of parameters that sign an address, or stand for the right to use it.
private let signatureWords = [
    "signature", "sig", "sign", "hmac", "hash", "token", "policy", "verify", "hdnts", "hdnea",
]
private let endWords = ["expires", "expiry", "expire", "expiration", "exp", "until", "validto", "se", "e"]

private func hasWord(_ name: ArraySlice<UInt8>, of words: [String]) -> Bool {
    let parts = name.map(asciiLowercased).split { !($0 >= 0x61 && $0 <= 0x7A) }
    return parts.contains { part in words.contains { part.elementsEqual($0.utf8) } }
}

extension QueryParameters {
    /// What looks like the end of a signature.
    fileprivate var ends: [WallTime] {
        filter { name, _ in hasWord(name, of: endWords) }.compactMap { name in
            value(name).flatMap { parseDecimal($0).flatMap(endByCount) ?? parseTimestamp($0) }
        }
    }
}

/// Seconds or milliseconds since 1970. Nil for a number that is no time of our days: it may count seconds from some beginning.
private func endByCount(_ count: UInt64) -> WallTime? {
    let seconds = count >= 100_000_000_000 ? count / 1000 : count
    return 500_000_000..<100_000_000_000 ~= seconds ? WallTime(secondsSinceEpoch: Int64(seconds)) : nil
}
