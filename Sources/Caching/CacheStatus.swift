package import Message

/// How a request was handled, for the `Cache-Status` field (RFC 9211): `larder; hit; ttl=42`.
package struct CacheStatus: Sendable, Equatable {
    package enum Outcome: Sendable, Equatable {
        /// Answered from the store, without the origin.
        case hit
        /// Went towards the origin, and why.
        case forwarded(ForwardReason)
        /// Larder made the answer itself and forwarded nothing: neither `hit` (§2.1) nor `fwd` (§2.2) is said.
        case local
    }

    /// RFC 9211 §2.2; the raw value is the token.
    package enum ForwardReason: String, CaseIterable, Sendable {
        case bypass = "bypass"
        case method = "method"
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss = "miss"
        case request = "request"
        case stale = "stale"
        case partial = "partial"

        /// How the member for this cache begins.
        fileprivate var member: StaticString {
            switch self {
            case .bypass: "larder; fwd=bypass"
            case .method: "larder; fwd=method"
            case .uriMiss: "larder; fwd=uri-miss"
            case .varyMiss: "larder; fwd=vary-miss"
            case .miss: "larder; fwd=miss"
            case .request: "larder; fwd=request"
            case .stale: "larder; fwd=stale"
            case .partial: "larder; fwd=partial"
            }
        }
    }

    package var outcome: Outcome
    /// Status the origin gave, where it differs from what the client gets or it is worth telling (§2.3).
    package var forwardStatus: UInt16?
    /// What is left of the lifetime; negative where stale (§2.4).
    package var ttl: Seconds?
    /// The response went into the store (§2.5).
    package var isStored = false
    /// The request joined another's on its way (§2.6).
    package var isCollapsed = false
    /// The cache key (§2.7), where it is to be told.
    package var key: [UInt8]?
    /// More, such as the reason why it was not stored (§2.8): a token, as the raw values of our reasons are.
    package var detail: String?

    package init(_ outcome: Outcome) { self.outcome = outcome }

    /// Appends the member for this cache, without a line end. A hit with its `ttl` allocates nothing but room in `bytes`.
    package func append(to bytes: inout [UInt8]) {
        switch outcome {
        case .hit: append("larder; hit", to: &bytes)
        case .forwarded(let reason): append(reason.member, to: &bytes)
        case .local: append("larder", to: &bytes)
        }
        if let forwardStatus {
            append("; fwd-status=", to: &bytes)
            appendDecimal(Int64(forwardStatus), to: &bytes)
        }
        if let ttl {
            append("; ttl=", to: &bytes)
            // RFC 9651 §3.3.1: an integer has fifteen digits at most.
            appendDecimal(min(max(ttl.count, -999_999_999_999_999), 999_999_999_999_999), to: &bytes)
        }
        if isStored { append("; stored", to: &bytes) }
        if isCollapsed { append("; collapsed", to: &bytes) }
        if let key {
            append("; key=", to: &bytes)
            appendStructuredString(key, to: &bytes)
        }
        if var detail {
            append("; detail=", to: &bytes)
            // As a buffer: the characters of a string are slow to visit one by one.
            detail.withUTF8 { text in
                if unsafe isToken(text) {
                    unsafe bytes.append(contentsOf: text)
                } else {
                    unsafe appendStructuredString(text, to: &bytes)
                }
            }
        }
    }

    private func append(_ text: StaticString, to bytes: inout [UInt8]) {
        unsafe bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}

/// An sf-token (RFC 9651 §3.3.4): starts with a letter or "*".
private func isToken(_ text: some Collection<UInt8>) -> Bool {
    guard let first = text.first, isAlpha(first) || first == Byte.asterisk else { return false }
    return text.allSatisfy { isTchar($0) || $0 == 0x3A || $0 == 0x2F }
}

/// An sf-string (RFC 9651 §3.3.3): visible ASCII and spaces; what else there is goes percent-encoded.
private func appendStructuredString(_ text: some Collection<UInt8>, to bytes: inout [UInt8]) {
    bytes.append(Byte.quote)
    for byte in text {
        if byte == Byte.quote || byte == Byte.backslash {
            bytes += [Byte.backslash, byte]
        } else if byte == 0x20 || isVchar(byte) {
            bytes.append(byte)
        } else {
            bytes += [0x25, hexDigit(byte >> 4), hexDigit(byte & 0xF)]
        }
    }
    bytes.append(Byte.quote)
}

private func hexDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }

/// Digits without a String, since it is on every hit.
private func appendDecimal(_ value: Int64, to bytes: inout [UInt8]) {
    if value < 0 { bytes.append(0x2D) }
    Message.appendDecimal(value.magnitude, to: &bytes)
}
