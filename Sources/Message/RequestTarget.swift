/// The schemes that Larder forwards (RFC 9110 §4.2).
@usableFromInline
package enum Scheme: UInt8, Sendable {
    case http, https

    @inlinable
    package var defaultPort: UInt16 {
        switch self {
        case .http: 80
        case .https: 443
        }
    }

    /// The number of bytes of `http://` or `https://`.
    @inlinable
    package var prefixLength: Int {
        switch self {
        case .http: 7
        case .https: 8
        }
    }

    package var text: StaticString {
        switch self {
        case .http: "http"
        case .https: "https"
        }
    }
}

/// The four forms of a request-target (RFC 9112 §3.2).
@usableFromInline
package enum TargetForm: UInt8, Sendable { case origin, absolute, authority, asterisk }

/// The target of a request, as offsets into the bytes of its head (RFC 9112 §3.2, §3.3).
///
/// In origin-form and asterisk-form the scheme is `http`, and host and port are those of the Host field. The host range is empty if
/// Host is missing or empty.
@usableFromInline
package struct RequestTarget: Sendable, Equatable {
    @usableFromInline package var form: TargetForm
    @usableFromInline package var scheme: Scheme
    /// The port; the default of the scheme if none was written. CONNECT requires an explicit one (RFC 9110 §9.3.6).
    @usableFromInline package var port: UInt16
    @usableFromInline var hostStart, hostEnd, pathStart, pathEnd: UInt32
    /// Whether the bytes of a target in absolute-form are its normalised URI, as nearly all are (NormalisedURI.swift). The parser finds it out.
    @usableFromInline package var isNormalised = false

    @inlinable @inline(__always)
    package init(form: TargetForm, scheme: Scheme, host: Range<Int>, port: UInt16, path: Range<Int>) {
        self.form = form
        self.scheme = scheme
        self.port = port
        hostStart = UInt32(host.lowerBound)
        hostEnd = UInt32(host.upperBound)
        pathStart = UInt32(path.lowerBound)
        pathEnd = UInt32(path.upperBound)
    }

    package init() { self.init(form: .origin, scheme: .http, host: 0..<0, port: 80, path: 0..<0) }

    /// The range of the host without its port. An IP literal has its brackets.
    @inlinable
    package var hostRange: Range<Int> {
        get { Int(hostStart)..<Int(hostEnd) }
        set {
            hostStart = UInt32(newValue.lowerBound)
            hostEnd = UInt32(newValue.upperBound)
        }
    }

    /// The range of the whole target if it is normalised as it stands. Nil if it is not.
    @inlinable
    package var normalisedRange: Range<Int>? {
        isNormalised ? Int(hostStart) - scheme.prefixLength..<Int(pathEnd) : nil
    }

    /// The range of path and query as received. Empty if an absolute-form has none, which means "/", or "*" for OPTIONS
    /// (RFC 9112 §3.2.4). Empty in authority-form, and "*" in asterisk-form.
    @inlinable
    package var pathRange: Range<Int> {
        get { Int(pathStart)..<Int(pathEnd) }
        set {
            pathStart = UInt32(newValue.lowerBound)
            pathEnd = UInt32(newValue.upperBound)
        }
    }
}
