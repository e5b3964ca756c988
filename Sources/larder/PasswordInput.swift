import Glibc
import Texts

/// Why a password could not be read.
struct PasswordInputFailure: Error, Equatable {
    var message: String
    init(_ message: String) { self.message = message }
}

var isInputTerminal: Bool { isatty(STDIN_FILENO) == 1 }

/// The password of a user. On a terminal, asks for it without echo. Otherwise takes the first line of standard input.
func password(of user: String) throws(PasswordInputFailure) -> [UInt8] {
    isInputTerminal ? try promptWithoutEcho("Password of \(lineText(user)): ") : try readLineOfInput()
}

/// Asks on the terminal itself, because standard output may be a file. The echo is on again afterwards, even after an interrupt.
func promptWithoutEcho(_ question: String) throws(PasswordInputFailure) -> [UInt8] {
    var saved = termios()
    guard unsafe tcgetattr(STDIN_FILENO, &saved) == 0 else {
        throw PasswordInputFailure("the terminal does not answer")
    }
    var silent = saved
    silent.c_lflag &= ~tcflag_t(ECHO)
    silent.c_lflag |= tcflag_t(ECHONL)
    // Ctrl-C is read as a byte here, so that the echo is always turned on again before the process ends.
    silent.c_lflag &= ~tcflag_t(ISIG)
    guard unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) == 0 else {
        throw PasswordInputFailure("the echo of this terminal cannot be turned off")
    }
    defer { _ = unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved) }
    var bytes = Array(question.utf8)
    _ = writeAll(&bytes, to: STDERR_FILENO)
    let line = try readLineOfInput()
    guard !line.contains(0x03) else { throw PasswordInputFailure("interrupted") }
    return line
}

/// Reads byte by byte, so that the text behind the line is left for the next reader.
func readLineOfInput() throws(PasswordInputFailure) -> [UInt8] {
    var line: [UInt8] = []
    while line.count <= 4096 {
        var byte: UInt8 = 0
        let count = unsafe read(STDIN_FILENO, &byte, 1)
        if count < 0 && errno == EINTR { continue }
        if count <= 0 || byte == 0x0A { return line.last == 0x0D ? line.dropLast() : line }
        line.append(byte)
    }
    throw PasswordInputFailure("the password is too long")
}
