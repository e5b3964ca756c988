package import Message

/// The connection options of a message (RFC 9110 §7.6.1).
package struct ConnectionOptions: Sendable {
    package var close = false
    package var keepAlive = false
    package var upgrade = false
    /// The other options, in lower case: names of fields that are not forwarded.
    package var names: [[UInt8]] = []

    package init() {}

    /// `Proxy-Connection: close` counts as well, because it can only end a connection. Its `keep-alive` does not (RFC 9112 §C.2.2).
    package init(_ fields: FieldSection, bytes: borrowing Span<UInt8>) {
        guard fields.present.contains(.connection) || fields.present.contains(.proxyConnection) else { return }
        for line in fields.lines {
            if line.name == .connection {
                forEachRawElement(bytes, line.valueRange) { take($0, $1) }
            } else if line.name == .proxyConnection {
                forEachRawElement(bytes, line.valueRange) { if matches($0, $1, "close") { close = true } }
            }
        }
    }

    private mutating func take(_ bytes: borrowing Span<UInt8>, _ option: Range<Int>) {
        if matches(bytes, option, "close") {
            close = true
        } else if matches(bytes, option, "keep-alive") {
            keepAlive = true
        } else if matches(bytes, option, "upgrade") {
            upgrade = true
        } else {
            names.append(option.map { asciiLowercased(bytes[$0]) })
        }
    }

    /// Whether the message names this field, without regard to case, as one that is not forwarded.
    package func isNamed(_ field: some Collection<UInt8>) -> Bool {
        names.contains { equalsIgnoringCase($0, field) }
    }
}

/// Whether the sender keeps the connection open after the message (RFC 9112 §9.3).
package func persists(minorVersion: UInt8, _ options: ConnectionOptions) -> Bool {
    !options.close && (minorVersion >= 1 || options.keepAlive)
}

/// Whether a field is for one connection only, named by Connection or not (RFC 9110 §7.6.1), or only between a proxy and its neighbour.
/// `Trailer` is not such a field, because trailers are forwarded.
package func isHopByHop(_ name: FieldName) -> Bool {
    switch name {
    case .connection, .keepAlive, .proxyConnection, .proxyAuthenticate, .proxyAuthorization, .proxyAuthenticationInfo,
        .te, .transferEncoding, .upgrade, .http2Settings:
        true
    default: false
    }
}
