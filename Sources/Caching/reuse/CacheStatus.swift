package import Message

/// How a request was handled, for the `Cache-Status` field (RFC 9211): `larder; hit; ttl=42`.
package struct CacheStatus: Sendable, Equatable {
    package enum Outcome: Sendable, Equatable {
        /// Answered from the store, without asking the origin.
        case hit
        /// Sent towards the origin, for this reason.
        case forwarded(ForwardReason)
        /// Larder gave the answer itself and forwarded nothing. The field then has neither `hit` (§2.1) nor `fwd` (§2.2).
        case local
    }

    /// Why a request was sent towards the origin (RFC 9211 §2.2). The raw value is the token.
    package enum ForwardReason: String, CaseIterable, Sendable {
        case bypass = "bypass"
        case method = "method"
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss = "miss"
        case request = "request"
        case stale = "stale"
        case partial = "partial"

        /// The beginning of the list member of this cache.
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
    /// The status that the origin sent, if it differs from that of the answer or is worth telling (§2.3).
    package var forwardStatus: UInt16?
    /// The rest of the lifetime. Negative if the response is stale (§2.4).
    package var ttl: Seconds?
    /// The response was stored (§2.5).
    package var isStored = false
    /// The request joined a fetch for another request (§2.6).
    package var isCollapsed = false
    /// The cache key (§2.7). Nil if it is not to be told.
    package var key: [UInt8]?
    /// A detail, such as the reason why the response was not stored (§2.8): a token, like the raw values of our reasons.
    package var detail: String?

    package init(_ outcome: Outcome) { self.outcome = outcome }

    /// Appends the list member of this cache, without a line end. For a hit with `ttl`, nothing is allocated except space in `bytes`.
    package func append(to bytes: inout [UInt8]) {
        bytes.append(addingCapacity: lengthMax) { append(to: &$0) }
    }

    /// The room in bytes that the list member needs at most. A byte of a string takes up to three.
    package var lengthMax: Int {
        var length = 128
        if let key { length += 3 * key.count + 8 }
        if let detail { length += 3 * detail.utf8.count + 12 }
        return length
    }

    /// Appends the list member for a response that is passed on. Does the same as a value with these properties would, at less cost.
    ///
    /// - Parameter reason: why the response is not stored.
    package static func appendPassedOn(
        _ forwarded: ForwardReason, status: UInt16, notStored reason: NotStoredReason?,
        to bytes: inout OutputSpan<UInt8>
    ) {
        bytes.append(forwarded.member)
        bytes.append("; fwd-status=")
        appendStatus(status, to: &bytes)
        guard let reason else { return }
        bytes.append("; detail=")
        bytes.append(reason.token)
    }

    /// The room in bytes that `appendPassedOn` needs at most.
    package static var passedOnLengthMax: Int { 128 }

    package func append(to bytes: inout OutputSpan<UInt8>) {
        switch outcome {
        case .hit: bytes.append("larder; hit")
        case .forwarded(let reason): bytes.append(reason.member)
        case .local: bytes.append("larder")
        }
        if let forwardStatus {
            bytes.append("; fwd-status=")
            appendStatus(forwardStatus, to: &bytes)
        }
        if let ttl {
            bytes.append("; ttl=")
            // RFC 9651 §3.3.1: an integer has at most fifteen digits.
            appendDecimal(min(max(ttl.count, -999_999_999_999_999), 999_999_999_999_999), to: &bytes)
        }
        if isStored { bytes.append("; stored") }
        if isCollapsed { bytes.append("; collapsed") }
        if let key {
            bytes.append("; key=")
            appendStructuredString(key, to: &bytes)
        }
        if var detail {
            bytes.append("; detail=")
            // Use a buffer: visiting the characters of a string one by one is slow.
            detail.withUTF8 { text in
                if unsafe isStructuredToken(text) {
                    unsafe bytes.append(text)
                } else {
                    unsafe appendStructuredString(text, to: &bytes)
                }
            }
        }
    }
}

/// Appends digits without making a String, because this is on the way of every hit.
private func appendDecimal(_ value: Int64, to bytes: inout OutputSpan<UInt8>) {
    if value < 0 { bytes.append(0x2D) }
    Message.appendDecimal(value.magnitude, to: &bytes)
}
