import Message

/// The text of the file that keeps what has been used of budgets.
///
/// A line each, with five parts between tabs: the rule, the kind of the subject, its name, the end of the window, the bytes. The first
/// line says what the file is, the last one how many lines are in between, so that a file that was cut off is found out.
package enum BudgetFile {
    package static let bytesMax = 64 << 20
    private static let firstLine = "larder budgets 1"

    package static func text(_ uses: [BudgetUse]) -> [UInt8] {
        var text = firstLine + "\n"
        for use in uses {
            let (kind, name) = use.bucket.subject.stored
            text += [escaped(use.bucket.rule), kind, escaped(name), "\(use.windowEnd)", "\(use.spent)"].joined(
                separator: "\t")
            text += "\n"
        }
        return Array((text + "end \(uses.count)\n").utf8)
    }

    /// What is wrong with a file. Nothing of it is used then: half of what was used would let through more than a budget allows.
    package struct Damage: Error, Equatable { package let line: Int }

    package static func read(_ bytes: [UInt8]) throws(Damage) -> [BudgetUse] {
        // By scalar: CR and LF, and a percent sign and a mark behind it, are one character.
        let text = String(decoding: bytes, as: UTF8.self)
        var lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { Substring($0) }[
            ...]
        guard lines.popFirst() == firstLine[...] else { throw Damage(line: 1) }
        var uses: [BudgetUse] = []
        while let line = lines.popFirst() {
            if line == "end \(uses.count)", lines == [""] { return uses }
            guard let use = use(line) else { throw Damage(line: uses.count + 2) }
            uses.append(use)
        }
        throw Damage(line: uses.count + 2)
    }

    private static func use(_ line: Substring) -> BudgetUse? {
        let parts = line.unicodeScalars.split(separator: "\t", omittingEmptySubsequences: false).map { Substring($0) }
        guard parts.count == 5, let rule = unescaped(parts[0]), let name = unescaped(parts[2]),
            let subject = subject(kind: parts[1], name), let end = Int64(parts[3]),
            end == ByteBudget.never || WallTime.secondsBounds.contains(end), let spent = UInt64(parts[4])
        else { return nil }
        return BudgetUse(LimitBucket(rule: rule, subject), windowEnd: end, spent: spent)
    }

    private static func subject(kind: Substring, _ name: String) -> LimitSubject? {
        switch kind {
        case "all": .all
        case "local": .local
        case "others": .others
        case "client": IPAddress(strict: name.utf8).map { LimitSubject(client: $0) }
        case "user": .user(name)
        case "group": .group(name)
        default: nil
        }
    }

    /// Tabs, line feeds and percent signs are written as in URIs.
    private static func escaped(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "%": result += "%25"
            case "\t": result += "%09"
            case "\n": result += "%0A"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }

    private static func unescaped(_ text: Substring) -> String? {
        var result = ""
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            guard scalar == "%" else {
                result.unicodeScalars.append(scalar)
                continue
            }
            switch String(String.UnicodeScalarView(rest.prefix(2))) {
            case "25": result += "%"
            case "09": result += "\t"
            case "0A": result += "\n"
            default: return nil
            }
            rest = rest.dropFirst(2)
        }
        return result
    }
}
