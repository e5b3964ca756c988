/// Where a client reaches the proxy: host and port of the Host field with which it asked for a page.
///
/// They go into a shell script and into JavaScript. So a host is accepted only if each of its characters is a letter, a digit, one of `-._`,
/// or, between brackets, a character of an IPv6 address. None of them means anything to a shell, in quotes or without.
package struct ProxyPlace: Equatable, Sendable {
    /// In lower case; an IPv6 address in brackets.
    package let host: String
    package let port: UInt16

    /// Returns nil if the host is empty, too long, or has other characters.
    package init?(host: some Collection<UInt8>, port: UInt16) {
        guard let first = host.first, host.count <= 255, port > 0 else { return nil }
        if first == 0x5B {
            let address = host.dropFirst().dropLast()
            guard host.count > 3, host.suffix(1).elementsEqual([0x5D]), address.allSatisfy(Self.isOfAddress) else {
                return nil
            }
        } else {
            // A word that begins with "-" would be an option.
            guard first != 0x2D, first != 0x2E, host.allSatisfy(Self.isOfName) else { return nil }
        }
        self.host = String(decoding: host, as: UTF8.self).lowercased()
        self.port = port
    }

    /// Host and port as in a URL.
    package var authority: String { "\(host):\(port)" }
    /// The host without brackets, as programs want it that ask for host and port apart.
    package var plainHost: String { host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
        default: false
        }
    }

    private static func isOfAddress(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x3A, 0x41...0x46, 0x61...0x66, 0x2E: true
        default: false
        }
    }
}
