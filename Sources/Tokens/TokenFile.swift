package import Message

/// The tokens of a file: one per line, `name:digest`, then what else is said of it, with `#` comments and empty lines between.
///
///     builder:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 groups=ci,night expires=2027-01-01
///
/// The digest is SHA-256 of the token, in hexadecimal or base64url. A fast hash is enough, unlike for passwords: tokens are long random
/// strings, so nobody finds one by trying, however fast. A name may have several tokens, so that one can take over from another.
///
/// A file with an error in any line is not used at all: a token would be missing without notice.
package struct TokenFile: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        package let name: String
        package let groups: [String]
        /// From then on the token is refused. Nil: never.
        package let expiry: WallTime?

        package init(name: String, groups: [String] = [], expiry: WallTime? = nil) {
            self.name = name
            self.groups = groups
            self.expiry = expiry
        }
    }

    private var entries: [[UInt8]: Entry] = [:]

    package init() {}

    /// The shortest and the longest token that is looked up, in bytes. A shorter one could be guessed.
    package static let tokenBytes = 20...1024
    static let digestBytes = 32

    package var count: Int { entries.count }
    package var names: [String] { Set(entries.values.map(\.name)).sorted() }

    /// The entry of a token.
    ///
    /// Looking up a digest tells nothing of the others by its time: whoever tries tokens does not choose their digests.
    ///
    /// - Parameter digest: SHA-256 of the token.
    package func entry(_ digest: [UInt8]) -> Entry? { entries[digest] }

    /// Reads every line, and returns all errors, not only the first.
    package static func parse(_ text: [UInt8]) -> (file: TokenFile, errors: [TokenFileError]) {
        var file = TokenFile()
        var errors: [TokenFileError] = []
        for (index, line) in text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            do throws(TokenFileError.Problem) {
                guard let (digest, entry) = try parseLine(line) else { continue }
                guard file.entries.updateValue(entry, forKey: digest) == nil else { throw .repeatedToken }
            } catch {
                errors.append(TokenFileError(line: index + 1, problem: error))
            }
        }
        return (file, errors)
    }

    /// Returns nil for an empty line or a comment.
    private static func parseLine(
        _ line: ArraySlice<UInt8>
    ) throws(TokenFileError.Problem) -> (digest: [UInt8], entry: Entry)? {
        let line = line.last == 0x0D ? line.dropLast() : line
        if line.first == UInt8(ascii: "#") || line.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { return nil }
        guard let text = String(validating: line, as: UTF8.self), line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .notText
        }
        guard let colon = text.firstIndex(of: ":") else { throw .noColon }
        let name = String(text[..<colon])
        guard !name.isEmpty else { throw .noName }
        let words = text[text.index(after: colon)...].split(separator: " ")
        guard let digest = words.first.flatMap({ Self.digest($0.utf8) }) else { throw .notADigest }
        var groups: [String]?
        var expiry: WallTime?
        for word in words.dropFirst() {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            switch (parts[0], parts.count) {
            case ("groups", 2) where groups == nil:
                let names = parts[1].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
                guard names.allSatisfy({ !$0.isEmpty }) else { throw .emptyGroup }
                groups = names
            case ("expires", 2) where expiry == nil:
                guard let time = parseTimestamp(parts[1].utf8) else { throw .notADate }
                expiry = time
            default: throw .unknownWord
            }
        }
        return (digest, Entry(name: name, groups: groups ?? [], expiry: expiry))
    }

    private static func digest(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        guard text.count == 2 * digestBytes else {
            return decodeBase64URL(text).flatMap { $0.count == digestBytes ? $0 : nil }
        }
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in text {
            guard let digit = hexValue(character) else { return nil }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return bytes
    }

    /// The line of a new token, without a line end.
    package static func line(_ entry: Entry, digest: [UInt8]) -> String {
        var line = "\(entry.name):\(String(decoding: hexadecimal(digest), as: UTF8.self))"
        if !entry.groups.isEmpty { line += " groups=\(entry.groups.joined(separator: ","))" }
        if let expiry = entry.expiry {
            var text: [UInt8] = []
            appendTimestamp(expiry, to: &text)
            line += " expires=\(String(decoding: text, as: UTF8.self))Z"
        }
        return line
    }
}

/// What is wrong with a line of a file with tokens. It never contains text from that line.
package struct TokenFileError: Error, Sendable, Equatable, CustomStringConvertible {
    package let line: Int
    package let problem: Problem

    package init(line: Int, problem: Problem) {
        self.line = line
        self.problem = problem
    }

    package enum Problem: Error, Sendable, Equatable, CaseIterable {
        case noColon, notText, noName, notADigest, repeatedToken, unknownWord, emptyGroup, notADate
    }

    package var description: String { "line \(line): \(text)" }

    private var text: String {
        switch problem {
        case .noColon: "expected name:digest, and optionally groups=… and expires=…"
        case .notText: "not UTF-8 text, or it contains control characters"
        case .noName: "no name before the colon"
        case .notADigest:
            "expected SHA-256 of the token, in 64 hexadecimal digits or base64url; make one with larder passwd --token"
        case .repeatedToken: "this token is already in the file"
        case .unknownWord: "only groups=a,b and expires=DATE can follow the digest, once each"
        case .emptyGroup: "a group without a name"
        case .notADate: "expected a date such as 2027-01-01 or 2027-01-01T12:00:00Z"
        }
    }
}
