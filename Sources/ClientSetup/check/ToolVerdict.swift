/// What `larder doctor` finds out about one tool.
package struct ToolVerdict: Equatable, Sendable {
    package enum Mark: String, Sendable { case yes, no, untested = "-" }

    package var usesProxy: Mark
    package var trusts: Mark
    package var isCached: Mark
    /// What mends it, in one line; or why the tool can use no proxy. Nil if nothing is wrong.
    package var advice: String?

    /// Whether nothing that was tested is wrong.
    package var isFine: Bool { ![usesProxy, trusts, isCached].contains(.no) }

    /// A tool that is installed, and for which no harmless request is known.
    package static let untested = ToolVerdict(usesProxy: .untested, trusts: .untested, isCached: .untested, advice: nil)
}

/// One way of asking, twice.
package struct ProbeResult: Equatable, Sendable {
    package let way: ToolProbe.Way
    /// What reached the origin after the first request, and after the second.
    package let first: [CheckRecords.Sighting: Int]
    package let second: [CheckRecords.Sighting: Int]
    /// What the tool printed the first time.
    package let output: String
    package let timedOut: Bool

    package init(
        _ way: ToolProbe.Way, first: [CheckRecords.Sighting: Int], second: [CheckRecords.Sighting: Int], output: String,
        timedOut: Bool = false
    ) {
        self.way = way
        self.first = first
        self.second = second
        self.output = output
        self.timedOut = timedOut
    }

    /// The request came through the proxy.
    var arrived: Bool { !first.isEmpty }
    /// All that was asked for the first time was answered from the cache the second time.
    var wasCached: Bool { arrived && first == second }
}

/// What a verdict needs to know of the machine.
package struct DoctorFacts: Equatable, Sendable {
    /// `http://HOST:PORT`
    package let proxy: String
    /// Whether the proxy opens TLS connections to the origin of doctor.
    package let opensTLS: Bool
    /// The SHA-256 that `setup.sh` wants. Nil without an authority.
    package let fingerprint: String?
    /// Where `setup.sh` puts the bundle for this user. Nil if it is not there.
    package let bundle: String?
    /// The names of the variables that are set.
    package let variables: Set<String>

    package init(
        proxy: String, opensTLS: Bool, fingerprint: String?, bundle: String?, variables: Set<String> = []
    ) {
        self.variables = variables
        self.proxy = proxy
        self.opensTLS = opensTLS
        self.fingerprint = fingerprint
        self.bundle = bundle
    }

    /// The command that sets up everything.
    package var setupCommand: String {
        let options = fingerprint.map { " -s -- --ca-sha256 \($0)" } ?? ""
        return "curl -fsS --noproxy '*' \(proxy)/setup.sh | sh\(options)"
    }
}

package func judge(_ tool: Tool, _ results: [ProbeResult], _ facts: DoctorFacts) -> ToolVerdict {
    var verdict = ToolVerdict.untested
    guard let probe = tool.probe, !results.isEmpty else { return verdict }
    if results.contains(where: { result in probe.impossibleIf.contains { result.output.contains($0) } }) {
        return verdict
    }
    if let words = probe.incapableIf, results.contains(where: { $0.output.contains(words) }) {
        verdict.advice = tool.traps.first
        return verdict
    }
    let arrived = results.filter(\.arrived)
    let lost = results.filter { !$0.arrived }
    // Where only https failed, and the tool speaks of certificates, the proxy was reached.
    let distrusts = lost.contains { $0.way == .https && speaksOfCertificates($0.output) }
    verdict.usesProxy = arrived.isEmpty && !distrusts ? .no : .yes
    if let https = results.first(where: { $0.way == .https }) {
        verdict.trusts = https.arrived ? .yes : (distrusts ? .no : .untested)
    }
    if probe.mayBeCached, !arrived.isEmpty {
        verdict.isCached = arrived.allSatisfy { $0.wasCached || isTunnel($0) } ? .yes : .no
        if arrived.allSatisfy(isTunnel) { verdict.isCached = .untested }
    }
    if verdict.usesProxy == .no {
        verdict.advice = proxyAdvice(tool, facts)
    } else if verdict.trusts == .no {
        verdict.advice = trustAdvice(tool, facts)
    } else if let failed = lost.first {
        verdict.usesProxy = .no
        verdict.advice = "\(failed.way.rawValue) URLs do not go through the proxy: \(proxyAdvice(tool, facts))"
    } else if verdict.isCached == .no {
        verdict.advice = "larder explain shows why the second request was not a hit"
    }
    return verdict
}

/// Nothing in a tunnel that is not opened can be stored.
private func isTunnel(_ result: ProbeResult) -> Bool { result.first.keys.allSatisfy { $0.way == .tunnel } }

private func speaksOfCertificates(_ output: String) -> Bool {
    let text = output.lowercased()
    let words = [
        "certificate", "cert_", "x509", "pkix", "unknown_ca", "unknown ca", "self-signed", "self signed",
        "unknownissuer",
        "unable to get local issuer", "tls handshake",
    ]
    return words.contains { text.contains($0) }
}

/// The line of an output that says most about a failure: the first one that speaks of an error, or the last one with words.
package func tellingLine(_ output: String) -> String {
    let lines = output.split(separator: "\n").filter { $0.contains(where: \.isLetter) }
    let telling = lines.first { line in
        let text = line.lowercased()
        return ["error", "exception", "fail", "cannot", "could not", "unable"].contains { text.contains($0) }
    }
    return String((telling ?? lines.last ?? "").drop { $0 == " " || $0 == "\t" }.prefix(300))
}

private func proxyAdvice(_ tool: Tool, _ facts: DoctorFacts) -> String {
    let set = Set(SetupVariable.all.filter { !$0.needsAuthority }.map(\.name))
    let names = tool.proxy.compactMap { source -> String? in
        guard case .variable(let name, _) = source, set.contains(name) else { return nil }
        return name
    }
    // All that can be set is set, so something else is wrong.
    if !names.isEmpty, facts.variables.isSuperset(of: names), let trap = tool.traps.first { return trap }
    if SetupStep.all.contains(where: { $0.tools.contains(tool.name) && $0.scope == .system }) {
        return facts.setupCommand + "  (as root)"
    }
    if names.contains("https_proxy") { return "export http_proxy=\(facts.proxy) https_proxy=\(facts.proxy)" }
    return facts.setupCommand
}

private func trustAdvice(_ tool: Tool, _ facts: DoctorFacts) -> String {
    let set = Set(SetupVariable.all.filter { $0.value == .bundle }.map(\.name))
    for source in tool.authority {
        if let bundle = facts.bundle, case .variable(let name, _) = source, set.contains(name) {
            return "export \(name)=\(bundle)"
        }
    }
    return facts.setupCommand + (tool.authority.contains(.systemStore) ? "  (as root)" : "")
}
