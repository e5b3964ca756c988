import Glibc

/// What stands in URLs, names and files of others when they want more than to be shown.
let hostile = [
    "", " ", "a b", "a'b", "'", "$(false)", "`false`", "a\\", "\"", "a;b", "-", "\n", "~", "*", "\\n", "&#39;", "&amp;",
    "é\u{1F600}",
    "'\u{301};exit 9;'", "\"\u{301}", "\\\u{301}", "<\u{301}script>", "\u{600}<b>", "\r\n", "a\r\nb: c",
    "\u{1B}]0;x\u{7}", "\u{9B}31m",
    "\u{202E}cod", "\u{2066}a\u{2069}", "\u{200B}", "\u{FEFF}", "\u{2028}", "\u{85}", "\u{7F}", "\u{E000}", "\u{F0000}",
    "\u{10FFFF}",
    "</script><!--", "a\"} 1\nb{c=\"",
]

/// Runs a program with an argument, and returns what it prints. Nil if it is not installed or fails.
func output(of program: [String], argument: String) -> [UInt8]? {
    var ends: [CInt] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { return nil }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    unsafe posix_spawn_file_actions_addclose(&actions, ends[0])
    var arguments = unsafe (program + [argument]).map { unsafe strdup($0) } + [nil]
    defer { unsafe arguments.forEach { unsafe free($0) } }
    var pid: pid_t = 0
    let outcome = unsafe posix_spawnp(&pid, program[0], &actions, nil, &arguments, environ)
    close(ends[1])
    defer { close(ends[0]) }
    guard outcome == 0 else { return nil }
    var result: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while case let count = unsafe read(ends[0], &chunk, chunk.count), count > 0 { result += chunk[..<count] }
    var status: CInt = 0
    guard unsafe waitpid(pid, &status, 0) == pid, status == 0 else { return nil }
    return result
}

/// Random text of scalars that mean something to some format.
func randomText(_ random: inout some RandomNumberGenerator) -> String {
    let scalars: [Unicode.Scalar] = [
        "a", "Z", "0", " ", "\"", "'", "\\", "/", "<", ">", "&", "#", ";", "$", "`", "{", "}", "\n", "\r", "\t",
        "\u{1B}", "\u{9B}",
        "\u{7F}", "\u{301}", "\u{600}", "\u{200D}", "\u{202E}", "\u{2028}", "é", "\u{1F600}",
    ]
    var text = ""
    for _ in 0..<Int.random(in: 0...12, using: &random) {
        text.unicodeScalars.append(scalars.randomElement(using: &random) ?? "a")
    }
    return text
}

/// SplitMix64: the same texts for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
