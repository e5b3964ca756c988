import EventLoop
import Glibc
import Secrets

/// An error of the file system: which file, and what the kernel said.
package struct FileError: Error, Equatable {
    package var path: String
    package var code: CInt

    package init(path: String, code: CInt) {
        self.path = path
        self.code = code
    }

    package var text: String { "\(path): \(systemErrorText(code))" }
}

package func fileExists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

/// Reads all bytes of a file. Throws `EFBIG` if the file is longer than `bytesMax`.
package func readFile(_ path: String, bytesMax: Int = 16 << 20) throws(FileError) -> [UInt8] {
    let raw = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard raw >= 0 else { throw FileError(path: path, code: errno) }
    let file = Descriptor(adopting: raw)
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while true {
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(file.rawValue, $0.baseAddress, $0.count) }
        if count < 0 && errno == EINTR { continue }
        guard count >= 0 else { throw FileError(path: path, code: errno) }
        if count == 0 { return bytes }
        bytes += buffer[..<count]
        guard bytes.count <= bytesMax else { throw FileError(path: path, code: EFBIG) }
    }
}

/// Replaces the file at `path` in one step: a reader sees the old text or the new one, and never a part.
///
/// If the file existed, its mode is kept. A new file is readable and writable for its owner only.
package func replaceFile(_ path: String, with text: [UInt8]) throws(FileError) {
    var status = stat()
    let mode = unsafe stat(path, &status) == 0 ? status.st_mode & 0o777 : 0o600
    if let code = Secrets.replaceFile(path, with: text, mode: mode) { throw FileError(path: path, code: code) }
}

/// Creates a directory and the directories above it. An error will show when the directory is used.
package func makeDirectories(_ path: String, mode: UInt32) {
    var made = path.hasPrefix("/") ? "/" : ""
    for part in path.split(separator: "/") {
        made += part
        _ = unsafe mkdir(made, mode)
        made += "/"
    }
}

/// The value of an environment variable. Returns nil if it is not set or empty.
package func environmentVariable(_ name: String) -> String? {
    guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
    return unsafe String(cString: value)
}

/// The bytes of a file that a setting names.
///
/// - Parameter key: the setting.
func contents(of path: String, key: String) throws(ProvisioningFault) -> [UInt8] {
    do throws(FileError) { return try readFile(path) } catch {
        throw ProvisioningFault(key, "\(path) cannot be read: \(systemErrorText(error.code))")
    }
}

/// The first line of a file that a setting names, without its end.
func firstLine(_ path: String, key: String) throws(ProvisioningFault) -> [UInt8] {
    var line = try contents(of: path, key: key).prefix { $0 != UInt8(ascii: "\n") }
    if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
    return Array(line)
}
