package import Credentials
import Message

/// Hashes of an htpasswd file that can be guessed fast. They are accepted with `weak_hashes: allow` alone, and compared here, because
/// crypt(3) does not know them.
package enum WeakHash {
    package static func isOne(_ hash: String) -> Bool { hash.hasPrefix("$apr1$") || hash.hasPrefix("{SHA}") }

    /// Whether the password has this hash. False too if it is none of these, or if this installation does not compute it.
    package static func matches(_ password: [UInt8], _ hash: String, using hashing: some Hashing) -> Bool {
        do throws(HashUnavailable) {
            if hash.hasPrefix("{SHA}") {
                let digest = try hashing.hash(.sha1, password)
                return Secret(Array("{SHA}".utf8) + encodeBase64(digest)) == Secret(hash)
            }
            guard let salt = apr1Salt(hash) else { return false }
            return Secret(try apr1(password, salt, hashing)) == Secret(hash)
        } catch {
            return false
        }
    }

    /// `$apr1$SALT$HASH`, with a salt of at most eight bytes.
    private static func apr1Salt(_ hash: String) -> [UInt8]? {
        let parts = hash.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0].isEmpty, parts[1] == "apr1", parts[2].utf8.count <= 8 else { return nil }
        return Array(parts[2].utf8)
    }

    /// The MD5-based hash of crypt(3), with the magic of Apache in place of `$1$`: 1000 rounds that mix password, salt and the digest before.
    private static func apr1(
        _ password: [UInt8], _ salt: [UInt8], _ hashing: some Hashing
    ) throws(HashUnavailable) -> [UInt8] {
        let magic = Array("$apr1$".utf8)
        let inner = try hashing.hash(.md5, password + salt + password)
        var message = password + magic + salt
        for index in password.indices { message.append(inner[index % 16]) }
        // One byte for each bit of the length: a zero for a one, and the first byte of the password for a zero.
        var length = password.count
        while length > 0 {
            message.append(length & 1 == 1 ? 0 : password[0])
            length >>= 1
        }
        var digest = try hashing.hash(.md5, message)
        for round in 0..<1000 {
            var message = round & 1 == 1 ? password : digest
            if round % 3 != 0 { message += salt }
            if round % 7 != 0 { message += password }
            message += round & 1 == 1 ? digest : password
            digest = try hashing.hash(.md5, message)
        }
        return magic + salt + [UInt8(ascii: "$")] + letters(of: digest)
    }

    /// The digest in the alphabet of crypt(3): groups of three bytes, six bits to a letter, the lowest first.
    private static func letters(of digest: [UInt8]) -> [UInt8] {
        let alphabet = Array("./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        var letters: [UInt8] = []
        func add(_ value: UInt32, _ count: Int) {
            for index in 0..<count { letters.append(alphabet[Int(value >> UInt32(6 * index) & 63)]) }
        }
        for (a, b, c) in [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)] {
            add(UInt32(digest[a]) << 16 | UInt32(digest[b]) << 8 | UInt32(digest[c]), 4)
        }
        add(UInt32(digest[11]), 2)
        return letters
    }
}
