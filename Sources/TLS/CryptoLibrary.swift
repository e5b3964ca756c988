import COpenSSL

/// The state that OpenSSL keeps for the whole process.
package enum CryptoLibrary {
    /// Has OpenSSL keep its state until the process is gone.
    ///
    /// OpenSSL frees that state in `exit(3)` (OPENSSL_init_crypto(3)), while other threads still run: a thread that then used OpenSSL would read
    /// what is freed, and the process would end by a signal. Call this before anything else uses OpenSSL; later calls change nothing.
    package static func keepUntilProcessEnds() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
