/// `/setup.sh`: a script for any POSIX shell that sets up a machine or a user to use the proxy.
///
/// What is the same for every proxy stands in the files of `script`; this file writes what differs, and what the tables say. Values that
/// come from the request are those of a `ProxyPlace`, which no shell interprets.
func setupScript(_ place: ProxyPlace, hasAuthority: Bool) -> String {
    setupScriptHead(place, hasAuthority: hasAuthority)
        + [
            variableFunction(), stepFunction(), setupScriptArguments, setupScriptAuthority, setupScriptRecord,
            setupScriptTrust, setupScriptTools, setupScriptVariables, setupScriptMain,
        ].map { "\n" + $0 }.joined()
}

private func setupScriptHead(_ place: ProxyPlace, hasAuthority: Bool) -> String {
    // Java takes an IPv6 address without brackets, as no_proxy does.
    """
    #!/bin/sh
    # Sets up this machine, or this user, to use a Larder proxy. The proxy made this script for the address at which it was asked for it.
    # "sh setup.sh --help" shows what it can do.
    set -u

    proxy_at='\(place.authority)'
    proxy_host='\(place.plainHost)'
    proxy_port='\(place.port)'
    has_authority=\(hasAuthority ? "yes" : "no")

    """
}

/// The variables, one "KIND NAME VALUE" in a line.
private func variableFunction() -> String {
    let lines = SetupVariable.all.map { variable in
        let value =
            switch variable.value {
            case .proxy: "@proxy"
            case .exceptions: "@exceptions"
            case .javaOptions: "@java"
            case .bundle: "@bundle"
            case .authority: "@authority"
            case .literal(let text): text
            }
        return "\(variable.needsAuthority ? "authority" : "proxy") \(variable.name) \(value)\n"
    }
    return "variables() {\n    cat <<'END'\n\(lines.joined())END\n}\n"
}

private func stepFunction() -> String {
    var text = "set_up_tools() {\n"
    for step in SetupStep.all {
        let conditions =
            ["[ \"$scope\" = \(step.scope.rawValue) ]"]
            + (step.needsAuthority ? ["[ \"$has_authority\" = yes ]"] : []) + [step.condition]
        text += "    if \(conditions.joined(separator: " && ")); then\n"
        for command in step.commands { text += "        \(command)\n" }
        text += "    fi\n"
    }
    return text + "}\n"
}
