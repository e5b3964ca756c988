package import Message
package import Rules

/// One entry of `listen`: an address, and what clients may speak there.
package struct ListenerSettings: Sendable, Equatable, CustomStringConvertible {
    package var address: ListenAddress
    /// For rules and the log. Nil: the address is its name.
    package var writtenName: String?
    /// Nil: clients speak in plain text.
    package var tls: ListenerTLSSettings?
    package var protocols: [ListenerProtocol] = ListenerProtocol.offered
    /// Who has to send a PROXY header, and may: load balancers. Empty: nobody.
    package var proxyProtocol: [AddressRange] = []
    /// The permissions of the file of a Unix socket. Nil: those of the umask.
    package var mode: UInt32?

    package init(_ address: ListenAddress) { self.address = address }

    package static func tcp(_ address: IPAddress, port: UInt16) -> ListenerSettings {
        ListenerSettings(.tcp(address, port: port))
    }

    package static func unix(_ path: String) -> ListenerSettings { ListenerSettings(.unix(path)) }

    package var name: String { writtenName ?? "\(address)" }

    package var description: String { "\(address)" }
}

/// A protocol that a listener can offer.
package enum ListenerProtocol: String, CaseIterable, Sendable {
    case http1, socks5

    /// Where nothing is said: all. The same rules decide about a request, whichever of them it came by.
    package static let offered = allCases
}

/// `tls` of a listener: what it shows to clients, and what it asks of them.
package struct ListenerTLSSettings: Sendable, Hashable {
    /// The path of a PEM file: the listener's own certificate first, then those of the authorities in between.
    package var certificateFile: String
    /// The path of a PEM file, readable for its owner alone.
    package var keyFile: String
    /// Whether clients in plain text are refused.
    package var isRequired = false
    /// The path of a PEM file with the authorities of clients. Nil: clients are not asked for a certificate.
    package var clientAuthorityFile: String?
    /// The path of a PEM file with certificate revocation lists of these authorities (RFC 5280 §5).
    package var revocationFile: String?
    package var clientCertificate = ClientCertificateDemand.required

    package init(certificateFile: String, keyFile: String) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
    }

    /// Every client has to show a certificate. Then nobody may come in plain text.
    package var demandsClientCertificate: Bool { clientAuthorityFile != nil && clientCertificate == .required }

    package var files: [String] {
        [certificateFile, keyFile] + [clientAuthorityFile, revocationFile].compactMap { $0 }
    }
}

package enum ClientCertificateDemand: String, CaseIterable, Sendable { case required, optional }
