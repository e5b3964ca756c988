import EventLoop
import Glibc
import Message
import Settings

/// Why the address of the proxy is not known.
struct ProxyAddressFailure: Error, Equatable {
    var message: String
    init(_ message: String) { self.message = message }
}

/// The addresses of the proxy that `--proxy` names. A host name is looked up.
///
/// Accepts `host:port`, `[v6]:port` and `unix:/path`, with or without `http://` before them.
func proxyAddresses(named text: String) throws(ProxyAddressFailure) -> [SocketAddress] {
    var place = text
    if place.lowercased().hasPrefix("http://") { place = String(place.dropFirst(7)) }
    if place.hasSuffix("/"), !place.hasPrefix("unix:") { place.removeLast() }
    if let address = ListenAddress(place) { return try [reachable(address)] }
    let parts = place.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, let port = UInt16(parts[1]) else {
        throw ProxyAddressFailure("--proxy takes host:port, [v6]:port or unix:/path, not \"\(text)\"")
    }
    let found = lookUp(String(parts[0]), port: port)
    guard !found.isEmpty else { throw ProxyAddressFailure("--proxy: there is no host \(parts[0])") }
    return found
}

/// The addresses of the listeners in a configuration, in their order, as they can be reached from this machine.
func proxyAddresses(of configuration: Configuration) throws(ProxyAddressFailure) -> [SocketAddress] {
    var result: [SocketAddress] = []
    for listener in configuration.listen {
        if case .tcp(_, port: 0) = listener.address { continue }
        if case .inherited = listener.address { continue }
        // These commands speak HTTP in plain text.
        guard listener.tls?.isRequired != true, listener.tls?.demandsClientCertificate != true,
            listener.protocols.contains(.http1)
        else { continue }
        result.append(try reachable(listener.address))
    }
    guard !result.isEmpty else {
        throw ProxyAddressFailure(
            "the configuration has no address and port for HTTP in plain text: name one with --proxy HOST:PORT")
    }
    return result
}

/// A listener on all addresses is reached at the loopback address.
private func reachable(_ listener: ListenAddress) throws(ProxyAddressFailure) -> SocketAddress {
    switch listener {
    case .inherited: throw ProxyAddressFailure("only the service manager knows the address of a socket that it passes")
    case .unix(let path):
        do throws(SocketError) {
            return try SocketAddress(unixPath: path)
        } catch { throw ProxyAddressFailure("\(path): \(error)") }
    case .tcp(let address, let port):
        if address == IPAddress(v4: 0) { return SocketAddress(v4: 0x7F00_0001, port: port) }
        let isAny = !address.isV4 && address.v6.high == 0 && address.v6.low == 0
        return isAny ? SocketAddress(v6: 0, low: 1, port: port) : SocketAddress(address, port: port)
    }
}

private func lookUp(_ host: String, port: UInt16) -> [SocketAddress] {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
    defer { unsafe freeaddrinfo(list) }
    var result: [SocketAddress] = []
    var entry = unsafe list
    while let current = unsafe entry {
        if let raw = unsafe current.pointee.ai_addr,
            let address = unsafe SocketAddress(UnsafeRawPointer(raw), length: Int(current.pointee.ai_addrlen))
        {
            result.append(address.with(port: port))
        }
        unsafe entry = unsafe current.pointee.ai_next
    }
    return result
}
