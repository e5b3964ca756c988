import COpenSSL

/// The certificate of one host, made by a `CertificateAuthority`, with what a TLS session needs beside it.
///
/// The pointers are valid as long as the leaf. OpenSSL takes references of its own when they are given to a context or a session.
@safe package final class Leaf: Sendable {
    package let name: LeafName
    /// Seconds since 1970; likewise `notAfter` and `renewFrom`.
    package let notBefore: Int64
    package let notAfter: Int64
    /// From here on a new leaf is made for a new connection: half of the lifetime has passed.
    package let renewFrom: Int64
    /// SHA-256 of the text of `name`. With it a session is resumed for the same host only.
    let nameDigest: [UInt8]
    private let issued: Certificate
    private let authority: CertificateAuthority

    init(_ issued: Certificate, for name: LeafName, validity: LeafValidity, by authority: CertificateAuthority) {
        self.name = name
        nameDigest = Digest.sha256(name.text.utf8)
        (notBefore, notAfter, renewFrom) = (validity.notBefore, validity.notAfter, validity.renewFrom)
        self.issued = issued
        self.authority = authority
    }

    /// `X509 *`
    @unsafe package var certificate: OpaquePointer { unsafe issued.raw }
    /// `EVP_PKEY *`
    @unsafe package var key: OpaquePointer { unsafe authority.leafKey.raw }
    /// `STACK_OF(X509) *`: what follows the leaf in a handshake, without the root. Empty if a root has signed the leaf.
    @unsafe package var chain: OpaquePointer { unsafe authority.chain.raw }

    /// The certificate and its chain in PEM. Never the key.
    package var pem: [UInt8] { issued.pem + authority.path.filter { !$0.isSelfIssued }.flatMap(\.pem) }
}

/// From when until when a leaf is valid, and when it is replaced: seconds since 1970.
struct LeafValidity: Equatable {
    var notBefore, notAfter, renewFrom: Int64

    /// Clocks of containers and virtual machines go wrong by hours.
    static let backdating: Int64 = 48 * 3600
    static let lifetime: Int64 = 7 * 86_400

    /// - Parameter issuer: when the issuer is valid. No leaf is valid for longer.
    init(at now: Int64, within issuer: ClosedRange<Int64>) {
        notBefore = max(now - LeafValidity.backdating, issuer.lowerBound)
        notAfter = min(now + LeafValidity.lifetime, issuer.upperBound)
        // A leaf that ends with its issuer cannot be replaced by one that is valid for longer.
        renewFrom = notAfter == issuer.upperBound ? notAfter : now + LeafValidity.lifetime / 2
    }
}

extension CertificateAuthority {
    /// Makes a certificate for `name` and signs it.
    ///
    /// - Parameter now: seconds since 1970.
    package func issue(_ name: LeafName, at now: Int64) throws(AuthorityError) -> Leaf {
        guard name.isValid else { throw .invalidName(name.text) }
        guard permits(name) else { throw .notPermitted(name) }
        guard now <= notAfter else {
            throw .expired(path: "memory", subject: issuerDescription.subject, notAfter: notAfter)
        }
        guard now >= notBefore else {
            throw .notYetValid(path: "memory", subject: issuerDescription.subject, notBefore: notBefore)
        }
        let validity = LeafValidity(at: now, within: notBefore...notAfter)
        let subject = constraints.contains(where: \.constrainsSubjects) ? nil : name.commonName
        let draft = CertificateDraft(
            subject: subject.map { [(NID_commonName, $0)] } ?? [], issuer: issuer,
            notBefore: validity.notBefore, notAfter: validity.notAfter,
            extensions: [
                .notAnAuthority, .signsHandshakes, .serverAuthentication, .authorityKeyIdentifier(keyIdentifier),
                .subjectAlternativeName(name, isOnlyName: subject == nil),
            ])
        let certificate = try draft.signed(certifying: leafKey, by: issuerKey)
        return Leaf(certificate, for: name, validity: validity, by: self)
    }
}

extension LeafName {
    /// Nil for a name of more than 63 characters (RFC 5280 appendix A.1 allows 64), and for an address: OpenSSL takes it for a name,
    /// which name constraints forbid.
    fileprivate var commonName: String? {
        guard case .dns(let name) = self, name.utf8.count < 64 else { return nil }
        return name
    }
}
