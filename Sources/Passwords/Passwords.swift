import CCrypt
import Glibc

/// Passwords and their hashes by crypt(3): bcrypt, yescrypt, SHA-512 and SHA-256 (crypt(5)).
///
/// Every function here takes tens to hundreds of milliseconds by design: never call one on a worker.

/// Returns whether the password has this hash: false if crypt(3) does not know the kind of hash, or if the password contains a NUL.
package func verify(password: [UInt8], hash: String) -> Bool {
    guard let computed = crypt(password, setting: hash) else { return false }
    return isEqualInConstantTime(computed, Array(hash.utf8))
}

/// Returns a bcrypt hash with a new salt, for an htpasswd file.
package func hash(password: [UInt8]) throws(PasswordError) -> String {
    guard !password.isEmpty else { throw .empty }
    guard password.count <= 72 else { throw .tooLong }
    guard !password.contains(0) else { throw .containsNUL }
    guard let setting = makeSetting(), let computed = crypt(password, setting: setting) else { throw .unsupported }
    return String(decoding: computed, as: UTF8.self)
}

/// Verify against this if the user does not exist, so that the answer takes the same time. No known password has this hash.
package let hashOfNobody = "$2b$10$abcdefghijklmnopqrstuu5Lo0g67CiD3M4RpN1BmBb4Crp5w7dbK"

/// Why a password cannot be hashed.
package enum PasswordError: Error, Sendable, Equatable, CaseIterable {
    case empty
    /// bcrypt reads 72 bytes. It would accept any password that starts with them.
    case tooLong
    /// crypt(3) would stop reading there.
    case containsNUL
    /// This system's crypt(3) has no bcrypt.
    case unsupported
}

/// The work factor of bcrypt: 2^10 rounds, about 50 ms.
private let bcryptCost: CUnsignedLong = 10

/// Makes a `$2b$` setting with a random salt from the system. Returns nil if crypt(3) cannot make one.
private func makeSetting() -> String? {
    guard let setting = unsafe crypt_gensalt_ra("$2b$", bcryptCost, nil, 0) else { return nil }
    defer { unsafe free(setting) }
    return unsafe String(cString: setting)
}

/// Calls crypt(3). Returns nil if it fails. Its working memory is wiped before it is freed.
private func crypt(_ password: [UInt8], setting: String) -> [UInt8]? {
    guard !password.contains(0) else { return nil }
    var memory: UnsafeMutableRawPointer?
    var size: CInt = 0
    defer {
        if let used = unsafe memory {
            unsafe explicit_bzero(used, Int(size))
            unsafe free(used)
        }
    }
    var phrase = password.map { CChar(bitPattern: $0) } + [0]
    defer { unsafe phrase.withUnsafeMutableBytes { unsafe explicit_bzero($0.baseAddress!, $0.count) } }
    guard let result = unsafe crypt_ra(phrase, setting, &memory, &size) else { return nil }
    return unsafe Array(UnsafeBufferPointer(start: result, count: strlen(result))).map { UInt8(bitPattern: $0) }
}

/// Compares every byte, so that the time does not reveal how many were right.
private func isEqualInConstantTime(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    var difference: UInt8 = 0
    for index in a.indices { difference |= a[index] ^ b[index] }
    return difference == 0
}
