package import Rules

/// The `intercept` section of the configuration: which tunnels Larder opens, and with which authority.
package struct InterceptSettings: Sendable, Equatable {
    /// The path of a PEM file: the authority that issues certificates, then those above it. Nil if it is left out.
    package var certificateFile: String?
    /// The path of a PEM file with the private key of the authority. Nil if it is left out.
    package var keyFile: String?
    /// The hosts whose tunnels are opened. All others remain tunnels.
    package var hosts: [HostPattern] = []
    package var refused: RefusedUse = .open

    package init() {}

    /// What happens to the tunnels of a client that did not accept the certificate for a host.
    package enum RefusedUse: String, CaseIterable, Sendable {
        /// They are opened all the same, so that the client's requests fail until it trusts the authority.
        case open
        /// They remain tunnels, unless a rule asks for what is inside.
        case tunnel
    }

    /// Whether tunnels can be opened at all.
    package var isOn: Bool { certificateFile != nil }
}
