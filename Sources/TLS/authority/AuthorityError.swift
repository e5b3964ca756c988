import Glibc

/// Why a certificate authority cannot be used, or could not certify a name.
package enum AuthorityError: Error, Equatable {
    case fileUnreadable(path: String, errno: CInt)
    case keyNotRegularFile(path: String)
    case keyOwnedByAnother(path: String, owner: UInt32)
    /// Others than the owner may read or write the key.
    case keyExposed(path: String, mode: UInt32)
    case keyUnreadable(path: String, reason: String)
    case keyEncrypted(path: String)
    /// Neither P-256, P-384, P-521 nor RSA of 2048 bits or more.
    case keyUnsuitable(path: String, kind: String)
    case noCertificate(path: String)
    case certificateUnreadable(path: String)
    case notAnAuthority(path: String, subject: String)
    /// Its keyUsage does not have keyCertSign.
    case mayNotSignCertificates(path: String, subject: String)
    /// Its extendedKeyUsage does not have serverAuth.
    case notForServers(path: String, subject: String)
    case keyOfAnother(certificate: String, key: String)
    case expired(path: String, subject: String, notAfter: Int64)
    case notYetValid(path: String, subject: String, notBefore: Int64)
    case notPermitted(LeafName)
    case invalidName(String)
    case signingFailed(reason: String)
}

extension AuthorityError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .fileUnreadable(let path, let code):
            "\(path) cannot be read: \(unsafe String(cString: strerror(code)))"
        case .keyNotRegularFile(let path): "\(path) is not a regular file"
        case .keyOwnedByAnother(let path, let owner):
            "\(path) belongs to user \(owner), but the key of an authority must belong to user \(geteuid()), which Larder runs as, or to root"
        case .keyExposed(let path, let mode):
            "\(path) has mode 0\(String(mode, radix: 8)), but nobody except its owner may have access to the key of an authority"
        case .keyUnreadable(let path, let reason): "\(path) is not a private key in PEM: \(reason)"
        case .keyEncrypted(let path): "\(path) is encrypted with a passphrase"
        case .keyUnsuitable(let path, let kind):
            "the key in \(path) is \(kind); allowed are P-256, P-384, P-521 and RSA of 2048 bits or more"
        case .noCertificate(let path): "\(path) has no certificate in PEM"
        case .certificateUnreadable(let path): "\(path) has a certificate that cannot be read"
        case .notAnAuthority(let path, let subject):
            "the first certificate in \(path) (\(subject)) is not that of an authority: basicConstraints with CA:TRUE is missing"
        case .mayNotSignCertificates(let path, let subject):
            "the first certificate in \(path) (\(subject)) may not sign certificates: its keyUsage lacks keyCertSign"
        case .notForServers(let path, let subject):
            "the first certificate in \(path) (\(subject)) may not certify servers: its extendedKeyUsage lacks serverAuth"
        case .keyOfAnother(let certificate, let key):
            "\(key) is not the key of the first certificate in \(certificate)"
        case .expired(let path, let subject, let notAfter):
            "the certificate of \(subject) in \(path) expired on \(dateText(notAfter))"
        case .notYetValid(let path, let subject, let notBefore):
            "the certificate of \(subject) in \(path) is not valid before \(dateText(notBefore))"
        case .notPermitted(let name): "the name constraints of the authority do not permit \(name.text)"
        case .invalidName(let name): "\"\(name)\" is not a host name"
        case .signingFailed(let reason): "the certificate could not be signed: \(reason)"
        }
    }
}

/// `2027-12-24`, in UTC.
package func dateText(_ seconds: Int64) -> String {
    var time = time_t(seconds)
    var parts = unsafe tm()
    _ = unsafe gmtime_r(&time, &parts)
    func padded(_ number: CInt) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return unsafe "\(parts.tm_year + 1900)-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday))"
}
