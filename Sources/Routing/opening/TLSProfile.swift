/// How Larder speaks TLS to an origin: which authorities it trusts, which certificate it shows, which name it asks for.
///
/// Requests of two profiles share neither connections nor TLS sessions. The files behind a profile never change: files that were
/// changed make another profile when the configuration is loaded again.
package struct TLSProfile: Hashable, Sendable {
    /// That of the section `tls` of the configuration.
    package static let general = TLSProfile(0)

    /// Unique in this process.
    package let number: UInt32
    /// The name that is sent as SNI and that the certificate must have. Nil: the host of the origin.
    package let serverName: String?
    /// Whether an origin proves who it is, by its certificate or by a pinned key. If not, whoever is on the way can read and change
    /// everything, as with http.
    package let provesOrigin: Bool

    package init(_ number: UInt32, serverName: String? = nil, provesOrigin: Bool = true) {
        self.number = number
        self.serverName = serverName
        self.provesOrigin = provesOrigin
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
