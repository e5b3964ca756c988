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
    package var endsWithConnection: Bool { if case .untilClose = framing { true } else { false } }

    /// Whether the content goes out in chunks.
    package var isChunked: Bool { if case .chunked = framing { true } else { false } }

    /// Appends the head with the empty line that ends it.
    package func append(_ response: ReceivedResponse, persists: Bool, now: WallTime, to out: inout [UInt8]) {
        let told = tellsLength ? response.fields.first(.contentLength) : nil
        let room =
            ForwardedHead.lengthMax(response) + ForwardedHead.proxyFieldsLengthMax + CacheStatus.passedOnLengthMax
            + ForwardedHead.framingLengthMax + (told?.count ?? 0) + 96
        out.append(addingCapacity: room) { out in
            ForwardedHead.appendResponse(response, to: &out)
            ForwardedHead.appendProxyFields(response, now: now, to: &out)
            out.append("Cache-Status: ")
            CacheStatus.appendPassedOn(reason, status: response.status, notStored: detail, to: &out)
            out.append("\r\n")
            ForwardedHead.appendFraming(framing, to: &out)
            if let told {
                out.append("Content-Length: ")
                out.append(told)
                out.append("\r\n")
            }
            out.append(HeadWriter.connection(persists: persists && !endsWithConnection, minorVersion: minorVersion))
        }
    }
}
