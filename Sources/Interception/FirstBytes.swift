package import Framing
import Message
package import Rules

/// What a client speaks in a tunnel, as far as its first bytes tell.
package enum FirstBytes: Equatable, Sendable {
    case tls(ClientHello)
    /// A request line of HTTP/1.
    case http1
    /// The identification of an SSH client (RFC 4253 §4.2).
    case ssh
    /// Another protocol.
    case other
    /// Not decided yet. Look again when at least so many bytes have arrived.
    case undecided(needs: Int)
    /// A TLS record that begins no ClientHello.
    case malformedHello
    /// A ClientHello of more than `ClientHello.bytesMax`.
    case longHello

    /// - Parameter bytes: everything that the client has sent in the tunnel.
    package init(_ bytes: borrowing Span<UInt8>) {
        guard bytes.count > 0 else {
            self = .undecided(needs: 1)
            return
        }
        if bytes[0] == 0x16 {
            switch ClientHello.read(bytes) {
            case .complete(let hello): self = .tls(hello)
            case .incomplete(let needs): self = .undecided(needs: needs)
            case .malformed: self = .malformedHello
            case .tooLong: self = .longHello
            }
        } else {
            self = FirstBytes.requestLine(bytes)
        }
    }

    /// The longest method name of HTTP. The registered ones have up to 17 letters.
    private static let methodLengthMax = 32

    /// Looks for a method in capitals at the start of a line that ends with `HTTP/1.0` or `HTTP/1.1`. Protocols such as SSH or IRC begin
    /// with a line as well.
    private static func requestLine(_ bytes: borrowing Span<UInt8>) -> FirstBytes {
        var method = 0
        while method < bytes.count, isMethodByte(bytes[method]) { method += 1 }
        if method == bytes.count, method <= methodLengthMax { return .undecided(needs: bytes.count + 1) }
        if method == 4, bytes[0] == 0x53, bytes[1] == 0x53, bytes[2] == 0x48, bytes[3] == 0x2D { return .ssh }
        guard (1...methodLengthMax).contains(method), bytes[method] == 0x20 else { return .other }
        let looked = min(bytes.count, ClientHello.bytesMax)
        guard let end = (method..<looked).first(where: { bytes[$0] == 0x0A }) else {
            return looked < ClientHello.bytesMax ? .undecided(needs: bytes.count + 1) : .other
        }
        let line = bytes[end - 1] == 0x0D ? end - 1 : end
        return endsWithVersion(bytes, before: line) ? .http1 : .other
    }

    private static func isMethodByte(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) || byte == 0x2D }

    private static func endsWithVersion(_ bytes: borrowing Span<UInt8>, before end: Int) -> Bool {
        let version: StaticString = " HTTP/1."
        let start = end - version.utf8CodeUnitCount - 1
        guard start > 0, isDigit(bytes[end - 1]) else { return false }
        for index in 0..<version.utf8CodeUnitCount where unsafe bytes[start + index] != version.utf8Start[index] {
            return false
        }
        return true
    }
}

extension FirstBytes {
    /// What rules compare with their server names.
    ///
    /// A failure: there is a name that is no host, or the hello is one that no client sends (RFC 9849 §6.1), and a server could take it for anything.
    package var serverName: Result<ServerName, UnreadableServerName> {
        guard case .tls(let hello) = self else { return .success(.absent) }
        if hello.encryptedHello == .inner { return .failure(UnreadableServerName()) }
        guard let name = hello.serverName else { return .success(.absent) }
        // RFC 6066 §3: without a dot at the end.
        guard name.last != UInt8(ascii: "."), let host = DestinationHost(name) else {
            return .failure(UnreadableServerName())
        }
        return .success(.host(host))
    }
}

package struct UnreadableServerName: Error, Equatable { package init() {} }
