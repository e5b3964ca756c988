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

/// Recognises a protocol by the first bytes of a connection. Returns nil if more bytes are needed.
///
/// The first byte decides in nearly all cases: no method of HTTP begins like a TLS record or a SOCKS greeting.
package func recognise(_ bytes: borrowing Span<UInt8>) -> WireProtocol? {
    guard bytes.count > 0 else { return nil }
    switch bytes[0] {
    case 0x16: return .tls
    case 0x05: return .socks5
    case 0x50:
        switch (begins(bytes, "PRI * HTTP/2.0\r\n"), begins(bytes, "PROXY ")) {
        case (.whole, _): return .http2
        case (_, .whole): return .proxyProtocol
        case (.part, _), (_, .part): return nil
        case (.no, .no): return .http1
        }
    // HTTP allows empty lines before a request line (RFC 9112 §2.2), but not the NUL behind them.
    case 0x0D:
        switch begins(bytes, "\r\n\r\n\0\r\nQUIT\n") {
        case .whole: return .proxyProtocol
        case .part: return nil
        case .no: return .http1
        }
    default: return .http1
    }
}

private enum Beginning { case no, part, whole }

private func begins(_ bytes: borrowing Span<UInt8>, _ prefix: StaticString) -> Beginning {
    let count = min(bytes.count, prefix.utf8CodeUnitCount)
    for index in 0..<count where unsafe bytes[index] != prefix.utf8Start[index] { return .no }
    return count == prefix.utf8CodeUnitCount ? .whole : .part
}
