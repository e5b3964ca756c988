/// The protocol of a client, as far as its first bytes tell.
package enum WireProtocol: CaseIterable, Sendable {
    /// HTTP/1, or bytes of no known protocol, which the parser of heads refuses.
    case http1
    /// A handshake record (RFC 8446 §5.1).
    case tls
    /// The connection preface (RFC 9113 §3.4).
    case http2
    /// A greeting with authentication methods (RFC 1928 §3).
    case socks5
    /// The header of a load balancer, version 1 or 2, before the client's own protocol.
    case proxyProtocol
}

/// Recognises a protocol by the first bytes of a connection.
///
/// The first byte decides in nearly all cases: no method of HTTP begins like a TLS record or a SOCKS greeting. If more bytes are needed
/// and have not arrived, the result is `http1`.
package func recognise(_ bytes: borrowing Span<UInt8>) -> WireProtocol {
    guard bytes.count > 0 else { return .http1 }
    switch bytes[0] {
    case 0x16: return .tls
    case 0x05: return .socks5
    case 0x50: return begins(bytes, "PRI * HTTP/2.0\r\n") ? .http2 : begins(bytes, "PROXY ") ? .proxyProtocol : .http1
    // HTTP allows empty lines before a request line (RFC 9112 §2.2), but not the NUL behind them.
    case 0x0D: return begins(bytes, "\r\n\r\n\0\r\nQUIT\n") ? .proxyProtocol : .http1
    default: return .http1
    }
}

private func begins(_ bytes: borrowing Span<UInt8>, _ prefix: StaticString) -> Bool {
    guard bytes.count >= prefix.utf8CodeUnitCount else { return false }
    for index in 0..<prefix.utf8CodeUnitCount where unsafe bytes[index] != prefix.utf8Start[index] { return false }
    return true
}
