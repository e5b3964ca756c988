package import Caching
package import Framing
package import Message

/// What is decided of the head of a final response that is passed on to the client without being stored (RFC 9110 §7.6).
///
/// It keeps integers only, so that it is copied without retaining anything; the response is given again where the bytes are
/// written.
package struct RelayedHead: Sendable {
    /// How the content is framed towards the client.
    package let framing: ForwardedHead.Framing
    private let minorVersion: UInt8
    private let tellsLength: Bool
    private let reason: CacheStatus.ForwardReason
    private let detail: NotStoredReason?

    /// - Parameters:
    ///   - status: of the response.
    ///   - length: how the origin framed the content.
    ///   - method, minorVersion: of the request.
    ///   - reason: why the request was forwarded.
    ///   - detail: why the response is not stored.
    package init(
        status: UInt16, length: BodyLength, to method: Method, minorVersion: UInt8, reason: CacheStatus.ForwardReason,
        detail: NotStoredReason?
    ) {
        self.minorVersion = minorVersion
        self.reason = reason
        self.detail = detail
        // A response without content may still say how long it would be (HEAD, 304); a 204 never does (RFC 9110 §8.6).
        tellsLength = (method == .head && status != 204) || status == 304
        let hasNoContent = tellsLength || status == 204
        framing = hasNoContent ? .none : ForwardedHead.framing(of: length, minorVersion: minorVersion)
    }

    /// The client learns that the body is over by the end of its connection (RFC 9112 §6.3).
    package var endsWithConnection: Bool { framing == .untilClose }

    /// Appends the whole head, the empty line included.
    package func append(_ response: ReceivedResponse, persists: Bool, now: WallTime, to out: inout [UInt8]) {
        ForwardedHead.appendResponse(response, to: &out)
        ForwardedHead.appendProxyFields(response, now: now, to: &out)
        var cacheStatus = CacheStatus(.forwarded(reason))
        cacheStatus.forwardStatus = response.status
        cacheStatus.detail = detail?.rawValue
        out.append("Cache-Status: ")
        cacheStatus.append(to: &out)
        out.append("\r\n")
        ForwardedHead.appendFraming(framing, to: &out)
        if tellsLength, let told = response.fields.first(.contentLength) {
            appendFieldLine(.contentLength, told, to: &out)
        }
        HeadWriter.appendConnection(persists: persists && !endsWithConnection, minorVersion: minorVersion, to: &out)
    }
}
