import Glibc
package import TLS
import Texts

extension AuthorityError {
    /// What mends it. Nil if the description says it.
    package var hint: String? {
        switch self {
        case .keyOwnedByAnother(let path, _): "run: chown \(geteuid()) \(shellWord(path))"
        case .keyExposed(let path, _): "run: chmod 600 \(shellWord(path))"
        case .keyEncrypted(let path):
            "run: openssl pkey -in \(shellWord(path)) -out NEW (in a directory that only Larder's user can read)"
        case .expired: "run: larder ca rotate"
        case .notYetValid: "check the clock of this machine"
        case .notPermitted: "run: larder ca rotate --host HOST, which makes an authority that may certify it"
        case .fileUnreadable(_, ENOENT): "run: larder ca create"
        case .keyOfAnother: "name the certificate of this key first, then those above it"
        case .fileUnreadable, .keyNotRegularFile, .keyUnreadable, .keyUnsuitable, .noCertificate,
            .certificateUnreadable,
            .notAnAuthority, .mayNotSignCertificates, .notForServers, .invalidName, .signingFailed:
            nil
        }
    }
}
