package import Caching
package import Framing
package import Message

/// The head of a final response that is passed on to the client without being stored (RFC 9110 §7.6).
package struct RelayedHead: Sendable {
    /// How the content is framed towards the client.
    package let framing: ForwardedHead.Framing
    private let response: ReceivedResponse
    private let minorVersion: UInt8
    private let tellsLength: Bool
    private let cacheStatus: CacheStatus

    /// - Parameters:
    ///   - length: how the origin framed the content.
    ///   - reason: why the request was forwarded.
    ///   - detail: why the response is not stored.
    package init(
        _ response: ReceivedResponse, length: BodyLength, to method: Method, minorVersion: UInt8,
        reason: CacheStatus.ForwardReason, detail: NotStoredReason?
    ) {
        self.response = response
        self.minorVersion = minorVersion
        // A response without content may still say how long it would be (HEAD, 304); a 204 never does (RFC 9110 §8.6).
        tellsLength = (method == .head && response.status != 204) || response.status == 304
        let hasNoContent = tellsLength || response.status == 204
        framing = hasNoContent ? .none : ForwardedHead.framing(of: length, minorVersion: minorVersion)
        var cacheStatus = CacheStatus(.forwarded(reason))
        cacheStatus.forwardStatus = response.status
        cacheStatus.detail = detail?.rawValue
        self.cacheStatus = cacheStatus
    }

    /// The client learns that the body is over by the end of its connection (RFC 9112 §6.3).
    package var endsWithConnection: Bool { framing == .untilClose }

    /// Appends the whole head, the empty line included.
    package func append(persists: Bool, now: WallTime, to out: inout [UInt8]) {
        ForwardedHead.appendResponse(response, to: &out)
        ForwardedHead.appendProxyFields(response, now: now, to: &out)
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
