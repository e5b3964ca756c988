import Credentials
import Message

/// The users of Digest, from a file in the format of Apache's htdigest: `user:realm:HASH`, where HASH is MD5(user:realm:password). A line with
/// four parts names another algorithm: `user:realm:SHA-256:HASH`. Empty lines and lines that start with `#` are skipped.
///
/// Who has such a hash can authenticate with it, without the password: the file is as secret as the passwords are. Lines of other realms are
/// skipped, because htdigest keeps several realms in one file. A file with an error in any line is not used at all.
package struct DigestFile: Sendable, Equatable {
    private var secrets: [String: [HashAlgorithm: Secret]] = [:]

    package init() {}

    package var users: [String] { secrets.keys.sorted() }
    /// Users whose password is there as MD5 alone.
    package var usersOfMD5Alone: [String] { users.filter { secrets[$0]?.keys.elementsEqual([.md5]) == true } }

    func secret(of user: String, _ algorithm: HashAlgorithm) -> Secret? { secrets[user]?[algorithm] }

    /// All hashes of a user. Empty: there is no such user.
    func secrets(of user: String) -> [HashAlgorithm: Secret] { secrets[user] ?? [:] }

    /// Whether any user can authenticate with the algorithm.
    func has(_ algorithm: HashAlgorithm) -> Bool { secrets.values.contains { $0[algorithm] != nil } }

    /// Reads every line, and returns all errors, not only the first.
    package static func parse(
        _ text: [UInt8], realm: String
    ) -> (file: DigestFile, errors: [DigestFileError]) {
        var file = DigestFile()
        var errors: [DigestFileError] = []
        for (index, line) in text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            do throws(DigestFileError.Problem) {
                guard let entry = try entry(of: line), entry.realm == realm else { continue }
                guard file.secrets[entry.user]?[entry.algorithm] == nil else { throw .repeatedUser }
                file.secrets[entry.user, default: [:]][entry.algorithm] = entry.secret
            } catch {
                errors.append(DigestFileError(line: index + 1, problem: error))
            }
        }
        return (file, errors)
    }

    private struct Entry {
        let user, realm: String
        let algorithm: HashAlgorithm
        let secret: Secret
    }

    /// Returns nil for an empty line or a comment.
    private static func entry(of line: ArraySlice<UInt8>) throws(DigestFileError.Problem) -> Entry? {
        let line = line.last == 0x0D ? line.dropLast() : line
        if line.first == UInt8(ascii: "#") || line.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { return nil }
        guard line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), let text = String(validating: line, as: UTF8.self) else {
            throw .notText
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3 || parts.count == 4 else { throw .wrongParts }
        guard !parts[0].isEmpty else { throw .noUser }
        let algorithm = parts.count == 3 ? DigestAlgorithm(.md5) : DigestAlgorithm(parts[2].utf8)
        guard let algorithm, !algorithm.isSession else { throw .unknownAlgorithm }
        let hash = parts[parts.count - 1].utf8
        guard hash.count == 2 * algorithm.hash.byteCount, hash.allSatisfy({ hexValue($0) != nil }) else {
            throw .wrongHash
        }
        return Entry(
            user: String(parts[0]), realm: String(parts[1]), algorithm: algorithm.hash,
            secret: Secret(hash.map(asciiLowercased)))
    }
}

/// What is wrong with a line of the users' file of Digest. It never contains text from that line.
package struct DigestFileError: Error, Sendable, Equatable, CustomStringConvertible {
    package let line: Int
    package let problem: Problem

    package enum Problem: Error, Sendable, Equatable, CaseIterable {
        case wrongParts, notText, noUser, repeatedUser, unknownAlgorithm, wrongHash
    }

    package init(line: Int, problem: Problem) {
        self.line = line
        self.problem = problem
    }

    package var description: String { "line \(line): \(text)" }

    private var text: String {
        switch problem {
        case .wrongParts: "expected user:realm:hash or user:realm:algorithm:hash"
        case .notText: "not UTF-8 text, or it contains control characters"
        case .noUser: "no user name before the colon"
        case .repeatedUser: "this user already has a hash of this algorithm"
        case .unknownAlgorithm: "unknown algorithm; MD5, SHA-256 and SHA-512-256 are supported"
        case .wrongHash: "the hash does not have the length of its algorithm; set it again with larder passwd --digest"
        }
    }
}
