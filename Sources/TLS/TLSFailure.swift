import COpenSSL
import Glibc

/// Why a TLS connection could not be made, or failed.
package enum TLSFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The peer's certificate was not accepted.
    case certificate(CertificateProblem)
    /// There is no common version or cipher, or the peer does not speak TLS.
    case protocolError(reason: String)
    /// The peer refused the connection with an alert (RFC 8446 §6).
    case alertReceived(code: UInt8, name: String)
    /// The connection ended without `close_notify`, so the end of the data may be missing.
    case truncated
    case connectionFailed(errno: CInt)

    /// Whether the peer says that it does not accept a certificate: the alerts `bad_certificate` to `unknown_ca`, `access_denied` and
    /// `certificate_required` (RFC 8446 §6.2).
    var isAboutCertificate: Bool {
        guard case .alertReceived(let code, _) = self else { return false }
        return (42...46).contains(code) || [48, 49, 116].contains(code)
    }

    /// What is wrong with a certificate.
    package enum CertificateProblem: Equatable, Sendable {
        case expired, notYetValid, selfSigned, nameMismatch, unknownIssuer, revoked
        /// None of its public keys is pinned (RFC 7469 §2.6).
        case notPinned
        /// A client that has to show one has shown none.
        case missing
        /// OpenSSL's X509_V_ERR code and its text.
        case other(code: Int, reason: String)
    }

    package var description: String { details }

    /// One sentence for the `details` parameter and for the log.
    package var details: String {
        switch self {
        case .certificate(let problem): problem.details
        case .protocolError(let reason): reason
        case .alertReceived(let code, let name): "alert \(code): \(name)"
        case .truncated: "closed without close_notify"
        case .connectionFailed(let code): unsafe String(cString: strerror(code))
        }
    }
}

extension TLSFailure.CertificateProblem {
    init(verifyResult code: Int) {
        self =
            switch CInt(clamping: code) {
            case X509_V_ERR_CERT_HAS_EXPIRED: .expired
            case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
            case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: .selfSigned
            case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .nameMismatch
            case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
                X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
                .unknownIssuer
            case X509_V_ERR_CERT_REVOKED: .revoked
            case X509_V_ERR_APPLICATION_VERIFICATION: .notPinned
            default: .other(code: code, reason: unsafe String(cString: X509_verify_cert_error_string(code)))
            }
    }

    package var details: String {
        switch self {
        case .expired: "the certificate has expired"
        case .notYetValid: "the certificate is not yet valid"
        case .selfSigned: "the certificate is self-signed"
        case .nameMismatch: "the certificate is for another name"
        case .unknownIssuer: "the certificate's issuer is not known"
        case .revoked: "the certificate is revoked"
        case .notPinned: "the certificate has another public key than those that are pinned"
        case .missing: "there is no certificate"
        case .other(_, let reason): reason
        }
    }
}

/// OpenSSL's queue of errors, of which each thread has one.
enum ErrorQueue {
    /// A received alert is an error with its number plus this one (SSL_AD_REASON_OFFSET).
    private static let alertOffset: CInt = 1000

    static func clear() { ERR_clear_error() }

    /// Returns the oldest error as a failure, and empties the queue.
    static func takeFailure() -> TLSFailure {
        let code = ERR_get_error()
        ERR_clear_error()
        let reason = ERR_GET_REASON(code)
        if ERR_GET_LIB(code) == ERR_LIB_SSL {
            if reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE { return .certificate(.missing) }
            if reason == SSL_R_UNEXPECTED_EOF_WHILE_READING { return .truncated }
            if reason > alertOffset, let alert = UInt8(exactly: reason - alertOffset) {
                return .alertReceived(
                    code: alert, name: unsafe String(cString: SSL_alert_desc_string_long(CInt(alert))))
            }
        }
        return .protocolError(reason: text(of: code))
    }

    static func takeText() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        return text(of: code)
    }

    private static func text(of code: UInt) -> String {
        // ERR_SYSTEM_ERROR, a macro: the bits below are an `errno`, for which OpenSSL has no text.
        if code & (1 << 31) != 0 { return unsafe String(cString: strerror(CInt(code & 0x7FFF_FFFF))) }
        let (library, reason) = (ERR_GET_LIB(code), ERR_GET_REASON(code))
        if library == ERR_LIB_PEM, reason == PEM_R_NO_START_LINE {
            return "the file is not PEM, or nothing of this kind is in it"
        }
        if library == ERR_LIB_X509, reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH {
            return "the key does not belong to the certificate"
        }
        guard let text = unsafe ERR_reason_error_string(code) else {
            return "OpenSSL gives no reason"
        }
        return unsafe String(cString: text)
    }
}
