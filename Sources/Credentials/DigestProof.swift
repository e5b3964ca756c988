import Message

/// Checks the next credentials of a client that has proven one request, as `DigestCredentials` does, without allocating: with the hashes of what does
/// not change computed beforehand.
package struct DigestProof<Hash: RunningHash>: Sendable {
    private let form: DigestForm
    /// Nothing has been added.
    private let empty: Hash
    /// The secret and the nonce have been added.
    private let keyed: Hash
    private let protection: [UInt8]
    private let byteCount: Int

    /// - Parameters:
    ///   - value: the field value that `credentials` were read from.
    ///   - secret: H(user:realm:password) in hexadecimal digits.
    /// - Returns: nil if such credentials have to be read in full each time.
    package init?(_ value: ArraySlice<UInt8>, _ credentials: DigestCredentials, _ secret: Secret) {
        guard credentials.protection == .authentication, let form = DigestForm(value),
            let empty = Hash(credentials.algorithm.hash)
        else { return nil }
        self.form = form
        self.empty = empty
        var keyed = empty
        keyed.add(secret.bytes.span)
        keyed.add(colon.span)
        keyed.add(credentials.nonce.span)
        keyed.add(colon.span)
        self.keyed = keyed
        protection = credentials.protectionText
        byteCount = credentials.algorithm.hash.byteCount
    }

    /// Reads credentials. Nil if they differ in more than in `uri`, `nc`, `cnonce` and `response`.
    ///
    /// - Parameter range: where the value of the field lies in the head `bytes`.
    package func claim(in bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> DigestClaim? {
        form.claim(in: bytes, range)
    }

    /// Whether the client knows the secret. How long it takes does not tell how much of the digest is right.
    ///
    /// - Parameters:
    ///   - claim: gets what `addInformation` adds, if it is right.
    ///   - method: where the method lies in the head `bytes`.
    package func isRight(_ claim: inout DigestClaim, method: Range<Int>, _ bytes: borrowing Span<UInt8>) -> Bool {
        guard claim.response.count == 2 * byteCount else { return false }
        var begun = keyed
        begun.add(bytes.extracting(claim.countText))
        begun.add(colon.span)
        begun.add(bytes.extracting(claim.clientNonce))
        begun.add(colon.span)
        begun.add(protection.span)
        begun.add(colon.span)
        let expected = digest(begun, method: method, uri: claim.uri, bytes)
        let response = bytes.extracting(claim.response)
        var difference: UInt8 = 0
        for index in response.indices { difference |= expected[index] ^ asciiLowercased(response[index]) }
        guard difference == 0 else { return false }
        claim.answer = digest(begun, method: 0..<0, uri: claim.uri, bytes)
        return true
    }

    /// Adds the value of `Proxy-Authentication-Info` (RFC 7616 §3.5) to a text, all but `nextnonce`.
    ///
    /// - Parameter claim: one that is right.
    package func addInformation(for claim: DigestClaim, _ bytes: borrowing Span<UInt8>, to text: inout [UInt8]) {
        text.append("qop=")
        text.append(contentsOf: protection)
        text.append(", rspauth=\"")
        text.append(claim.answer.span, 0..<(2 * byteCount))
        text.append("\", cnonce=\"")
        text.append(bytes, claim.clientNonce)
        text.append("\", nc=")
        text.append(bytes, claim.countText)
    }

    /// The digest over a method and the target, in hexadecimal digits.
    ///
    /// - Parameter begun: all that precedes H(A2) has been added.
    private func digest(
        _ begun: Hash, method: Range<Int>, uri: Range<Int>, _ bytes: borrowing Span<UInt8>
    ) -> InlineArray<64, UInt8> {
        var covered = empty
        covered.add(bytes.extracting(method))
        covered.add(colon.span)
        covered.add(bytes.extracting(uri))
        let coveredDigits = digits(&covered)
        var hash = begun
        hash.add(coveredDigits.span.extracting(0..<(2 * byteCount)))
        return digits(&hash)
    }

    private func digits(_ hash: inout Hash) -> InlineArray<64, UInt8> {
        var bytes = HashBytes(repeating: 0)
        hash.finish(into: &bytes)
        var digits = InlineArray<64, UInt8>(repeating: 0)
        for index in 0..<byteCount {
            digits[2 * index] = hexadecimalDigit(bytes[index] >> 4)
            digits[2 * index + 1] = hexadecimalDigit(bytes[index] & 15)
        }
        return digits
    }
}

private var colon: InlineArray<1, UInt8> { [UInt8(ascii: ":")] }
