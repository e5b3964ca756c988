import Glibc
import Texts

/// The output of a command. Tests replace it with functions that collect the text.
///
/// Nothing that is printed acts on a terminal (`screenText`), whoever it comes from. What is to stay within a line goes through `lineText` before.
struct Console: Sendable {
    /// Prints one or more lines to standard output.
    var print: @Sendable (String) -> Void
    /// Prints one or more lines to standard error.
    var error: @Sendable (String) -> Void

    static let standard = Console(
        print: { writeLine($0, to: STDOUT_FILENO) }, error: { writeLine($0, to: STDERR_FILENO) })

    /// Empties the terminal that is standard output.
    static func clearScreen() {
        var bytes = Array("\u{1B}[H\u{1B}[J".utf8)
        if writeAll(&bytes, to: STDOUT_FILENO) != nil { exit(ExitStatus.failed) }
    }

    private static func writeLine(_ text: String, to descriptor: CInt) {
        var bytes = Array(screenText(text).utf8) + [0x0A]
        // The reader has closed its end, so nobody could read an error message.
        if writeAll(&bytes, to: descriptor) != nil { exit(ExitStatus.failed) }
    }
}

/// Writes all bytes. Returns the `errno` of the call that failed, or nil if all bytes were written.
func writeAll(_ bytes: inout [UInt8], to descriptor: CInt) -> CInt? {
    var written = 0
    while written < bytes.count {
        let count = unsafe bytes.withUnsafeBytes {
            unsafe write(descriptor, $0.baseAddress! + written, $0.count - written)
        }
        if count < 0 && errno != EINTR { return errno }
        written += max(0, count)
    }
    return nil
}
