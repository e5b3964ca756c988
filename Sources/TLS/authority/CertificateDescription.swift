import COpenSSL

/// What there is to say of a certificate, and the certificate itself for those who want it.
package struct CertificateDescription: Sendable, Equatable {
    /// RFC 4514: `CN=…,O=…`.
    package let subject: String
    /// Of the certificate in DER: its fingerprint, 32 bytes.
    package let sha256: [UInt8]
    /// `P-256`, `RSA 2048`.
    package let keyKind: String
    /// Seconds since 1970; likewise `notAfter`.
    package let notBefore: Int64
    package let notAfter: Int64
    /// Nil if the certificate may certify any name.
    package let constraints: NameConstraints?
    package let isSelfSigned: Bool
    package let der: [UInt8]
    package let pem: [UInt8]

    init(_ certificate: Certificate) {
        subject = certificate.subject
        der = certificate.der
        sha256 = Digest.sha256(der)
        keyKind = certificate.keyKind
        notBefore = certificate.notBefore
        notAfter = certificate.notAfter
        constraints = certificate.nameConstraints
        isSelfSigned = certificate.isSelfIssued
        pem = certificate.pem
    }

    /// Reads all certificates of a PEM text. Returns nil if one of them cannot be read.
    package static func all(inPEM text: [UInt8]) -> [CertificateDescription]? {
        Certificate.all(inPEM: text)?.map(CertificateDescription.init)
    }

    /// The fingerprint in lower-case hexadecimal digits: what `setup.sh --ca-sha256` takes.
    package var fingerprint: String { sha256.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
