import Accounts
package import Cookies
import EventLoop
import Glibc
import Message
import PublicSuffixes
import Secrets
import Texts

/// A cookie jar that all workers use, and the file that keeps it.
///
/// Workers take the lock of the jar alone, for as long as it takes to find a few cookies. The lock of the file is held while the file is read or
/// written, and never by a worker.
package final class SharedCookieJar: Sendable {
    package let name: String
    /// Nil: the jar lives as long as the process.
    package let path: String?

    /// What has happened since the jar was made.
    package struct Tally: Sendable {
        /// Requests to origins that carried cookies of the jar.
        package fileprivate(set) var sent = 0
        /// Cookies that came into the jar, or replaced or removed one.
        package fileprivate(set) var set = 0
        package fileprivate(set) var rejected: [CookieRejection: Int] = [:]
    }

    private struct State {
        var jar = CookieJar()
        var tally = Tally()
    }
    private let state = Locked(State())

    private struct FileState {
        var file: PrivateFile
        /// `CookieJar.changedAt` of what is in the file.
        var savedAt: UInt64 = 0
        /// What is in the file is not known, so it is not replaced.
        var isUnreadable = false
        /// What was said about the file last: it is said once.
        var complaint: String?
    }
    private let file: Locked<FileState>?

    init(_ name: String, file path: String?) {
        self.name = name
        self.path = path
        file = path.map { Locked(FileState(file: PrivateFile(path: $0, bytesMax: CookieLimits.fileBytesMax))) }
    }

    // MARK: requests

    /// The field `Cookie` of a request. Nil: the request has none.
    ///
    /// - Parameter lines: the client's cookies that go out as well.
    func field(
        for origin: CookieOrigin, beside lines: [ArraySlice<UInt8>], now: WallTime
    ) -> CookieJar.Field? {
        state.withLock { state in
            let field = state.jar.field(for: origin, beside: lines, now: now)
            if let field, field.count > 0 { state.tally.sent += 1 }
            return field
        }
    }

    /// Takes a `Set-Cookie` line of a response.
    func set(
        _ line: ArraySlice<UInt8>, from origin: CookieOrigin, now: WallTime
    ) -> Result<Cookie, CookieRejection> {
        // Parsed before the lock is taken.
        let parsed = Result { () throws(CookieRejection) in try SetCookie(line) }
        return state.withLock { state in
            let result = parsed.flatMap { line in
                Result { () throws(CookieRejection) in
                    try state.jar.set(line, from: origin, now: now, isPublicSuffix: PublicSuffixList.system.contains)
                }
            }
            switch result {
            case .success: state.tally.set += 1
            case .failure(let rejection): state.tally.rejected[rejection, default: 0] += 1
            }
            return result
        }
    }

    // MARK: seen from outside

    package var count: Int { state.withLock { $0.jar.count } }
    package var tally: Tally { state.withLock { $0.tally } }

    /// How many cookies a request would carry.
    func count(for origin: CookieOrigin, now: WallTime) -> Int {
        state.withLock { $0.jar.cookies(for: origin, now: now).count }
    }

    /// Forgets all cookies, and empties the file. Blocks.
    ///
    /// - Returns: why the file could not be written. Nil: there is nothing to say.
    package func clear() -> String? {
        guard let file else {
            state.withLock { $0.jar.removeAll() }
            return nil
        }
        return file.withLock { file in
            state.withLock { $0.jar.removeAll() }
            // Also if it could not be read: nobody wants what is in it any more.
            return save(&file)
        }
    }

    // MARK: the file

    /// Reads the file if somebody else has changed it. Blocks.
    func look() { file?.withLock { look(&$0) } }

    /// Reads the file if somebody else has changed it, and saves the jar if it has changed. Blocks.
    func tend() {
        file?.withLock { file in
            // Before the look: what changes afterwards is saved the next time, when somebody has looked again.
            let changedAt = state.withLock { $0.jar.changedAt }
            look(&file)
            guard !file.isUnreadable, changedAt != file.savedAt else { return }
            _ = save(&file)
        }
    }

    private func look(_ file: inout FileState) {
        do throws(ReadFailure) {
            if let content = try file.file.readIfChanged() { take(content, &file) }
        } catch .system(ENOENT) {
            // It is made when there is something to save.
            file.isUnreadable = false
        } catch {
            file.isUnreadable = true
            complain(
                "\(file.file.path) cannot be read: \(error.text); it is left as it is, and the jar is not saved", &file)
        }
    }

    private func save(_ file: inout FileState) -> String? {
        let now = WallTime(ticks: readWallTicks())
        let (cookies, changedAt) = state.withLock { ($0.jar.cookies(now: now), $0.jar.changedAt) }
        if let code = file.file.replace(with: CookieFile.text(cookies)) {
            let problem = "\(file.file.path) cannot be written: \(systemErrorText(code))"
            complain(problem, &file)
            return problem
        }
        file.savedAt = changedAt
        file.isUnreadable = false
        file.complaint = nil
        Diagnostics.debug("cookie jar \(name): saved \(cookies.count) cookies in \(file.file.path)")
        return nil
    }

    private func take(_ content: PrivateFile.Content, _ file: inout FileState) {
        let read = CookieFile(content.bytes, isPublicSuffix: PublicSuffixList.system.contains)
        let now = WallTime(ticks: readWallTicks())
        let savedAt = file.savedAt
        state.withLock { $0.jar.replace(with: read.cookies, savedAt: savedAt, now: now) }
        file.isUnreadable = false
        file.complaint = nil
        let path = file.file.path
        Diagnostics.info("cookie jar \(name): read \(read.cookies.count) cookies from \(path)")
        for (line, fault) in read.faults.prefix(SharedCookieJar.faultsShownMax) {
            Diagnostics.warning("cookie jar \(name): \(path):\(line): \(fault.text); the line is skipped")
        }
        let rest = read.faults.count - SharedCookieJar.faultsShownMax
        if rest > 0 { Diagnostics.warning("cookie jar \(name): \(path): \(rest) more lines are skipped") }
        if content.isExposed {
            Diagnostics.warning(
                "cookie jar \(name): others can read \(path), and act with what it has: chmod 600 \(shellWord(path))")
        }
    }

    private static let faultsShownMax = 10

    private func complain(_ text: String, _ file: inout FileState) {
        guard file.complaint != text else { return }
        file.complaint = text
        Diagnostics.warning("cookie jar \(name): \(text)")
    }
}
