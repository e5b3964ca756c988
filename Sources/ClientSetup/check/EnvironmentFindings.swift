/// Something wrong with the settings of a client, and what mends it.
package struct Finding: Equatable, Sendable {
    package let problem: String
    package let mend: String

    package init(_ problem: String, mend: String) {
        self.problem = problem
        self.mend = mend
    }
}

/// Looks for mistakes in the variables of a client.
///
/// - Parameters:
///   - environment: all variables.
///   - bundleProblem: what is wrong with a file of certificates; nil if it has Larder's, or if there is no authority.
package func environmentFindings(
    _ environment: [String: String], bundleProblem: (_ path: String) -> BundleProblem?
) -> [Finding] {
    proxyFindings(environment) + exceptionFindings(environment) + bundleFindings(environment, bundleProblem)
}

package enum BundleProblem: Equatable, Sendable { case missing, lacksAuthority }

private func proxyFindings(_ environment: [String: String]) -> [Finding] {
    var findings: [Finding] = []
    for name in ["http_proxy", "https_proxy"] {
        let upper = name.uppercased()
        let (value, other) = (environment[name], environment[upper])
        if let value, let other, value != other {
            findings.append(
                Finding(
                    "\(name) and \(upper) differ: some tools use \(value), others \(other)",
                    mend: "export \(upper)=\(value)"))
        }
        if value == nil, let other {
            findings.append(
                Finding(
                    "\(upper) is set, and \(name) is not: curl, wget and git read the latter",
                    mend: "export \(name)=\(other)"))
        }
        for (name, value) in [(name, value), (upper, other)] {
            guard let value, !value.isEmpty, value.firstRange(of: "://") == nil else { continue }
            findings.append(
                Finding("\(name)=\(value) has no scheme: some tools refuse it", mend: "export \(name)=http://\(value)"))
        }
    }
    if environment["http_proxy"] != nil, environment["https_proxy"] == nil, environment["HTTPS_PROXY"] == nil,
        let value = environment["http_proxy"]
    {
        findings.append(
            Finding(
                "http_proxy is set, and https_proxy is not: https goes past the proxy",
                mend: "export https_proxy=\(value)"))
    }
    return findings
}

/// Lists of exceptions that tools read differently.
private func exceptionFindings(_ environment: [String: String]) -> [Finding] {
    var findings: [Finding] = []
    let (lower, upper) = (environment["no_proxy"], environment["NO_PROXY"])
    if let lower, let upper, lower != upper {
        findings.append(Finding("no_proxy and NO_PROXY differ", mend: "export NO_PROXY=\"$no_proxy\""))
    }
    for (name, value) in [("no_proxy", lower), ("NO_PROXY", upper)] {
        guard let value else { continue }
        let entries = value.split(separator: ",").map { $0.drop { $0 == " " } }
        if value.contains(" ") {
            findings.append(
                Finding("\(name) has spaces: several tools ignore what follows", mend: "separate with commas alone"))
        }
        for entry in entries {
            if entry == "*" {
                findings.append(Finding("\(name) has *: most tools use no proxy at all", mend: "remove * from \(name)"))
            } else if entry.hasPrefix("*.") {
                findings.append(
                    Finding("\(name) has \(entry): only Go and Node know this form", mend: "write \(entry.dropFirst())")
                )
            } else if entry.firstRange(of: "://") != nil {
                findings.append(Finding("\(name) has \(entry): a name has no scheme", mend: "write the name alone"))
            } else if covers(entry, CheckOrigin.host) {
                findings.append(
                    Finding(
                        "\(name) has \(entry): it covers \(CheckOrigin.host), so nothing can be tested",
                        mend: "remove it"))
            }
        }
    }
    return findings
}

private func covers(_ entry: Substring, _ host: String) -> Bool {
    let name = entry.first == "." ? entry.dropFirst() : entry
    return !name.isEmpty && (host == name || host.hasSuffix(".\(name)"))
}

private func bundleFindings(
    _ environment: [String: String], _ problem: (String) -> BundleProblem?
) -> [Finding] {
    let names =
        SetupVariable.all.filter { $0.value == .bundle || $0.value == .authority }.map(\.name)
        + ["YARN_CAFILE", "YARN_HTTPS_CA_FILE_PATH"]
    return names.compactMap { name in
        guard let path = environment[name], !path.isEmpty else { return nil }
        switch problem(path) {
        case nil: return nil
        case .missing:
            return Finding("\(name) names \(path), which cannot be read: tools fail", mend: "unset \(name)")
        case .lacksAuthority:
            return Finding(
                "\(name) names \(path), which lacks Larder's certificate", mend: "run setup.sh, or unset \(name)")
        }
    }
}
