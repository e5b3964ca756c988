/// The names in a certificate that a client has shown, and that an authority of the listener has issued.
package struct ClientCertificate: Sendable, Equatable {
    /// The distinguished name as in RFC 4514: `CN=build-7,O=Example`.
    package var subject: String
    package var commonName: String?
    /// Of subjectAltName (RFC 5280 §4.2.1.6): dNSName, rfc822Name, uniformResourceIdentifier.
    package var dnsNames: [String]
    package var mailboxes: [String]
    package var uris: [String]

    package init(
        subject: String = "", commonName: String? = nil, dnsNames: [String] = [], mailboxes: [String] = [],
        uris: [String] = []
    ) {
        self.subject = subject
        self.commonName = commonName
        self.dnsNames = dnsNames
        self.mailboxes = mailboxes
        self.uris = uris
    }
}
