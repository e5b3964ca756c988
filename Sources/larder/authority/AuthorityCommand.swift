import Glibc
import Provisioning
import Settings
import TLS

/// What `larder ca` does.
enum AuthorityVerb: String, CaseIterable {
    case create, show, rotate, issue, install

    var meaning: String {
        switch self {
        case .create: "make an authority: a root, whose key is destroyed, and an intermediate, which signs"
        case .show: "show fingerprints, days left and constraints"
        case .rotate: "replace the authority: prepare the next one, and use it with --finish once clients trust it"
        case .issue: "make an intermediate for another node with a root's key that was kept"
        case .install: "add the root to this machine's system store, or remove it with --undo"
        }
    }

    /// The options that it takes beside --config, --json and --help.
    var options: [Option] {
        switch self {
        case .create: [.out, .host, .days, .unconstrained, .node, .keepRootKey]
        case .show: [.out]
        case .rotate: [.out, .host, .days, .unconstrained, .finish, .undo]
        case .issue: [.out, .days, .node, .rootKey]
        case .install: [.out, .undo]
        }
    }

    /// All options of all verbs, each once, in their order.
    static let allOptions = allCases.flatMap(\.options).reduce(into: [Option]()) { all, option in
        if !all.contains(option) { all.append(option) }
    }
}

/// `larder ca create|show|rotate|issue|install`
func authorityCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    let verb = try verb(of: arguments)
    for option in AuthorityVerb.allOptions where arguments.has(option) && !verb.options.contains(option) {
        throw UsageError(
            "ca \(verb.rawValue) takes no \(option.long)",
            hint: "it takes \(verb.options.map(\.long).joined(separator: ", "))")
    }
    _ = ProcessMemory.hide()  // where it fails, keys are no worse off than in a program that does not ask
    let reading = readConfiguration(arguments)
    guard let configuration = reading.withoutAuthority else {
        for error in reading.errors { console.error("\(error)") }
        return ExitStatus.usage
    }
    let work = AuthorityWork(
        arguments: arguments, console: console, configuration: configuration,
        directory: arguments[.out].map { AuthorityDirectory($0) } ?? AuthorityDirectory(of: configuration),
        now: Int64(time(nil)))
    do {
        switch verb {
        case .create: try work.create()
        case .show: try work.show()
        case .rotate: try work.rotate()
        case .issue: try work.issue()
        case .install: try work.install()
        }
        return ExitStatus.done
    } catch let error as UsageError {
        throw error
    } catch {
        let failure = AuthorityFailure(error)
        console.error("larder: \(failure.message)")
        if let hint = failure.hint { console.error("        \(hint)") }
        return ExitStatus.failed
    }
}

private func verb(of arguments: Arguments) throws(UsageError) -> AuthorityVerb {
    let known = AuthorityVerb.allCases.map(\.rawValue)
    guard let word = arguments.words.first else {
        throw UsageError("ca needs one of \(known.joined(separator: ", "))", hint: "see larder help ca")
    }
    guard let verb = AuthorityVerb(rawValue: word) else { throw .unknown("word after ca:", word, among: known) }
    guard arguments.words.count == 1 else { throw UsageError("ca \(word) takes no \"\(arguments.words[1])\"") }
    return verb
}

/// What all verbs work with.
struct AuthorityWork {
    let arguments: Arguments
    let console: Console
    let configuration: Configuration
    let directory: AuthorityDirectory
    /// Seconds since 1970.
    let now: Int64

    /// The lifetime of new certificates. Apple's and other clients' limits concern leaves, which live for days.
    static let daysDefault: Int64 = 397

    func days() throws(UsageError) -> Int64 {
        Int64(try arguments.number(.days, in: 1...3650) ?? Int(Self.daysDefault))
    }
}

/// Why `larder ca` failed, and what to do.
struct AuthorityFailure: Error {
    var message: String
    var hint: String?

    init(_ message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
    }

    init(_ error: any Error) {
        switch error {
        case let failure as AuthorityFailure: self = failure
        case let error as AuthorityError: self.init(error.description, hint: error.hint)
        case let error as FileError: self.init(error.text, hint: AuthorityFailure.hint(error))
        default: self.init("\(error)")
        }
    }

    private static func hint(_ error: FileError) -> String? {
        switch error.code {
        case EACCES, EPERM, EROFS: "run it as another user, or choose another directory: --out DIR"
        case EEXIST: "nothing was overwritten; larder ca rotate replaces an authority"
        default: nil
        }
    }
}
