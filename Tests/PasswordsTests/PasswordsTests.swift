import Passwords
import Testing

@Suite("crypt(5) Password hashes")
struct PasswordsTests {
    @Test func `a new hash is bcrypt, salted, and verifies only its password`() throws {
        let first = try hash(password: Array("open sesame".utf8))
        let second = try hash(password: Array("open sesame".utf8))
        #expect(first.hasPrefix("$2b$10$") && first.utf8.count == 60)
        #expect(first != second)
        #expect(verify(password: Array("open sesame".utf8), hash: first))
        #expect(!verify(password: Array("open sesam".utf8), hash: first))
        #expect(!verify(password: [], hash: first))
    }

    /// "larder", at low costs so that the tests are quick. Made by crypt(3) from Perl.
    static let hashes = [
        "$2y$04$abcdefghijklmnopqrstuuWEkgohybeZAgzu34tY2ZDkyXn.XXT2y",
        "$2a$04$abcdefghijklmnopqrstuuWEkgohybeZAgzu34tY2ZDkyXn.XXT2y",
        "$6$rounds=1000$saltsalt$RGSDdvtLvMGcLkmJSogxYGgRrfXneLm4/ZUPH4kotBNFGOW9bmvl6gvdGttAY6XdS6XyqpyL7CU4c6MUxh3021",
        "$5$rounds=1000$saltsalt$8l.7PZd3hBDA2xmuIUkFLzxQKYnmWhJ0enXQsZOysYD",
        "$y$j75$saltsalt$1KOxy//.MVoZlJT6/QslRmQ8y2rUrUKGif4JAjq1Y.C",
    ]
    @Test(arguments: hashes) func `every kind of hash in htpasswd files is verified`(_ hash: String) {
        #expect(verify(password: Array("larder".utf8), hash: hash))
        #expect(!verify(password: Array("Larder".utf8), hash: hash))
        // What crypt(3) would not see behind a NUL.
        #expect(!verify(password: Array("larder\0more".utf8), hash: hash))
        #expect(!verify(password: Array("larder".utf8), hash: String(hash.dropLast())))
    }

    @Test(arguments: ["", "*", "*0", "*1", "larder", "$9$unknown$hash", "$2y$99$abcdefghijklmnopqrstuu", "$2y$04$!"])
    func `a text that is not a hash matches no password`(_ hash: String) {
        #expect(!verify(password: Array("larder".utf8), hash: hash))
        #expect(!verify(password: Array(hash.utf8), hash: hash))
    }

    @Test func `a user who does not exist costs as much as one who does`() {
        // Same scheme and cost as ours, and whole, so that crypt(3) does the work.
        #expect(hashOfNobody.hasPrefix("$2b$10$") && hashOfNobody.utf8.count == 60)
        #expect(!verify(password: [], hash: hashOfNobody))
        #expect(!verify(password: Array("larder".utf8), hash: hashOfNobody))
    }

    static let refused: [([UInt8], PasswordError)] = [
        ([], .empty), (Array(repeating: 0x61, count: 73), .tooLong), ([0x61, 0, 0x62], .containsNUL),
    ]
    @Test(arguments: refused) func `a password that would be cut is not hashed`(
        _ password: [UInt8], _ error: PasswordError
    ) {
        #expect(throws: error) { try hash(password: password) }
    }

    @Test func `a password of 72 bytes counts to its last byte`() throws {
        let longest = Array(repeating: UInt8(0x61), count: 72)
        let hash = try hash(password: longest)
        #expect(verify(password: longest, hash: hash))
        #expect(!verify(password: Array(longest.dropLast()), hash: hash))
    }
}
