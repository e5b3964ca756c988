import Access
import Rules
import Texts

extension Journal {
    /// The rules as YAML, in the grammar of `access.rules`, with what they rest on as comments.
    ///
    /// The same journal always makes the same text.
    package var yaml: String {
        let learnt = neededRules
        var lines = [
            yamlComment("Job \(job), \(counted(runs.count, "run")) of \(scope.text), \(counted(requests, "request")).")
        ]
        if leftOut > 0 {
            lines.append(
                "# \(counted(leftOut, "request")) left out: there were too many different paths, or no rule can name them."
            )
        }
        if runs.contains(where: \.allowed) {
            lines.append("# What the rules in force denied was let through in some run, and is among these rules.")
        }
        lines += ["access:", "  default: deny"]
        lines.append(learnt.isEmpty ? "  rules: []" : "  rules:")
        for rule in learnt { lines += rule.yaml.map { "    " + $0 } }
        let refused = deniedRules
        if !refused.isEmpty {
            lines.append("    # Denied meanwhile. Only who needs these has to take the marks away:")
            for rule in refused { lines += rule.yaml.map { $0.hasPrefix("#") ? "    " + $0 : "    # " + $0 } }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    package var requests: Int { runs.reduce(0) { $0 + $1.requests } }
}

extension LearntRule {
    /// The comment, and the rule as an element of a list.
    package var yaml: [String] {
        let keys =
            conditions.keys
            + (intercept.map { [Key(name: "intercept", values: [$0 ? "yes" : "no"], isList: false)] } ?? [])
        let isShort = conditions.paths.count <= 2
        var lines = [yamlComment(comment)]
        if isShort {
            lines.append("- allow: { " + keys.map { "\($0.name): \($0.text)" }.joined(separator: ", ") + " }")
        } else {
            lines.append("- allow:")
            for key in keys {
                if key.name == "path" {
                    lines.append("    path:")
                    lines += key.values.map { "      - \($0)" }
                } else {
                    lines.append("    \(key.name): \(key.text)")
                }
            }
        }
        return lines
    }

    /// `seen in 2 of 3 runs, 14 requests; largest bodies: 0 B sent, 1.2 MiB received; recipe npm; credential forge`.
    package var comment: String {
        var parts = [
            "seen in \(evidence.runs) of \(counted(evidence.runsMax, "run")), \(counted(evidence.requests, "request"))"
        ]
        if let reason = evidence.reason {
            parts[0] += ", denied by \(evidence.rule.map { "rule \($0)" } ?? "default"): \(reason.rawValue)"
        } else {
            parts.append(
                "at most \(sizeText(evidence.requestBytesMax)) sent and \(sizeText(evidence.responseBytesMax)) received"
            )
        }
        if evidence.permitted > 0 { parts.append("\(evidence.permitted) of them let through by --allow") }
        if !evidence.recipes.isEmpty { parts.append("recipe \(evidence.recipes.joined(separator: ", "))") }
        if !evidence.credentials.isEmpty { parts.append("credential \(evidence.credentials.joined(separator: ", "))") }
        return parts.joined(separator: "; ")
    }
}

/// One key of a rule, with its values as they stand in the file.
private struct Key {
    var name: String
    var values: [String]
    var isList = true

    var text: String { isList ? "[ \(values.joined(separator: ", ")) ]" : values[0] }
}

extension RuleConditions {
    fileprivate var keys: [Key] {
        parts.map { name, values in Key(name: name, values: name == "port" ? values : values.map(yamlScalar)) }
    }
}

private func counted(_ count: Int, _ noun: String) -> String { count == 1 ? "1 \(noun)" : "\(count) \(noun)s" }

/// `812 B`, `1.2 MiB`: for people.
func sizeText(_ bytes: UInt64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"]
    var (value, unit) = (min(bytes, .max / 10) * 10, 0)
    while value >= 10_240, unit < units.count - 1 {
        value /= 1024
        unit += 1
    }
    return unit == 0 || value % 10 == 0 ? "\(value / 10) \(units[unit])" : "\(value / 10).\(value % 10) \(units[unit])"
}
