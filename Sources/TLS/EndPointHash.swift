import COpenSSL

extension TLSSession {
    /// The hash of the server's certificate, which binds a log-in to this connection (`tls-server-end-point`, RFC 5929 §4.1). Nobody in between
    /// can pass on such a log-in, because that one would have shown another certificate.
    ///
    /// The hash function is that of the certificate's signature, or SHA-256 in place of MD5 and SHA-1. Nil before the handshake, and if the signature
    /// has no hash function of its own, as with Ed25519: RFC 5929 defines nothing then.
    package var endPointHash: [UInt8]? {
        // Before, an offered session has a certificate already. Nobody has shown it yet.
        guard unsafe SSL_is_init_finished(raw) == 1 else { return nil }
        return unsafe SSL_get0_peer_certificate(raw).flatMap { unsafe hashOfEndPoint($0) }
    }
}

/// - Parameter certificate: an `X509 *`.
@unsafe func hashOfEndPoint(_ certificate: OpaquePointer) -> [UInt8]? {
    var function: CInt = 0
    guard unsafe X509_get_signature_info(certificate, &function, nil, nil, nil) == 1 else {
        ErrorQueue.clear()
        return nil
    }
    if function == NID_md5 || function == NID_sha1 { function = NID_sha256 }
    guard function != NID_undef, let name = unsafe OBJ_nid2sn(function),
        let digest = unsafe EVP_get_digestbyname(name)
    else { return nil }
    var hash = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count: CUnsignedInt = 0
    guard unsafe X509_digest(certificate, digest, &hash, &count) == 1 else {
        ErrorQueue.clear()
        return nil
    }
    return Array(hash[..<Int(count)])
}
