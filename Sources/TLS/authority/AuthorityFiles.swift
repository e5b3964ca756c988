import COpenSSL
import Glibc

/// Reads the files of an authority. The key must be out of reach of everyone but its owner.
enum AuthorityFiles {
    /// Longer files are refused.
    static let bytesMax = 1 << 20

    static func certificates(_ path: String) throws(AuthorityError) -> [Certificate] {
        let fd = try open(path)
        defer { close(fd) }
        guard let certificates = Certificate.all(inPEM: try contents(fd, path)) else {
            throw .certificateUnreadable(path: path)
        }
        guard !certificates.isEmpty else { throw .noCertificate(path: path) }
        return certificates
    }

    static func key(_ path: String) throws(AuthorityError) -> PrivateKey {
        let fd = try open(path)
        defer { close(fd) }
        try checkAccess(fd, path)
        var text = try contents(fd, path)
        defer { unsafe text.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) } }
        do throws(PrivateKey.Failure) {
            return try PrivateKey(pem: text)
        } catch {
            switch error {
            case .encrypted, .passphraseWrong: throw .keyEncrypted(path: path)
            case .unreadable(let reason): throw .keyUnreadable(path: path, reason: reason)
            }
        }
    }

    /// Examines the open file, so that what is checked is what is read.
    private static func checkAccess(_ fd: CInt, _ path: String) throws(AuthorityError) {
        var status = stat()
        guard unsafe fstat(fd, &status) == 0 else { throw .fileUnreadable(path: path, errno: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .keyNotRegularFile(path: path) }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw .keyOwnedByAnother(path: path, owner: status.st_uid)
        }
        guard status.st_mode & 0o077 == 0 else { throw .keyExposed(path: path, mode: status.st_mode & 0o7777) }
    }

    private static func open(_ path: String) throws(AuthorityError) -> CInt {
        // Without O_NONBLOCK a named pipe would block until somebody writes to it.
        let fd = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard fd >= 0 else { throw .fileUnreadable(path: path, errno: errno) }
        return fd
    }

    /// One buffer, which is not moved while it is filled: the caller can wipe all there is.
    private static func contents(_ fd: CInt, _ path: String) throws(AuthorityError) -> [UInt8] {
        var failure: CInt?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: bytesMax + 1) { buffer, count in
            while count < buffer.count {
                let got = unsafe read(fd, buffer.baseAddress! + count, buffer.count - count)
                if got < 0 && errno == EINTR { continue }
                guard got > 0 else {
                    failure = got < 0 ? errno : nil
                    return
                }
                count += got
            }
            failure = EFBIG
        }
        if let failure { throw .fileUnreadable(path: path, errno: failure) }
        return bytes
    }
}
