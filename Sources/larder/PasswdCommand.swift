import Authentication
import Glibc
import Message
import Passwords
import Provisioning
import TLS

/// `larder passwd FILE USER [--delete] [--digest [--realm NAME]]`, and with `--token` a token in place of a password
func passwdCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard arguments.words.count == 2 else {
        throw UsageError("passwd takes a file and a user", hint: "larder passwd \(Command.passwd.synopsis)")
    }
    let (path, user) = (arguments.words[0], arguments.words[1])
    guard isUserName(user) else {
        throw UsageError("a user name cannot be empty or contain colons or control characters")
    }
    if arguments.has(.token) { return try tokenCommand(path, user, arguments, console) }
    for option in [Option.groups, .expires] where arguments.has(option) {
        throw UsageError("\(option.long) is for tokens", hint: "add --token")
    }
    do throws(PasswdFailure) {
        let text = try currentText(path, mustExist: arguments.has(.delete))
        if arguments.has(.digest) {
            let realm = arguments[.realm] ?? DigestSettings().realm
            let secrets = arguments.has(.delete) ? [] : try digestSecrets(of: user, realm, try newPassword(of: user))
            guard let rest = digestFile(text, settingLinesOf: user, realm, to: secrets) else {
                throw PasswdFailure("\(path) has no user \(user) of the realm \(realm)")
            }
            try write(rest, path)
            console.print(
                secrets.isEmpty ? "deleted \(user) from \(path)" : "set the password of \(user) in \(path)")
        } else if arguments.has(.delete) {
            guard let rest = htpasswd(text, settingLineOf: user, to: nil) else {
                throw PasswdFailure("\(path) has no user \(user)")
            }
            try write(rest, path)
            console.print("deleted \(user) from \(path)")
        } else {
            let hash = try hashed(try newPassword(of: user))
            try write(htpasswd(text, settingLineOf: user, to: hash) ?? text, path)
            console.print("set the password of \(user) in \(path)")
        }
        return ExitStatus.done
    } catch {
        console.error("larder: \(error.message)")
        return ExitStatus.failed
    }
}

struct PasswdFailure: Error, Equatable {
    var message: String
    init(_ message: String) { self.message = message }
}

/// RFC 7617 §2: a colon would end the user-id.
func isUserName(_ name: String) -> Bool {
    !name.isEmpty && !name.hasPrefix("#")
        && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") }
}

/// The text of an htpasswd file in which the line of a user is replaced or appended, or removed if `hash` is nil.
///
/// All other lines stay as they are, including comments. Returns nil if a line should be removed and there is none.
func htpasswd(_ text: [UInt8], settingLineOf user: String, to hash: String?) -> [UInt8]? {
    let start = Array("\(user):".utf8)
    var lines = text.split(separator: 0x0A, omittingEmptySubsequences: false)
    if lines.last?.isEmpty == true { lines.removeLast() }
    let index = lines.firstIndex { $0.starts(with: start) }
    lines.removeAll { $0.starts(with: start) }
    if let hash {
        lines.insert(Array("\(user):\(hash)".utf8)[...], at: index ?? lines.endIndex)
    } else if index == nil {
        return nil
    }
    return lines.flatMap { $0 + [0x0A] }
}

/// What a file of Digest keeps of a password (RFC 7616 §3.4.2): the lines of a user, without the name and the realm.
private func digestSecrets(of user: String, _ realm: String, _ password: [UInt8]) throws(PasswdFailure) -> [String] {
    guard !password.isEmpty else { throw PasswdFailure("the password is empty") }
    guard !realm.isEmpty, isUserName(realm) else {
        throw PasswdFailure("a realm cannot be empty or contain colons or control characters")
    }
    var secrets: [String] = []
    for (function, name) in [(HashFunction.sha256, "SHA-256:"), (.md5, "")] {
        // A system that forbids MD5 has the other one.
        guard let digest = Digest.hash(function, Array("\(user):\(realm):".utf8) + password) else { continue }
        secrets.append(name + String(decoding: hexadecimal(digest), as: UTF8.self))
    }
    return secrets
}

/// The text of a file of Digest in which the lines of a user of a realm are replaced, or removed if there are no secrets. Returns nil if they
/// should be removed and there are none.
func digestFile(_ text: [UInt8], settingLinesOf user: String, _ realm: String, to secrets: [String]) -> [UInt8]? {
    let start = Array("\(user):\(realm):".utf8)
    var lines = text.split(separator: 0x0A, omittingEmptySubsequences: false)
    if lines.last?.isEmpty == true { lines.removeLast() }
    let index = lines.firstIndex { $0.starts(with: start) }
    guard !secrets.isEmpty || index != nil else { return nil }
    lines.removeAll { $0.starts(with: start) }
    lines.insert(
        contentsOf: secrets.map { (start + Array($0.utf8))[...] }, at: min(index ?? lines.endIndex, lines.endIndex))
    return lines.flatMap { $0 + [0x0A] }
}

func currentText(_ path: String, mustExist: Bool) throws(PasswdFailure) -> [UInt8] {
    do throws(FileError) {
        return try readFile(path)
    } catch {
        if error.code == ENOENT, !mustExist { return [] }
        throw PasswdFailure(error.text)
    }
}

func write(_ text: [UInt8], _ path: String) throws(PasswdFailure) {
    do throws(FileError) {
        try replaceFile(path, with: text)
    } catch {
        throw PasswdFailure(error.text)
    }
}

private func hashed(_ password: [UInt8]) throws(PasswdFailure) -> String {
    do throws(PasswordError) {
        return try hash(password: password)
    } catch {
        switch error {
        case .empty: throw PasswdFailure("the password is empty")
        case .tooLong: throw PasswdFailure("the password is longer than 72 bytes, and bcrypt would ignore the rest")
        case .containsNUL: throw PasswdFailure("the password contains a NUL byte")
        case .unsupported: throw PasswdFailure("this system's crypt(3) has no bcrypt")
        }
    }
}

/// On a terminal, asks twice without echo. Otherwise takes the first line of standard input.
private func newPassword(of user: String) throws(PasswdFailure) -> [UInt8] {
    do throws(PasswordInputFailure) {
        guard isInputTerminal else { return try readLineOfInput() }
        let first = try promptWithoutEcho("New password for \(user): ")
        guard try promptWithoutEcho("Again: ") == first else {
            throw PasswordInputFailure("the two differ")
        }
        return first
    } catch {
        throw PasswdFailure(isInputTerminal ? "\(error.message); nothing was changed" : error.message)
    }
}
