import Glibc

/// The output of a command. Tests replace it with functions that collect the text.
struct Console: Sendable {
    /// Prints one or more lines to standard output.
    var print: @Sendable (String) -> Void
    /// Prints one or more lines to standard error.
    var error: @Sendable (String) -> Void

    static let standard = Console(
        print: { writeLine($0, to: STDOUT_FILENO) }, error: { writeLine($0, to: STDERR_FILENO) })

    private static func writeLine(_ text: String, to descriptor: CInt) {
        var bytes = Array(text.utf8) + [0x0A]
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
