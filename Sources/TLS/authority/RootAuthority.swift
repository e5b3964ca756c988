import COpenSSL

/// The root of an authority, while its key exists: it certifies the intermediate authorities that sign leaves.
///
/// Both carry the same name constraints. Some clients (Java) ignore those of a root, so the intermediate must have them. And nobody may
/// make an intermediate without them, so the root's key is destroyed once the intermediates are there: it is in memory only, and gone with
/// this object.
package final class RootAuthority: Sendable {
    private let root: Certificate
    private let key: PrivateKey
    /// What all certificates below the root may be for. Nil: everything.
    package let constraints: NameConstraints?

    /// A certificate of an authority and its key, in PEM.
    package struct Issued: Sendable {
        /// The intermediate, and the root after it.
        package let certificates: [UInt8]
        package let key: [UInt8]
        package let description: CertificateDescription
    }

    /// Clocks of clients may be slow by this much.
    private static let backdating: Int64 = 48 * 3600

    /// Makes a root with a new key.
    ///
    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - days: how long it is valid from now on.
    package init(constraints: NameConstraints?, at now: Int64, days: Int64) throws(AuthorityError) {
        key = PrivateKey.makeP256()
        self.constraints = constraints
        let notBefore = now - RootAuthority.backdating
        // Every root has a name of its own: clients look for issuers by name.
        let draft = CertificateDraft(
            subject: authoritySubject("Larder root", key, now), issuer: nil, notBefore: notBefore,
            notAfter: now + days * 86_400,
            extensions: [
                .authority(pathLengthMax: nil), .signsCertificates, .subjectKeyIdentifier(key.identifier),
            ] + (constraints.map { [.nameConstraints($0)] } ?? []))
        root = try draft.signed(certifying: key, by: key)
    }

    /// Reads a root whose key was kept.
    ///
    /// - Parameters:
    ///   - certificateFile: PEM. The root is the first self-signed certificate in it.
    ///   - keyFile: PEM. Nobody but this user or root may own it, and nobody but its owner may read it.
    package init(certificateFile: String, keyFile: String, at now: Int64) throws(AuthorityError) {
        let certificates = try AuthorityFiles.certificates(certificateFile)
        guard let root = certificates.first(where: \.isSelfIssued) else { throw .noCertificate(path: certificateFile) }
        try checkUse(of: root, certificateFile)
        try checkTime(of: root, certificateFile, now)
        key = try AuthorityFiles.key(keyFile)
        guard key.belongs(to: root) else { throw .keyOfAnother(certificate: certificateFile, key: keyFile) }
        self.root = root
        constraints = root.nameConstraints
    }

    package var certificate: CertificateDescription { CertificateDescription(root) }

    /// The key in PEM, for those who keep it.
    package var keyPEM: [UInt8] { key.pem }

    /// Makes an intermediate authority with a new key and the constraints of the root. It may sign leaves, and no other authority.
    ///
    /// - Parameters:
    ///   - node: the name of the machine that it is for. Nil if there is only one.
    ///   - now: seconds since 1970.
    ///   - days: how long it is valid from now on, but no longer than the root.
    package func issue(node: String?, at now: Int64, days: Int64) throws(AuthorityError) -> Issued {
        let own = PrivateKey.makeP256()
        let title = node.map { "Larder node \($0)" } ?? "Larder intermediate"
        let draft = CertificateDraft(
            subject: authoritySubject(title, own, now), issuer: root,
            notBefore: max(now - RootAuthority.backdating, root.notBefore),
            notAfter: min(now + days * 86_400, root.notAfter),
            extensions: [
                .authority(pathLengthMax: 0), .signsCertificates, .serverAuthentication,
                .subjectKeyIdentifier(own.identifier),
                .authorityKeyIdentifier(root.subjectKeyIdentifier ?? root.computedKeyIdentifier),
            ] + (constraints.map { [.nameConstraints($0)] } ?? []))
        let certificate = try draft.signed(certifying: own, by: key)
        return Issued(
            certificates: certificate.pem + root.pem, key: own.pem, description: CertificateDescription(certificate))
    }
}

/// `CN=Larder root 2026-11-22 3f9a0c12`: the date and a part of the key's identifier keep names apart.
private func authoritySubject(_ title: String, _ key: PrivateKey, _ now: Int64) -> [(kind: CInt, value: String)] {
    let mark = key.identifier.prefix(4).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    return [(NID_organizationName, "Larder"), (NID_commonName, "\(title) \(dateText(now)) \(mark)")]
}

extension NameConstraints {
    /// Permits the given names with all names below them, and the given addresses; nothing else.
    package init(permitting names: [String], addresses: [[UInt8]]) {
        // Without any permitted name all names would be permitted. `invalid` is never in use (RFC 6761 §6.4).
        permittedNames = names.isEmpty ? ["invalid"] : names.map { $0.lowercased() }
        guard !addresses.isEmpty else {
            // Constraints on names do not concern addresses.
            excludedAddresses = [.allIPv4, .allIPv6]
            return
        }
        // If addresses of one family are permitted, GnuTLS permits all of the other. Java 17 fails on an IPv4 address where all IPv6
        // addresses are excluded. So the address that means none is permitted.
        permittedAddresses = addresses.map { AddressRange($0) }
        for unspecified in NameConstraints.unspecified
        where !addresses.contains(where: { $0.count == unspecified.address.count }) {
            permittedAddresses.append(unspecified)
        }
    }

    /// 0.0.0.0 and ::, which no host has.
    private static let unspecified = [4, 16].map { AddressRange([UInt8](repeating: 0, count: $0)) }

    /// What is permitted and can be in use.
    package var usableNames: [String] { permittedNames.filter { $0 != "invalid" } }
    package var usableAddresses: [AddressRange] {
        permittedAddresses.filter { !NameConstraints.unspecified.contains($0) }
    }
}
