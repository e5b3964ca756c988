/// Where the tools of an ecosystem say which hosts they use: files, and the tools themselves.
///
/// No host is named here. What is printed was read from this machine.
struct ToolConfiguration: Sendable {
    let recipe: String
    /// Paths of files; `~` is the home directory, and `*` stands for names in a directory.
    var files: [String] = []
    /// Lines of the files with none of these words do not count. Empty: all lines count.
    var words: [String] = []
    /// Lines with one of these do not count: they name a proxy, which is not a host that the tool downloads from.
    var exceptions: [String] = []
    var form = Form.urls
    /// What follows one of these characters at the beginning of a line is a comment.
    var comment = "#"
    /// Variables that hold URLs.
    var variables: [String] = []
    /// Commands that print URLs. A tool that is not installed prints nothing.
    var commands: [String] = []

    /// How a file names hosts.
    enum Form {
        /// In URLs.
        case urls
        /// In quotes: a host with a dot, perhaps with a port and a path; or a URL.
        case quoted
    }

    /// A recipe can have several entries.
    static let all = [
        ToolConfiguration(
            recipe: "python",
            files: [
                "/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf", "~/.config/uv/uv.toml", "/etc/uv/uv.toml",
            ],
            words: ["index", "url", "find-links"], comment: "#;",
            variables: ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX"]),
        ToolConfiguration(
            recipe: "npm", files: [".npmrc", "~/.npmrc", "/etc/npmrc", ".yarnrc.yml", "~/.yarnrc.yml"],
            words: ["registry", "Registry"], comment: "#;",
            variables: ["npm_config_registry", "YARN_NPM_REGISTRY_SERVER"],
            commands: ["npm config get registry"]),
        ToolConfiguration(
            recipe: "cargo",
            files: [".cargo/config.toml", "~/.cargo/config.toml", "~/.cargo/config"], words: ["registry", "index"]),
        ToolConfiguration(
            recipe: "go", variables: ["GOPROXY"], commands: ["go env GOPROXY"]),
        ToolConfiguration(
            recipe: "maven",
            files: [
                "~/.m2/settings.xml", "/etc/maven/settings.xml", "~/.gradle/init.gradle", "~/.gradle/init.gradle.kts",
            ],
            words: ["<url>", "url", "maven"], comment: "/"),
        ToolConfiguration(
            recipe: "rubygems", files: ["~/.gemrc", "/etc/gemrc", "~/.bundle/config", ".bundle/config"],
            commands: ["gem sources --list"]),
        ToolConfiguration(
            recipe: "debian",
            files: ["/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources"],
            words: ["deb", "URIs"]),
        ToolConfiguration(
            recipe: "rpm", files: ["/etc/yum.repos.d/*.repo", "/etc/zypp/repos.d/*.repo"],
            words: ["baseurl", "metalink", "mirrorlist"]),
        ToolConfiguration(recipe: "alpine", files: ["/etc/apk/repositories"]),
        ToolConfiguration(
            recipe: "oci", files: ["/etc/docker/daemon.json"], words: ["http"], exceptions: ["roxy\""]),
        // `"auths": { "registry.example.org": { … } }`
        ToolConfiguration(
            recipe: "oci", files: ["~/.docker/config.json", "~/.config/containers/auth.json"], words: ["{"],
            form: .quoted),
        ToolConfiguration(
            recipe: "oci",
            files: [
                "/etc/containers/registries.conf", "/etc/containers/registries.conf.d/*.conf",
                "~/.config/containers/registries.conf", "~/.config/containers/registries.conf.d/*.conf",
            ],
            words: ["location", "prefix", "registries"], form: .quoted),
        ToolConfiguration(recipe: "huggingface", variables: ["HF_ENDPOINT"]),
        ToolConfiguration(
            recipe: "conda",
            files: [
                "~/.condarc", "~/.conda/.condarc", "~/.config/conda/.condarc", "/etc/conda/.condarc",
                "/etc/conda/condarc", "/etc/conda/condarc.d/*", "~/.mambarc",
            ],
            // The keys of `proxy_servers`.
            exceptions: ["http: ", "https: ", "http\": ", "https\": "]),
        ToolConfiguration(
            recipe: "nuget",
            files: [
                "nuget.config", "NuGet.Config", "~/.nuget/NuGet/NuGet.Config", "~/.nuget/config/*.config",
                "~/.config/NuGet/NuGet.Config", "/etc/opt/NuGet/Config/*.config",
            ],
            words: ["<add"], exceptions: ["http_proxy"], comment: ""),
        ToolConfiguration(
            recipe: "composer",
            files: ["composer.json", "~/.config/composer/config.json", "~/.composer/config.json"], words: ["\"url\""]),
        ToolConfiguration(
            recipe: "nix", files: ["/etc/nix/nix.conf", "~/.config/nix/nix.conf"], words: ["substituters"]),
        ToolConfiguration(recipe: "terraform", files: ["~/.terraformrc", "~/.tofurc"], words: ["url", "host"]),
    ]

    /// The hosts that a text names, each once, in their order.
    func hosts(in text: String) -> [String] {
        var hosts: [String] = []
        for line in text.split(whereSeparator: \.isNewline) {
            let line = line.drop { $0 == " " || $0 == "\t" }
            if let first = line.first, comment.contains(first) { continue }
            guard words.isEmpty || words.contains(where: line.contains) else { continue }
            guard !exceptions.contains(where: line.contains) else { continue }
            switch form {
            case .urls: hosts += hostsOfURLs(in: line)
            case .quoted: hosts += quotedHosts(in: line)
            }
        }
        return hosts.enumerated().filter { hosts.firstIndex(of: $1) == $0 }.map(\.element)
    }
}

/// The hosts between quotes in a line, in lower case, without user, port and path. A word without a dot is no host.
func quotedHosts(in line: some StringProtocol) -> [String] {
    let parts = line.split(omittingEmptySubsequences: false) { "\"'".contains($0) }
    // Every other part stands between quotes.
    return stride(from: 1, to: parts.count, by: 2).flatMap { index in
        let text = String(parts[index])
        let url = text.firstRange(of: "://") == nil ? "https://\(text)" : text
        return hostsOfURLs(in: url).filter { $0.contains(".") || $0.contains(":") }
    }
}

/// The hosts of all `http://` and `https://` URLs in a line, in lower case, without user and port.
func hostsOfURLs(in line: some StringProtocol) -> [String] {
    var hosts: [String] = []
    var rest = Array(line.utf8)[...]
    let mark = Array("://".utf8)
    while let place = rest.indices.first(where: { rest[$0...].starts(with: mark) }) {
        let isWeb = ["http", "https"].contains { rest[..<place].reversed().starts(with: $0.utf8.reversed()) }
        let authority = rest[(place + 3)...].prefix { !"/?#'\"<>,| \t\\;)".utf8.contains($0) }
        rest = rest[authority.endIndex...]
        let host = authority.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false).last ?? []
        let name =
            host.first == UInt8(ascii: "[")
            ? host.dropFirst().prefix { $0 != UInt8(ascii: "]") } : host.prefix { $0 != UInt8(ascii: ":") }
        if isWeb, !name.isEmpty { hosts.append(String(decoding: name, as: UTF8.self).lowercased()) }
    }
    return hosts
}
