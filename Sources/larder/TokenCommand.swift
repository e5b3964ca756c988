import CLarder
import Message
import Provisioning
import TLS
import Tokens

/// `larder passwd --token FILE NAME [--groups A,B] [--expires DATE] [--delete]`: makes a token, prints it once, and adds its hash to the file.
///
/// What is there stays: a name may have several tokens, so that a new one can take over before the old one goes.
func tokenCommand(
    _ path: String, _ name: String, _ arguments: Arguments, _ console: Console
) throws(UsageError) -> Int32 {
    let groups = arguments[.groups]?.split(separator: ",", omittingEmptySubsequences: false).map(String.init) ?? []
    guard groups.allSatisfy(isGroupName) else {
        throw UsageError("--groups takes names with commas between, without spaces", hint: "--groups ci,night")
    }
    var expiry: WallTime?
    if let text = arguments[.expires] {
        guard let time = parseTimestamp(text.utf8) else {
            throw UsageError("--expires takes a date", hint: "--expires 2027-01-01")
        }
        expiry = time
    }
    do throws(PasswdFailure) {
        let text = try currentText(path, mustExist: arguments.has(.delete))
        if let error = TokenFile.parse(text).errors.first { throw PasswdFailure("\(path): \(error)") }
        if arguments.has(.delete) {
            guard let rest = removing(name, from: text) else { throw PasswdFailure("\(path) has no token of \(name)") }
            try write(rest, path)
            console.print("deleted the tokens of \(name) from \(path)")
            return ExitStatus.done
        }
        let token = try newToken()
        let line = TokenFile.line(
            TokenFile.Entry(name: name, groups: groups, expiry: expiry), digest: Digest.sha256(token.utf8))
        try write(text + (text.isEmpty || text.last == 0x0A ? [] : [0x0A]) + Array("\(line)\n".utf8), path)
        console.print(token)
        return ExitStatus.done
    } catch {
        console.error("larder: \(error.message)")
        return ExitStatus.failed
    }
}

private func isGroupName(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
}

/// The text without the lines of a name. Nil if there are none. Comments and other lines stay as they are.
private func removing(_ name: String, from text: [UInt8]) -> [UInt8]? {
    var lines = text.split(separator: 0x0A, omittingEmptySubsequences: false)
    if lines.last?.isEmpty == true { lines.removeLast() }
    let rest = lines.filter { !$0.starts(with: "\(name):".utf8) }
    return rest.count == lines.count ? nil : rest.flatMap { $0 + [0x0A] }
}

/// 256 random bits. The prefix lets people and scanners of source texts see what it is; the rest needs no escaping in a URL.
private func newToken() throws(PasswdFailure) -> String {
    var bytes = [UInt8](repeating: 0, count: 32)
    guard unsafe clarder_random(&bytes, bytes.count) == 0 else {
        throw PasswdFailure("the system returned no random numbers")
    }
    return "larder_" + String(decoding: encodeBase64URL(bytes), as: UTF8.self)
}
