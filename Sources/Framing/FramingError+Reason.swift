extension FramingError {
    /// What is said about one case.
    private struct Row {
        let reason: StaticString
        let requestStatus: UInt16
        let explanation: StaticString

        init(_ reason: StaticString, _ requestStatus: UInt16, _ explanation: StaticString) {
            self.reason = reason
            self.requestStatus = requestStatus
            self.explanation = explanation
        }
    }

    private var row: Row {
        switch self {
        case .badRequestLine:
            Row(
                "bad-request-line", 400,
                "The request line is not a method, a target and a version, with one space between them.")
        case .badMethod: Row("bad-method", 400, "The method is not a token.")
        case .badVersion: Row("bad-version", 400, "The version is not `HTTP/` and two digits with a dot between them.")
        case .versionNotSupported: Row("version-not-supported", 505, "The version is neither 1.0 nor 1.1.")
        case .badStatusLine: Row("bad-status-line", 400, "The first line of a response is not a status line.")
        case .badStatus: Row("bad-status", 400, "The status is not three digits from 100 to 999.")
        case .targetTooLong: Row("target-too-long", 414, "The target is longer than `limits.target_size_max`.")
        case .badTarget:
            Row(
                "bad-target", 400,
                "The target has a control character, a host beyond ASCII, or none of the four forms of a target.")
        case .fragmentInTarget:
            Row("fragment-in-target", 400, "The target has a fragment (`#…`), which is for the client alone.")
        case .userinfoInTarget:
            Row("userinfo-in-target", 400, "The target has a user name or a password before the host.")
        case .schemeNotSupported: Row("scheme-not-supported", 400, "The scheme is neither http nor https.")
        case .badHostInTarget:
            Row("bad-host-in-target", 400, "The host in the target is empty, or neither a name nor an address.")
        case .badPort: Row("bad-port", 400, "The port is not a number from 1 to 65535.")
        case .formNotForMethod:
            Row("form-not-for-method", 400, "Only CONNECT takes `host:port`, and only OPTIONS takes `*`.")
        case .headTooLarge: Row("head-too-large", 431, "The head is larger than `limits.head_size_max`.")
        case .tooManyFields:
            Row("too-many-fields", 431, "The head or the trailers have more lines than `limits.field_count_max`.")
        case .bareLineFeed: Row("bare-lf", 400, "A line ends with LF alone.")
        case .bareCarriageReturn: Row("bare-cr", 400, "CR is not followed by LF.")
        case .controlInField: Row("control-in-field", 400, "A field has NUL or another control character.")
        case .obsoleteFolding: Row("obs-fold", 400, "A field goes on in the next line.")
        case .spaceBeforeColon:
            Row("space-before-colon", 400, "There is a space between the name of a field and the colon.")
        case .badFieldName: Row("bad-field-name", 400, "The name of a field is not a token, or there is no colon.")
        case .missingHost: Row("missing-host", 400, "A request with HTTP/1.1 has no `Host`.")
        case .repeatedHost: Row("repeated-host", 400, "There is more than one `Host`.")
        case .badHost: Row("bad-host", 400, "`Host` is not a host with an optional port.")
        case .transferEncodingWithContentLength:
            Row("te-with-cl", 400, "There are both `Transfer-Encoding` and `Content-Length`.")
        case .transferEncodingInHTTP10: Row("te-in-http10", 400, "HTTP/1.0 with `Transfer-Encoding`.")
        case .transferCodingUnknown: Row("te-unknown", 501, "There is a transfer coding other than chunked.")
        case .transferCodingNotFinal: Row("te-not-final", 400, "Chunked is not the last coding, or is applied twice.")
        case .badContentLength: Row("bad-cl", 400, "`Content-Length` is not a number, or too large a number.")
        case .differingContentLengths: Row("differing-cl", 400, "There are two lengths, and they differ.")
        case .badChunkSize:
            Row("bad-chunk-size", 400, "The size of a chunk is not a hexadecimal number, or too large a number.")
        case .badChunkExtension: Row("bad-chunk-extension", 400, "The text behind the size of a chunk is malformed.")
        case .chunkLineTooLong:
            Row("chunk-line-too-long", 400, "The line with the size of a chunk is longer than 1 KiB.")
        case .badChunkEnd: Row("bad-chunk-end", 400, "The data of a chunk is not followed by CRLF.")
        case .trailersTooLarge: Row("trailers-too-large", 400, "The trailers are larger than 16 KiB.")
        }
    }

    /// The name in logs, counters and responses: kebab-case.
    package var reason: String { "\(row.reason)" }

    /// The status that a client gets for such a request.
    package var requestStatus: UInt16 { row.requestStatus }

    /// One sentence for the manual: what is wrong.
    package var explanation: StaticString { row.explanation }
}
