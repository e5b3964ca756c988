package import Caching
package import Framing
package import Message

/// The decisions about the head of a final response that is passed on without being stored (RFC 9110 §7.6).
///
/// It has integers only, so that copying it retains nothing. `append` takes the response itself as an argument.
package struct RelayedHead: Sendable {
    /// How the content is framed towards the client.
    package let framing: ForwardedHead.Framing
    private let minorVersion: UInt8
    private let tellsLength: Bool
    private let reason: CacheStatus.ForwardReason
    private let detail: NotStoredReason?

    /// - Parameters:
    ///   - status: the status of the response.
    ///   - length: the origin's framing of the content.
    ///   - method, minorVersion: those of the client's request.
    ///   - reason: why the request was forwarded.
    ///   - detail: why the response is not stored.
    package init(
        status: UInt16, length: BodyLength, to method: Method, minorVersion: UInt8, reason: CacheStatus.ForwardReason,
        detail: NotStoredReason?
    ) {
        self.minorVersion = minorVersion
        self.reason = reason
        self.detail = detail
        // The response to a HEAD and a 304 may tell the length of the content that they lack. A 204 must not (RFC 9110 §8.6).
        tellsLength = (method == .head && status != 204) || status == 304
        let hasNoContent = tellsLength || status == 204
        framing = hasNoContent ? .none : ForwardedHead.framing(of: length, minorVersion: minorVersion)
    }

    /// Whether only the end of the connection ends the body (RFC 9112 §6.3).
    package var endsWithConnection: Bool { framing == .untilClose }

    /// Appends the head with the empty line that ends it.
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
