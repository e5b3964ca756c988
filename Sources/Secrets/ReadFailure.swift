import Glibc

/// Why a secret could not be read.
package enum ReadFailure: Error, Equatable, Sendable {
    /// The kernel's error number for a file, a descriptor or the start of a program.
    case system(CInt)
    /// The path leads to something else than a file.
    case notAFile
    /// The environment does not have the variable.
    case notSet
    /// The first line is longer than the limit.
    case tooLong
    /// The whole file is longer than the limit.
    case fileTooLong
    /// The program ended with this status, which is not 0.
    case exited(CInt)
    /// The program was ended by this signal.
    case killed(CInt)
    /// The program did not end in time. It was ended.
    case timedOut

    /// What to say after "cannot be read: ".
    package var text: String {
        switch self {
        case .system(let code): unsafe String(cString: strerror(code))
        case .notAFile: "it is not a regular file"
        case .notSet: "it is not set"
        case .tooLong: "its first line is too long"
        case .fileTooLong: "it is too long"
        case .exited(let status): "it ended with status \(status)"
        case .killed(let signal): "it was ended by signal \(signal)"
        case .timedOut: "it did not end in time"
        }
    }
}

/// Reads up to the first line feed, which belongs to the result, or to the end. Blocks.
func readFirstLine(_ fd: CInt, bytesMax: Int) throws(ReadFailure) -> [UInt8] {
    var line: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(fd, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw .system(errno) }
        let end = buffer[..<count].firstIndex(of: UInt8(ascii: "\n"))
        line += buffer[..<(end.map { $0 + 1 } ?? count)]
        guard line.count - (end == nil ? 0 : 1) <= bytesMax else { throw .tooLong }
        if end != nil || count == 0 { return line }
    }
}
