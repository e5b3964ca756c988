/// `docs/clients.md`: how clients are set up, and the table of tools. Rendered from the tables.
package func renderClientManual() -> String {
    var text = clientManualHead
    text += "\n## Every tool\n\n" + clientManualTableHead
    text += "| tool | reads the proxy from | trusts | setup.sh |\n|---|---|---|---|\n"
    for tool in Tool.all { text += row(tool) }
    text += "\n### What goes wrong\n\n"
    for tool in Tool.all where !tool.traps.isEmpty {
        text += "- **\(tool.name)**: \(tool.traps.joined(separator: " "))\n"
    }
    text += "\n## Variables\n\n" + clientManualVariables
    text += "| variable | value |\n|---|---|\n"
    for (value, names) in variablesByValue() {
        text += "| \(names.map { "`\($0)`" }.joined(separator: ", ")) | \(value) |\n"
    }
    return text + clientManualTail
}

private func row(_ tool: Tool) -> String {
    let mark = tool.isTried ? "" : " ¹"
    return "| \(escape(tool.name))\(mark) | \(list(tool.proxy)) | \(list(tool.authority)) | \(doneBySetup(tool)) |\n"
}

private func list(_ sources: [Tool.Source]) -> String {
    sources.map { source in
        switch source {
        case .systemStore: "the system's store"
        case .variable(let name, let effect): "`\(name)`\(remark(effect))"
        case .file(let file, let key, let effect): "`\(escape(key))` in `\(file)`\(remark(effect))"
        case .option(let text, let effect): "`\(text)`\(remark(effect))"
        }
    }.joined(separator: ", ")
}

private func remark(_ effect: Tool.Effect) -> String {
    switch effect {
    case .adds: " (adds)"
    case .replaces: " (replaces)"
    case .unknown, .none: ""
    }
}

private func doneBySetup(_ tool: Tool) -> String {
    let variables = Set(SetupVariable.all.map(\.name))
    let setsVariable = (tool.proxy + tool.authority).contains { source in
        guard case .variable(let name, _) = source else { return false }
        return variables.contains(name)
    }
    let files = SetupStep.all.filter { $0.tools.contains(tool.name) }.map { "`\($0.place)`" }
    let parts =
        (setsVariable ? ["variables"] : []) + (tool.authority.contains(.systemStore) ? ["the system's store"] : [])
        + files
    return parts.isEmpty ? "by hand" : parts.joined(separator: ", ")
}

/// The variables by their values, in the order of the table.
private func variablesByValue() -> [(value: String, names: [String])] {
    var rows: [(value: String, names: [String])] = []
    for variable in SetupVariable.all {
        let value = meaning(variable.value)
        if let index = rows.firstIndex(where: { $0.value == value }) {
            rows[index].names.append(variable.name)
        } else {
            rows.append((value, [variable.name]))
        }
    }
    return rows
}

private func meaning(_ value: SetupVariable.Value) -> String {
    switch value {
    case .proxy: "`http://PROXY:3128`"
    case .exceptions: "what is reached directly: this machine, the proxy, and the list of `--no-proxy`"
    case .javaOptions: "the options of `--print java`; only if Java is installed"
    case .bundle: "`ca-bundle.pem`: the system's certificates and Larder's"
    case .authority: "`ca.pem`: Larder's alone"
    case .literal(let text): "`\(text)`"
    }
}

/// A vertical bar would end the cell, and angle brackets would be HTML outside of code.
private func escape(_ text: String) -> String {
    text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|")
}
