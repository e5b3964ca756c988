import COpenSSL

/// Owns a `STACK_OF(X509)` and a reference to each certificate in it.
@safe final class CertificateStack: @unchecked Sendable {  // not changed after init
    let raw: OpaquePointer
    private let certificates: [Certificate]

    init(_ certificates: [Certificate]) {
        guard let stack = unsafe OPENSSL_sk_new_reserve(nil, CInt(certificates.count)) else {
            preconditionFailure("no memory for a list of certificates")
        }
        for certificate in certificates { _ = unsafe OPENSSL_sk_push(stack, UnsafeRawPointer(certificate.raw)) }
        unsafe raw = unsafe stack
        self.certificates = certificates
    }

    deinit { unsafe OPENSSL_sk_free(raw) }
}
