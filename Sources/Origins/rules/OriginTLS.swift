package import Routing
/// How Larder speaks TLS to the origins of one rule. What is nil or empty is as for all origins.
package struct OriginTLS: Hashable, Sendable {
    /// The files with the certificate that is shown to origins, and with its key.
    package enum Identity: Hashable, Sendable {
        /// PEM. The key may be in the same file as the certificate.
        case pem(certificate: String, key: String)
        case pkcs12(String)
    }

    package enum Verification: Hashable, Sendable {
        case required
        /// Any certificate is accepted.
        case none
    }

    /// A PEM file of the authorities to trust, in place of all others.
    package var authorityFile: String?
    package var identity: Identity?
    /// A file whose first line is the password of the key, or of the PKCS#12 file.
    package var passwordFile: String?
    package var pins: [PublicKeyPin] = []
    package var minVersion: TLSVersion?
    package var maxVersion: TLSVersion?
    /// The name that is sent as SNI (RFC 6066 §3) and that the certificate must have, in place of the host of the URI.
    ///
    /// Both, because a server chooses its certificate by SNI: with another name it shows a certificate for that name. Whoever writes the rule
    /// says that this name is the origin.
    package var serverName: String?
    package var verification: Verification = .required

    package init() {}

    /// Whether it proves something, or trusts somebody, that holds nowhere else. Pins and versions only restrict.
    var grants: Bool {
        identity != nil || authorityFile != nil || serverName != nil || verification != .required
    }
}

extension OriginTLS: CustomStringConvertible {
    /// For `explain`: `authorities of /a/ca.pem, certificate of /a/own.pem, 1 pinned key`.
    package var description: String {
        var parts: [String] = []
        if verification == .none { parts.append("the certificate of the origin is not verified") }
        if let authorityFile { parts.append("authorities of \(authorityFile)") }
        switch identity {
        case .pem(let file, _)?, .pkcs12(let file)?: parts.append("certificate of \(file)")
        case nil: break
        }
        if !pins.isEmpty { parts.append(pins.count == 1 ? "1 pinned key" : "\(pins.count) pinned keys") }
        if let minVersion { parts.append("at least TLS \(minVersion.rawValue)") }
        if let maxVersion { parts.append("at most TLS \(maxVersion.rawValue)") }
        if let serverName { parts.append("by the name \(serverName)") }
        return parts.isEmpty ? "as for all origins" : parts.joined(separator: ", ")
    }
}

extension TLSProfile {
    package init(_ number: UInt32, _ settings: OriginTLS) {
        self.init(
            number, serverName: settings.serverName,
            provesOrigin: settings.verification == .required || !settings.pins.isEmpty)
    }
}

package enum TLSVersion: String, CaseIterable, Sendable, Comparable {
    case v1_2 = "1.2"
    case v1_3 = "1.3"

    package static func < (a: TLSVersion, b: TLSVersion) -> Bool { a == .v1_2 && b == .v1_3 }
}
