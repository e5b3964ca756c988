import Accounts
import EventLoop
import Glibc
import Server
import Settings
import TLS

/// Runs the process from its first line to its exit status. `main.swift` only calls this function: code there would belong to the main
/// actor, and every closure in it would be checked for that.
func larderMain() -> Never {
    signal(SIGPIPE, SIG_IGN)  // if a reader has left (`larder stats | head -1`), write(2) returns an error instead
    signal(SIGXFSZ, SIG_IGN)  // if a file must not grow (`ulimit -f`), write(2) returns an error, as on a full disk
    CryptoLibrary.keepUntilProcessEnds()  // `exit` does not wait for threads that use it
    ThreadMemory.configure()
    evaluatePACIfAsked()
    Diagnostics.configure(LogSettings())
    exit(run(Array(CommandLine.arguments.dropFirst()), Console.standard))
}

/// Runs one command line and returns its exit status: 0 done, 1 failed, 2 usage or configuration error.
func run(_ words: [String], _ console: Console) -> Int32 {
    do throws(UsageError) {
        return try dispatch(words, console)
    } catch {
        console.error("larder: \(error.message)")
        if let hint = error.hint { console.error("        \(hint)") }
        return ExitStatus.usage
    }
}

/// The exit statuses. Scripts rely on them.
enum ExitStatus {
    static let done: Int32 = 0
    static let failed: Int32 = 1
    /// Usage or configuration error.
    static let usage: Int32 = 2
}

private func dispatch(_ words: [String], _ console: Console) throws(UsageError) -> Int32 {
    guard let first = words.first else {
        console.error(helpText)
        return ExitStatus.usage
    }
    switch first {
    case "--help", "-h", "help": return try showHelp(words.dropFirst(), console)
    case "--version": return versionCommand(Arguments(), console)
    default: break
    }
    guard let command = Command(rawValue: first) else { throw .unknown("command", first, among: Command.names) }
    let arguments = try Arguments(words.dropFirst(), for: command)
    if arguments.has(.help) {
        console.print(helpText(of: command))
        return ExitStatus.done
    }
    return try command.run(arguments, console)
}

private func showHelp(_ words: ArraySlice<String>, _ console: Console) throws(UsageError) -> Int32 {
    guard let name = words.first else {
        console.print(helpText)
        return ExitStatus.done
    }
    guard let command = Command(rawValue: name) else { throw .unknown("command", name, among: Command.names) }
    console.print(helpText(of: command))
    return ExitStatus.done
}

extension Command {
    fileprivate func run(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
        switch self {
        case .serve: return try serveCommand(arguments, console)
        case .check: return try checkCommand(arguments, console)
        case .purge: return try purgeCommand(arguments, console)
        case .stats: return try statsCommand(arguments, console)
        case .passwd: return try passwdCommand(arguments, console)
        case .version: return versionCommand(arguments, console)
        case .warm: return try warmCommand(arguments, console)
        case .ls: return try listCommand(arguments, console)
        case .du: return try usageCommand(arguments, console)
        case .top: return try topCommand(arguments, console)
        case .explain: return try explainCommand(arguments, console)
        case .verify: return try verifyCommand(arguments, console)
        case .export: return try exportCommand(arguments, console)
        case .import: return try importCommand(arguments, console)
        case .budget: return try budgetCommand(arguments, console)
        case .session: return try sessionCommand(arguments, console)
        case .credential: return try credentialCommand(arguments, console)
        case .learn: return try learnCommand(arguments, console)
        case .recipe: return try recipeCommand(arguments, console)
        case .ca: return try authorityCommand(arguments, console)
        case .doctor: return try doctorCommand(arguments, console)
        }
    }
}
