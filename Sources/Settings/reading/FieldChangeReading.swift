import Message
import Origins

/// `fields` of a rule for origins: `{ set: { NAME: VALUE }, add: { NAME: VALUE }, remove: [ NAME ] }`.
extension SettingKind where Value == [FieldChange] {
    static var fieldChanges: SettingKind {
        let allowed = "set: { NAME: VALUE }, add: { NAME: VALUE } and remove: [ NAME ]"
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                guard var reader = MappingReader(node, expected: allowed, problems: &problems) else { return nil }
                // In this order, whatever the order in the file: what is added comes behind what is set.
                let removed = reader.value("remove", SettingKind<FieldChange>.removal.list()) ?? []
                let set = reader.value("set", .lines(.set)) ?? []
                let added = reader.value("add", .lines(.add)) ?? []
                return reader.finish("key", into: &problems) ? removed + set + added : nil
            }, render: { $0.map(\.description).joined(separator: ", ") })
    }

    fileprivate static func lines(_ operation: FieldChange.Operation) -> SettingKind {
        let allowed = "fields with their values"
        let text = SettingKind<String>.text(4096)
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                guard case .mapping(let entries) = node.value else {
                    problems.append(SettingProblem(node, message: "found \(node.found), expected \(allowed)"))
                    return nil
                }
                var changes: [FieldChange] = []
                for entry in entries {
                    var own: [SettingProblem] = []
                    let value = text.read(entry.value, &own)
                    problems += own.map { $0.inside(".\(entry.key)") }
                    let change = FieldChange(operation, Array(entry.key.utf8), Array((value ?? "").utf8))
                    if let problem = problem(change) {
                        problems.append(
                            SettingProblem(
                                line: entry.keyLine, place: ".\(entry.key)", message: problem.message,
                                hint: problem.hint))
                    } else if value != nil {
                        changes.append(change)
                    }
                }
                return changes.count == entries.count ? changes : nil
            }, render: { "\($0)" })
    }
}

extension SettingKind where Value == FieldChange {
    fileprivate static var removal: SettingKind {
        let allowed = "the name of a field"
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                guard case .scalar(let text, _) = node.value, !node.isNull else {
                    problems.append(SettingProblem(node, message: "found \(node.found), expected \(allowed)"))
                    return nil
                }
                let change = FieldChange(.remove, Array(text.utf8))
                guard let problem = problem(change) else { return change }
                problems.append(SettingProblem(node, message: problem.message, hint: problem.hint))
                return nil
            }, render: { $0.description })
    }
}

private func problem(_ change: FieldChange) -> (message: String, hint: String?)? {
    let name = String(decoding: change.spelling, as: UTF8.self)
    guard !change.spelling.isEmpty, change.spelling.count <= 255, change.spelling.allSatisfy(isTchar) else {
        return ("\(name) is not the name of a field (RFC 9110 §5.1)", nil)
    }
    switch change.objection {
    case nil: return nil
    case .ownField: return ("Larder itself writes \(name)", nil)
    case .credentials: return ("\(name) is not set by a rule for origins", "use credentials")
    case .codings: return ("clients differ in the codings that they understand", "only remove: [ \(name) ] is possible")
    }
}
