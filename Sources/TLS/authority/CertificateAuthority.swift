import COpenSSL

/// An authority that certifies the hosts of opened connections: an issuer's certificate with its key, and the certificates above it.
///
/// It is not changed after init, and all threads use the same one. Every leaf has the same key, which is made with the authority, is
/// kept in memory only and is never that of the authority.
package final class CertificateAuthority: Sendable {
    let issuer: Certificate
    let issuerKey: PrivateKey
    /// The issuer, and above it the certificates of the file that have signed each other.
    let path: [Certificate]
    let leafKey = PrivateKey.makeForLeaves()
    /// What a server sends after the leaf: the path without a root.
    let chain: CertificateStack
    /// The identifier of the issuer's key, as the issuer's certificate has it.
    let keyIdentifier: [UInt8]
    /// The constraints of every certificate of the path that has some.
    let constraints: [NameConstraints]
    /// The time within which all certificates of the path are valid: seconds since 1970.
    package let notBefore, notAfter: Int64

    /// The issuer's certificate.
    package let issuerDescription: CertificateDescription
    /// The self-signed certificates of the file, for those who are to trust the authority. While one root replaces another, both of them.
    package let roots: [CertificateDescription]
    /// What is odd about the certificates: one sentence each.
    package let remarks: [String]

    /// - Parameters:
    ///   - certificateFile: PEM. The issuer first; then, in any order, the certificates above it and the roots.
    ///   - keyFile: PEM, without a passphrase. Nobody but this user or root may own it, and nobody but its owner may read it.
    ///   - now: seconds since 1970.
    package init(certificateFile: String, keyFile: String, at now: Int64) throws(AuthorityError) {
        let certificates = try AuthorityFiles.certificates(certificateFile)
        issuer = certificates[0]
        issuerKey = try AuthorityFiles.key(keyFile)
        try checkUse(of: issuer, certificateFile)
        guard issuerKey.isSuitable else {
            throw .keyUnsuitable(path: keyFile, kind: issuerKey.kind.description)
        }
        guard issuerKey.belongs(to: issuer) else {
            throw .keyOfAnother(certificate: certificateFile, key: keyFile)
        }
        path = CertificateAuthority.path(from: issuer, in: certificates.dropFirst())
        for certificate in path { try checkTime(of: certificate, certificateFile, now) }
        chain = CertificateStack(path.filter { !$0.isSelfIssued })
        keyIdentifier = issuer.subjectKeyIdentifier ?? issuer.computedKeyIdentifier
        constraints = path.compactMap(\.nameConstraints)
        (notBefore, notAfter) = (path.map(\.notBefore).max() ?? 0, path.map(\.notAfter).min() ?? 0)
        issuerDescription = CertificateDescription(issuer)
        roots = certificates.filter(\.isSelfIssued).map(CertificateDescription.init)
        remarks = CertificateAuthority.remarks(on: issuer, hasRoot: !roots.isEmpty)
    }

    /// Whether the name constraints of all certificates of the path permit the name (RFC 5280 §4.2.1.10).
    package func permits(_ name: LeafName) -> Bool { constraints.allSatisfy { $0.permits(name) } }

    /// Whether a leaf is signed in some 0.1 ms. If not, sign on a helper thread: RSA takes many times as long.
    package var signsQuickly: Bool { if case .ellipticCurve = issuerKey.kind { true } else { false } }

    /// Whole days until the authority can certify no longer. Negative if that time has passed.
    package func daysLeft(at now: Int64) -> Int64 { (notAfter - now) / 86_400 - (notAfter < now ? 1 : 0) }

    /// Whether `other` signs with the same certificate and has the same roots to hand out.
    package func isSame(as other: CertificateAuthority) -> Bool {
        issuerDescription.sha256 == other.issuerDescription.sha256 && roots == other.roots
    }

    /// The certificates above `issuer`, in their order.
    private static func path(from issuer: Certificate, in others: ArraySlice<Certificate>) -> [Certificate] {
        var path = [issuer]
        var rest = Array(others)
        while let last = path.last, !last.isSelfIssued, let index = rest.firstIndex(where: { last.isIssued(by: $0) }) {
            path.append(rest.remove(at: index))
        }
        return path
    }

    private static func remarks(on issuer: Certificate, hasRoot: Bool) -> [String] {
        var remarks: [String] = []
        if issuer.mayUseKeyToSignCertificates == nil {
            remarks.append("\(issuer.subject) has no keyUsage: strict clients, such as Python 3.13, refuse it")
        }
        if !issuer.isBasicConstraintsCritical {
            remarks.append(
                "basicConstraints of \(issuer.subject) is not critical: strict clients, such as Python 3.13, refuse it")
        }
        if issuer.subjectKeyIdentifier == nil {
            remarks.append(
                "\(issuer.subject) has no subject key identifier: strict clients, such as Python 3.13, refuse it")
        }
        if !hasRoot {
            remarks.append("the file has no root certificate: Larder has none to hand out to clients")
        }
        return remarks
    }
}

func checkUse(of issuer: Certificate, _ path: String) throws(AuthorityError) {
    guard issuer.isReadable else { throw .certificateUnreadable(path: path) }
    guard issuer.isAuthority else { throw .notAnAuthority(path: path, subject: issuer.subject) }
    guard issuer.mayUseKeyToSignCertificates ?? true else {
        throw .mayNotSignCertificates(path: path, subject: issuer.subject)
    }
    guard issuer.isForServers else { throw .notForServers(path: path, subject: issuer.subject) }
}

func checkTime(of certificate: Certificate, _ path: String, _ now: Int64) throws(AuthorityError) {
    guard now <= certificate.notAfter else {
        throw .expired(path: path, subject: certificate.subject, notAfter: certificate.notAfter)
    }
    guard now >= certificate.notBefore else {
        throw .notYetValid(path: path, subject: certificate.subject, notBefore: certificate.notBefore)
    }
}

extension PrivateKey {
    /// P-256, P-384, P-521, or RSA of 2048 bits or more.
    fileprivate var isSuitable: Bool {
        switch kind {
        case .ellipticCurve: true
        case .rsa(let bits): bits >= 2048
        case .other: false
        }
    }

    func belongs(to certificate: Certificate) -> Bool {
        defer { ErrorQueue.clear() }
        return unsafe EVP_PKEY_eq(X509_get0_pubkey(certificate.raw), raw) == 1
    }
}
