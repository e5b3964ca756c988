/// An error in a command line, with a hint at what may have been meant.
struct UsageError: Error, Equatable {
    var message: String
    var hint: String?

    init(_ message: String, hint: String? = nil) {
        self.message = message
        self.hint = hint
    }

    /// - Parameter kind: what the word should have been.
    static func unknown(_ kind: String, _ word: String, among known: [String]) -> UsageError {
        let nearest = nearestWord(to: word, among: known)
        return UsageError(
            "unknown \(kind) \"\(word)\"",
            hint: nearest.map { "did you mean \($0)?" } ?? "see larder help")
    }
}

/// The words after a command, divided into options and other words.
struct Arguments: Equatable {
    private(set) var words: [String] = []
    private var values: [Option: [String]] = [:]

    init() {}

    /// Accepts `--name VALUE`, `--name=VALUE`, `-n VALUE` and `-nVALUE`. Options can be anywhere; `--` ends them.
    init(_ arguments: ArraySlice<String>, for command: Command) throws(UsageError) {
        var rest = arguments
        while let word = rest.popFirst() {
            if word == "--" {
                words += rest
                return
            }
            guard word.hasPrefix("-"), word != "-" else {
                words.append(word)
                continue
            }
            try add(word, from: &rest, for: command)
        }
    }

    func has(_ option: Option) -> Bool { values[option] != nil }

    /// The value of the option. Nil if the option was not given.
    subscript(_ option: Option) -> String? { values[option]?.first }

    /// All values of an option that can be given more than once, in their order.
    func all(_ option: Option) -> [String] { values[option] ?? [] }

    /// The value as a whole number. Nil if the option was not given.
    func number(_ option: Option, in bounds: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = self[option] else { return nil }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text), bounds.contains(number)
        else {
            throw UsageError("\(option.long) takes a number from \(bounds.lowerBound) to \(bounds.upperBound)")
        }
        return number
    }

    private mutating func add(
        _ word: String, from rest: inout ArraySlice<String>, for command: Command
    ) throws(UsageError) {
        let (option, attached) = try option(of: word, for: command)
        guard values[option] == nil || command.allowsRepetition(of: option) else {
            throw UsageError("\(option.long) is given twice")
        }
        guard let name = option.value else {
            guard attached == nil else { throw UsageError("\(option.long) takes no value") }
            values[option] = [""]
            return
        }
        guard let value = attached ?? rest.popFirst(), !value.isEmpty else {
            throw UsageError("\(option.long) needs a value: \(option.long) \(name)")
        }
        values[option, default: []].append(value)
    }

    /// The option that a word names, and its value if the word contains it.
    private func option(of word: String, for command: Command) throws(UsageError) -> (Option, attached: String?) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
        if let option = command.options.first(where: { $0.long == parts[0] || $0.short == parts[0] }) {
            return (option, parts.count == 2 ? parts[1] : nil)
        }
        let isAttached = { (option: Option) in
            option.value != nil && option.short.map { word.hasPrefix($0) } == true
        }
        if let option = command.options.first(where: isAttached) { return (option, String(word.dropFirst(2))) }
        throw .unknown("option", parts[0], among: command.options.map(\.long))
    }
}

/// The known word that is most similar to a misspelt one. Returns nil if none is similar.
func nearestWord(to word: String, among known: [String]) -> String? {
    let bound = max(1, word.utf8.count / 3)
    let distances = known.map { (word: $0, distance: editDistance(Array(word.utf8), Array($0.utf8))) }
    return distances.filter { $0.distance <= bound }.min { $0.distance < $1.distance }?.word
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment).
func editDistance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var rows = [Array(0...b.count)]
    for (i, byte) in a.enumerated() {
        var row = [i + 1]
        for (j, other) in b.enumerated() {
            var cost = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (byte == other ? 0 : 1))
            if i > 0, j > 0, byte == b[j - 1], a[i - 1] == other { cost = min(cost, rows[i - 1][j - 1] + 1) }
            row.append(cost)
        }
        rows.append(row)
    }
    return rows[a.count][b.count]
}
