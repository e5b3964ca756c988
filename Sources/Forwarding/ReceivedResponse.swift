package import Framing
package import Message

/// The head of a response as received from an origin. Immutable, so that it is shared and not copied.
package final class ReceivedResponse {
    package let status: UInt16
    package let minorVersion: UInt8
    package let fields: Fields
    package let options: ConnectionOptions
    private let reasonRange: Range<Int>

    /// - Parameters:
    ///   - status, minorVersion, reasonRange, section: those of a `ResponseHead`. One by one, because a parser's head would be copied.
    ///   - isFromNode: another node of the fleet sent it. It has removed what its own origin said in Larder's name, and speaks for itself. From anybody else,
    ///     next proxies included, nothing that Larder says of itself is taken: behind a proxy, an origin could have written it.
    ///   - scheme: that of the request. Over https, `Alt-Svc` is removed: a client that read it could go to the named place without the
    ///     proxy, by HTTP/3 for instance (RFC 7838 §2).
    package init(
        status: UInt16, minorVersion: UInt8, reasonRange: Range<Int>, _ section: FieldSection, bytes: [UInt8],
        scheme: Scheme, isFromNode: Bool = false
    ) {
        self.status = status
        self.minorVersion = minorVersion
        self.reasonRange = reasonRange
        options = ConnectionOptions(section, bytes: bytes.span)
        let received = Fields(bytes: bytes, section: section)
        let isRemoved = scheme == .https && received.contains(.altSvc)
        let kept = isRemoved ? received.dropping { $0.name == .altSvc } : received
        let isOfStatus = !isFromNode && !received.present.isDisjoint(with: LarderRemarks.statusFields)
        fields = isOfStatus ? LarderRemarks.withoutMembers(of: kept) : kept
    }

    private init(_ other: ReceivedResponse, fields: Fields) {
        status = other.status
        minorVersion = other.minorVersion
        self.fields = fields
        options = other.options
        reasonRange = other.reasonRange
    }

    /// The response with other fields.
    ///
    /// - Parameter fields: made of those of this response, so that their bytes begin with the same head.
    package func with(_ fields: Fields) -> ReceivedResponse {
        precondition(fields.bytes.count >= self.fields.bytes.count, "the reason phrase lies in the bytes of the fields")
        return ReceivedResponse(self, fields: fields)
    }

    /// The same without the cookies that it sets.
    package var withoutCookies: ReceivedResponse {
        ReceivedResponse(self, fields: fields.dropping { $0.name == .setCookie })
    }

    /// The same without what an origin says to Larder when it has accepted a log-in with NTLM or Negotiate: its last token (RFC 4559 §5), and whether
    /// the connection stays logged in. No client has anything to do with that connection.
    package var withoutLogIn: ReceivedResponse {
        let kept = fields.dropping { line in
            line.name == .wwwAuthenticate
                || (line.name == .other && equalsIgnoringCase(fields.name(of: line), "Persistent-Auth"))
        }
        return ReceivedResponse(self, fields: kept)
    }

    /// The same with the field that tells a client that this proxy keeps a connection for a log-in with NTLM or Negotiate (RFC 4559 §6).
    package var supportingSessionAuthentication: ReceivedResponse {
        var fields = fields
        fields.append(.other, spelling: "Proxy-Support".utf8, "Session-Based-Authentication".utf8)
        return ReceivedResponse(self, fields: fields)
    }

    /// The same without what another node of the fleet says of its answer: `Larder-Peer`, and its own `Cache-Status`. This node says how the client
    /// came by the response.
    package var withoutPeerRemarks: ReceivedResponse {
        let kept = fields.dropping { line in
            line.name == .cacheStatus
                || (line.name == .other && equalsIgnoringCase(fields.name(of: line), "Larder-Peer"))
        }
        return ReceivedResponse(self, fields: kept)
    }

    /// The length of the body (RFC 9112 §6.3).
    ///
    /// - Parameter method: the method of the request that is answered.
    package func bodyLength(to method: Method) throws(FramingError) -> BodyLength {
        let bytes = fields.bytes
        return try responseBodyLength(
            status: status, fields.section, minorVersion: minorVersion, to: method, bytes: bytes.span)
    }

    package var reason: ArraySlice<UInt8> { fields.bytes[reasonRange] }
    var reasonLength: Int { reasonRange.count }
}
