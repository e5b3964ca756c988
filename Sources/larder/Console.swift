import Glibc

/// Where a command's words go; tests give it arrays in place of descriptors.
struct Console: Sendable {
    /// One line, or several, to standard output.
    var print: @Sendable (String) -> Void
    /// To standard error.
    var error: @Sendable (String) -> Void

    static let standard = Console(
        print: { writeLine($0, to: STDOUT_FILENO) }, error: { writeLine($0, to: STDERR_FILENO) })

    private static func writeLine(_ text: String, to descriptor: CInt) {
        var bytes = Array(text.utf8) + [0x0A]
        // Whoever reads has left: nothing more to say, and nobody to say it to.
        if writeAll(&bytes, to: descriptor) != nil { exit(ExitStatus.failed) }
    }
}

/// Writes every byte; the `errno` of what stopped it, nil when all are out.
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
