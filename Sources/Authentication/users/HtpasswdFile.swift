/// The users of an htpasswd file: `name:hash` per line, `#` comments and empty lines between.
///
/// Only hashes that are slow to compute are accepted. A file with an error in any line is not used at all: otherwise a user would be
/// missing without notice, or a plain-text password would go unseen.
package struct HtpasswdFile: Sendable, Equatable {
    private var hashes: [String: String] = [:]

    package init() {}

    /// Returns nil if the user does not exist. Then verify against a hash that nobody has, so that the time reveals nothing.
    package func hash(for user: String) -> String? { hashes[user] }
    package var count: Int { hashes.count }
    package var users: [String] { hashes.keys.sorted() }

    /// Reads every line, and returns all errors, not only the first.
    ///
    /// - Parameter allowsWeak: whether hashes that can be guessed fast are accepted (`WeakHash`).
    package static func parse(
        _ text: [UInt8], allowsWeak: Bool = false
    ) -> (file: HtpasswdFile, errors: [HtpasswdError]) {
        var file = HtpasswdFile()
        var errors: [HtpasswdError] = []
        for (index, line) in text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            do throws(HtpasswdError) {
                guard let (user, hash) = try parseLine(line, number: index + 1, allowsWeak: allowsWeak) else {
                    continue
                }
                guard file.hashes[user] == nil else { throw HtpasswdError(line: index + 1, problem: .repeatedUser) }
                file.hashes[user] = hash
            } catch {
                errors.append(error)
            }
        }
        return (file, errors)
    }

    /// Returns nil for an empty line or a comment.
    private static func parseLine(
        _ line: ArraySlice<UInt8>, number: Int, allowsWeak: Bool
    ) throws(HtpasswdError) -> (user: String, hash: String)? {
        let line = line.last == 0x0D ? line.dropLast() : line
        if line.first == UInt8(ascii: "#") || line.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { return nil }
        let parts = line.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count >= 2 else { throw HtpasswdError(line: number, problem: .noColon) }
        guard let user = String(validating: parts[0], as: UTF8.self),
            let hash = String(validating: parts[1], as: UTF8.self),
            line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { throw HtpasswdError(line: number, problem: .notText) }
        guard !user.isEmpty else { throw HtpasswdError(line: number, problem: .noUser) }
        if !(allowsWeak && WeakHash.isOne(hash)), let problem = problem(withHash: hash) {
            throw HtpasswdError(line: number, problem: problem)
        }
        return (user, hash)
    }

    private static func problem(withHash hash: String) -> HtpasswdError.Problem? {
        if ["$2y$", "$2b$", "$2a$", "$5$", "$6$", "$y$"].contains(where: hash.hasPrefix) {
            return hash.utf8.count >= 20 ? nil : .truncatedHash
        }
        if hash.hasPrefix("$apr1$") || hash.hasPrefix("$1$") { return .md5 }
        if hash.hasPrefix("{SHA}") || hash.hasPrefix("{SSHA}") { return .sha1 }
        if hash.hasPrefix("$") { return .unknownHash }
        return .plaintext
    }
}

/// What is wrong with a line of an htpasswd file. It never contains text from that line.
package struct HtpasswdError: Error, Sendable, Equatable, CustomStringConvertible {
    package let line: Int
    package let problem: Problem

    package init(line: Int, problem: Problem) {
        self.line = line
        self.problem = problem
    }

    package enum Problem: Sendable, Equatable, CaseIterable {
        case noColon, notText, noUser, repeatedUser, truncatedHash, md5, sha1, unknownHash, plaintext
    }

    package var description: String { "line \(line): \(text)" }

    private var text: String {
        switch problem {
        case .noColon: "expected name:hash"
        case .notText: "not UTF-8 text, or it contains control characters"
        case .noUser: "no user name before the colon"
        case .repeatedUser: "this user is already in the file"
        case .truncatedHash: "the hash is cut off"
        case .md5:
            "MD5 hashes ($apr1$, $1$) can be guessed too fast; set the password again with larder passwd, or htpasswd -B"
        case .sha1: "SHA-1 hashes can be guessed too fast; set the password again with larder passwd, or htpasswd -B"
        case .unknownHash:
            "unknown kind of hash; bcrypt ($2y$), yescrypt ($y$), SHA-512 ($6$) and SHA-256 ($5$) are supported"
        case .plaintext: "a plain-text or DES password; set it again with larder passwd, or htpasswd -B"
        }
    }
}
