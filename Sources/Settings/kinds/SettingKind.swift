/// How the value of a setting is written: which values are allowed, how they are read, and how they are shown.
struct SettingKind<Value: Sendable & Equatable>: Sendable {
    /// Describes the allowed values, to follow "expected": `a size from 1MiB to 16TiB`.
    let allowed: String
    /// Returns nil if there was a problem. Appends all problems.
    let read: @Sendable (ConfigurationNode, inout [SettingProblem]) -> Value?
    /// Renders the value as YAML on one line. Reading that gives the same value.
    let render: @Sendable (Value) -> String
}

/// What is wrong with a value. It is not known yet to which key the value belongs.
struct SettingProblem: Sendable {
    let line: Int
    /// The place inside of the value, to follow the key: `[2].allow.port`. Empty if it is the whole value.
    let place: String
    let message: String
    let hint: String?

    init(_ node: ConfigurationNode, place: String = "", message: String, hint: String? = nil) {
        self.init(line: node.line, place: place, message: message, hint: hint)
    }

    init(line: Int, place: String, message: String, hint: String? = nil) {
        self.line = line
        self.place = place
        self.message = message
        self.hint = hint
    }

    /// The same problem, as seen from the value around the one in which it was found.
    func inside(_ outer: String) -> SettingProblem {
        SettingProblem(line: line, place: outer + place, message: message, hint: hint)
    }
}

extension SettingKind {
    /// A value that is one piece of text. `parse` returns nil for text that is not allowed.
    static func scalar(
        _ allowed: String, parse: @escaping @Sendable (String) -> Value?,
        render: @escaping @Sendable (Value) -> String, hint: @escaping @Sendable (String) -> String? = { _ in nil }
    ) -> SettingKind {
        SettingKind(
            allowed: allowed,
            read: { node, problems in
                if case .scalar(let text, _) = node.value, !node.isNull {
                    if let value = parse(text) { return value }
                    problems.append(
                        SettingProblem(node, message: "found \(node.found), expected \(allowed)", hint: hint(text)))
                } else {
                    problems.append(SettingProblem(node, message: "found \(node.found), expected \(allowed)"))
                }
                return nil
            }, render: render)
    }

    /// The kind with one more word, which means nil.
    func or(_ word: String) -> SettingKind<Value?> {
        let allowed = "\(allowed), or \(word)"
        return SettingKind<Value?>(
            allowed: allowed,
            read: { node, problems in
                if case .scalar(word, _) = node.value { return .some(nil) }
                var own: [SettingProblem] = []
                if let value = read(node, &own) { return .some(value) }
                problems += own.map {
                    SettingProblem(
                        line: $0.line, place: $0.place,
                        message: $0.place.isEmpty ? "found \(node.found), expected \(allowed)" : $0.message,
                        hint: $0.hint)
                }
                return nil
            }, render: { $0.map(render) ?? word })
    }

    /// The same kind for a value that is nil if the key is left out.
    var orLeftOut: SettingKind<Value?> {
        SettingKind<Value?>(
            allowed: allowed, read: { node, problems in read(node, &problems).map { .some($0) } },
            render: { $0.map(render) ?? "" })
    }

    /// A list of such values. A single value counts as a list with one element.
    func list(isEmptyAllowed: Bool = false) -> SettingKind<[Value]> {
        SettingKind<[Value]>(
            allowed: "a list of: \(allowed)",
            read: { node, problems in
                guard case .list(let elements) = node.value else { return read(node, &problems).map { [$0] } }
                if elements.isEmpty && !isEmptyAllowed {
                    problems.append(
                        SettingProblem(node, message: "found an empty list", hint: "leave the key out instead"))
                    return nil
                }
                var values: [Value] = []
                for (index, element) in elements.enumerated() {
                    var own: [SettingProblem] = []
                    if let value = read(element, &own) { values.append(value) }
                    problems += own.map { $0.inside("[\(index + 1)]") }
                }
                return values.count == elements.count ? values : nil
            }, render: { "[ \($0.map(render).joined(separator: ", ")) ]" })
    }
}
