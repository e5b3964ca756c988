/// A violation of HTTP/1.1 by a peer. Each case names the rule.
///
/// A client that sends an invalid request gets `requestStatus`. If an origin's response is invalid, the client gets 502, with
/// `proxyStatusError` in `Proxy-Status` (RFC 9209).
package enum FramingError: Error, Equatable, CaseIterable, Sendable {
    // Start lines
    case badRequestLine  // RFC 9112 §3: not method SP request-target SP HTTP-version
    case badMethod  // RFC 9110 §9.1: not a token
    case badVersion  // RFC 9112 §2.3: not HTTP-name "/" DIGIT "." DIGIT, in capitals
    case versionNotSupported  // RFC 9110 §2.5: not 1.0 or 1.1; also the HTTP/2 preface (RFC 9113 §3.4)
    case badStatusLine  // RFC 9112 §4
    case badStatus  // RFC 9110 §15: not three digits, 100 to 999
    // Targets
    case targetTooLong  // RFC 9110 §4.1: 414
    case badTarget  // RFC 9112 §3.2: a byte that no target has, or none of the four forms
    case fragmentInTarget  // RFC 9112 §3.2.1: a target has no fragment
    case userinfoInTarget  // RFC 9110 §4.2.4
    case schemeNotSupported  // Larder forwards http and https only
    case badHostInTarget  // RFC 9110 §4.2.1: empty, or not a name or address
    case badPort  // RFC 9110 §4.2.1: not 1 to 65535
    case formNotForMethod  // RFC 9112 §3.2.3, §3.2.4: authority-form is CONNECT's, "*" OPTIONS'
    // Fields
    case headTooLarge  // RFC 9110 §5.4: 431
    case tooManyFields  // RFC 9110 §5.4: 431
    case bareLineFeed  // RFC 9112 §2.2: only CRLF is accepted
    case bareCarriageReturn  // RFC 9112 §2.2
    case controlInField  // RFC 9110 §5.5: NUL and other controls
    case obsoleteFolding  // RFC 9112 §5.2
    case spaceBeforeColon  // RFC 9112 §5.1: smuggling
    case badFieldName  // RFC 9112 §5.1: not a token, empty, or no colon
    // Host
    case missingHost  // RFC 9112 §3.2
    case repeatedHost  // RFC 9112 §3.2
    case badHost  // RFC 9112 §3.2
    // Length
    case transferEncodingWithContentLength  // RFC 9112 §6.3 rule 3: smuggling
    case transferEncodingInHTTP10  // RFC 9112 §6.1
    case transferCodingUnknown  // RFC 9112 §6.1: 501
    case transferCodingNotFinal  // RFC 9112 §6.3 rule 4: chunked is not the last, or applied twice
    case badContentLength  // RFC 9112 §6.3 rule 5: sign, 0x, empty, beyond `octetCountMax`
    case differingContentLengths  // RFC 9112 §6.3 rule 5
    // Chunked coding
    case badChunkSize  // RFC 9112 §7.1: not 1*HEXDIG, or beyond `octetCountMax`
    case badChunkExtension  // RFC 9112 §7.1.1
    case chunkLineTooLong  // RFC 9112 §7.1.1
    case badChunkEnd  // RFC 9112 §7.1: chunk data not followed by CRLF
    case trailersTooLarge  // RFC 9112 §7.1.2

    /// The `error` of `Proxy-Status` if the head of a response breaks the rule (RFC 9209 §2.3). When a body breaks one, the client has
    /// the head already, and its answer ends too early.
    package var proxyStatusError: StaticString {
        switch self {
        case .headTooLarge, .tooManyFields: "http_response_header_section_size"
        case .transferCodingUnknown: "http_response_transfer_coding"
        default: "http_protocol_error"
        }
    }
}
