/// A certificate with its key: how Larder proves to servers who it is (RFC 8446 §4.4.2).
package final class ClientIdentity: Sendable {
    let certificate: Certificate
    /// Those of the authorities in between, as they were given.
    let issuers: [Certificate]
    let key: PrivateKey

    /// - Parameters:
    ///   - certificates: PEM. The own certificate first, then those of the authorities in between.
    ///   - key: PEM.
    ///   - passphrase: of the key. Nil if it is not encrypted.
    package convenience init(
        certificates: [UInt8], key: [UInt8], passphrase: [UInt8]? = nil
    ) throws(ClientIdentityError) {
        guard let all = Certificate.all(inPEM: certificates) else { throw .certificateUnreadable }
        guard let own = all.first else { throw .noCertificate }
        try self.init(own, issuers: Array(all.dropFirst()), key: ClientIdentity.readKey(key, passphrase))
    }

    init(_ certificate: Certificate, issuers: [Certificate], key: PrivateKey) throws(ClientIdentityError) {
        guard certificate.hasKey(key) else { throw .keyOfAnother(subject: certificate.subject) }
        self.certificate = certificate
        self.issuers = issuers
        self.key = key
    }

    static func readKey(_ pem: [UInt8], _ passphrase: [UInt8]?) throws(ClientIdentityError) -> PrivateKey {
        do throws(PrivateKey.Failure) { return try PrivateKey(pem: pem, passphrase: passphrase) } catch {
            switch error {
            case .unreadable(let reason): throw .keyUnreadable(reason: reason)
            case .encrypted: throw .passphraseMissing
            case .passphraseWrong: throw .passphraseWrong
            }
        }
    }

    /// What the operator should know: one sentence each.
    ///
    /// - Parameter now: seconds since 1970.
    package func remarks(at now: Int64) -> [String] {
        let subject = certificate.subject
        var remarks: [String] = []
        if certificate.notAfter < now {
            remarks.append("the certificate of \(subject) expired on \(dateText(certificate.notAfter))")
        }
        if certificate.notBefore > now {
            remarks.append("the certificate of \(subject) is not valid before \(dateText(certificate.notBefore))")
        }
        if !certificate.isForClients {
            remarks.append(
                "the certificate of \(subject) is not for clients: its extendedKeyUsage lacks clientAuth, and servers may refuse it"
            )
        }
        return remarks
    }

    /// RFC 4514: `CN=…,O=…`.
    package var subject: String { certificate.subject }
}

/// Why a certificate cannot be shown to servers.
package enum ClientIdentityError: Error, Equatable {
    case noCertificate, certificateUnreadable
    case keyUnreadable(reason: String)
    case passphraseMissing, passphraseWrong
    case keyOfAnother(subject: String)
    /// The bytes are not PKCS#12 (RFC 7292).
    case bundleUnreadable(reason: String)
    /// The PKCS#12 file has no certificate, or no key for it.
    case bundleIncomplete
    /// The PKCS#12 file is encrypted with RC2 or another algorithm that this OpenSSL does not have.
    case bundleOutdated
}

extension ClientIdentityError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noCertificate: "there is no certificate in PEM"
        case .certificateUnreadable: "a certificate cannot be read"
        case .keyUnreadable(let reason): "there is no private key in PEM that OpenSSL can read (\(reason))"
        case .passphraseMissing: "a password is needed"
        case .passphraseWrong: "the password is wrong"
        case .keyOfAnother(let subject): "the key does not belong to the first certificate (\(subject))"
        case .bundleUnreadable(let reason): "it is not a PKCS#12 file: \(reason)"
        case .bundleIncomplete: "it has no certificate with a private key"
        case .bundleOutdated:
            "it is encrypted with RC2 or another outdated algorithm, which needs the legacy module of OpenSSL, and that is not installed"
        }
    }

    /// What mends it. Nil if the description says it.
    package var hint: String? {
        switch self {
        case .keyOfAnother: "name the certificate of this key first, then those of its issuers"
        case .bundleOutdated:
            "convert it where the module is: openssl pkcs12 -legacy -in OLD -nodes -out FILE, then openssl pkcs12 -export -in FILE -out NEW"
        case .noCertificate, .certificateUnreadable, .keyUnreadable, .passphraseMissing, .passphraseWrong,
            .bundleUnreadable, .bundleIncomplete:
            nil
        }
    }
}
