import Admin
import Access
import EventLoop
import Message
import Provisioning
import Settings

/// The task of `larder warm`.
struct WarmPlan {
    /// What to fetch, in the given order. Pages are also scanned for references.
    var targets: [WarmTarget] = []
    /// The fields of every request in their order, with their names as given.
    var fields: [(name: String, value: String)] = []
    /// The number of fetches at a time.
    var jobs = 4
    /// The number of further attempts after a failure that may be temporary.
    var retries = 2
    /// The pause before the first further attempt. Each later pause is twice as long.
    var pause: Duration = .milliseconds(250)

    static let jobsBounds = 1...64
    static let retriesBounds = 0...20
    /// How deep stylesheets that import stylesheets, and frames within frames, are followed.
    static let depthMax = 5
    /// The most URLs that are fetched for all pages together.
    static let targetsMax = 100_000
}

/// One URL to fetch.
struct WarmTarget: Sendable {
    /// The URL as it was given, for messages.
    var text: String
    /// Nil if the text is not an absolute http or https URL.
    var target: TargetURI?
    var kind: PageReference.Kind = .other
    /// How many pages and stylesheets lead to the URL. Zero if it was given on the command line or in a file.
    var depth = 0

    init(_ text: String, kind: PageReference.Kind = .other) {
        self.text = text
        // What a user types beyond ASCII in a path or a query, as clients send it.
        let bytes = Array(text.utf8)
        let path = startOfPath(in: bytes)
        target = TargetURI(bytes[..<path] + (encodingBeyondASCII(bytes[path...]) ?? Array(bytes[path...])))
        self.kind = kind
    }

    init(_ reference: PageReference, depth: Int) {
        text = String(decoding: reference.target.normalised, as: UTF8.self)
        target = reference.target
        kind = reference.kind
        self.depth = depth
    }
}

/// Makes the plan from a command line: words, options, and the file of `--from`.
func warmPlan(_ arguments: Arguments) throws(UsageError) -> WarmPlan {
    var plan = WarmPlan()
    if let jobs = try arguments.number(.jobs, in: WarmPlan.jobsBounds) { plan.jobs = jobs }
    if let retries = try arguments.number(.retries, in: WarmPlan.retriesBounds) { plan.retries = retries }
    plan.fields = try warmFields(arguments)
    plan.targets = arguments.words.map { WarmTarget($0) } + arguments.all(.page).map { WarmTarget($0, kind: .page) }
    for target in plan.targets where target.target == nil {
        throw UsageError("\"\(target.text)\" is not an absolute URL such as http://example.org/file")
    }
    if let file = arguments[.from] { plan.targets += try listedTargets(file) }
    guard arguments[.from] != nil || !plan.targets.isEmpty else {
        throw UsageError("warm needs a URL, --from or --page", hint: "larder warm \(Command.warm.synopsis)")
    }
    return plan
}

private func listedTargets(_ file: String) throws(UsageError) -> [WarmTarget] {
    do throws(FileError) {
        return warmList(try readFile(file == "-" ? "/dev/stdin" : file, bytesMax: 64 << 20))
    } catch {
        throw UsageError("--from \(error.text)")
    }
}

/// Parses a list with one URL per line. Empty lines, lines that begin with "#", and a byte order mark at the beginning are ignored.
func warmList(_ text: [UInt8]) -> [WarmTarget] {
    let text = text.starts(with: [0xEF, 0xBB, 0xBF]) ? text.dropFirst(3) : text[...]
    return text.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }).compactMap { line in
        let line = trimOWS(line)
        return line.isEmpty || line.first == UInt8(ascii: "#") ? nil : WarmTarget(String(decoding: line, as: UTF8.self))
    }
}

/// The fields of every request: the usual ones unless `-H` names them, then those of `-H`. A field without a value is left out.
private func warmFields(_ arguments: Arguments) throws(UsageError) -> [(name: String, value: String)] {
    var fields = [
        (name: "User-Agent", value: "larder-warm/\(larderVersion)"), (name: "Accept", value: "*/*"),
        // Most clients send this, so this variant is the most useful one.
        (name: "Accept-Encoding", value: "gzip"),
    ]
    var given: [(name: String, value: String)] = []
    for line in arguments.all(.header) {
        let field = try requestField(line)
        guard !ownFields.contains(field.name.lowercased()) else {
            throw UsageError("\(field.name) cannot be set: it is about the connection or its framing")
        }
        fields.removeAll { $0.name.lowercased() == field.name.lowercased() }
        if !field.value.isEmpty { given.append(field) }
    }
    return fields + given
}

private let ownFields: Set<String> = [
    "host", "connection", "proxy-connection", "keep-alive", "content-length", "transfer-encoding", "te", "trailer",
    "upgrade", "expect", "proxy-authorization",
]

/// Parses `Name: value` (RFC 9110 §5).
func requestField(_ line: String) throws(UsageError) -> (name: String, value: String) {
    let parts = Array(line.utf8).split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, parts[0].allSatisfy(isTchar),
        parts[1].allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) })
    else { throw UsageError("\"\(line)\" is not a header: write \"Name: value\"") }
    return (String(decoding: parts[0], as: UTF8.self), String(decoding: trimOWS(parts[1]), as: UTF8.self))
}

/// The value of `Proxy-Authorization` for a user (RFC 7617). Asks for the password.
func proxyAuthorization(user: String) throws(PasswordInputFailure) -> (name: String, value: String) {
    let credentials = Array("\(user):".utf8) + (try password(of: user))
    return ("Proxy-Authorization", "Basic " + String(decoding: encodeBase64(credentials), as: UTF8.self))
}
