/// What `setup.sh` sets and writes.
extension SetupVariable {
    /// In the order in which they are written. Those of files come last.
    package static let all: [SetupVariable] =
        ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"].map {
            SetupVariable(name: $0, value: .proxy, needsAuthority: false)
        }
        + ["no_proxy", "NO_PROXY"].map { SetupVariable(name: $0, value: .exceptions, needsAuthority: false) }
        + [
            SetupVariable(name: "NODE_USE_ENV_PROXY", value: .literal("1"), needsAuthority: false),
            SetupVariable(name: "JAVA_TOOL_OPTIONS", value: .javaOptions, needsAuthority: false),
        ]
        + [
            "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
            "AWS_CA_BUNDLE", "BUNDLE_SSL_CA_CERT", "COMPOSER_CAFILE", "CONDA_SSL_VERIFY", "MAMBA_SSL_VERIFY",
            "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
            "npm_config_cafile", "HEX_CACERTS_PATH", "JULIA_SSL_CA_ROOTS_PATH", "PERL_LWP_SSL_CA_FILE",
            "NIX_SSL_CERT_FILE",
        ].map { SetupVariable(name: $0, value: .bundle, needsAuthority: true) }
        + [
            SetupVariable(name: "NODE_EXTRA_CA_CERTS", value: .authority, needsAuthority: true),
            SetupVariable(name: "DENO_CERT", value: .authority, needsAuthority: true),
            SetupVariable(name: "DENO_TLS_CA_STORE", value: .literal("system,mozilla"), needsAuthority: true),
        ]
}

extension SetupStep {
    static let all: [SetupStep] = [
        SetupStep(
            tools: ["apt"], scope: .system, condition: #"[ -d "$root/etc/apt/apt.conf.d" ]"#, needsAuthority: false,
            place: "/etc/apt/apt.conf.d/90larder", commands: ["apt_settings | write_file /etc/apt/apt.conf.d/90larder"]),
        SetupStep(
            tools: ["dnf"], scope: .system, condition: #"[ -f "$root/etc/dnf/dnf.conf" ]"#, needsAuthority: false,
            place: "/etc/dnf/dnf.conf", commands: ["set_up_dnf"]),
        SetupStep(
            tools: ["maven"], scope: .system, condition: #"[ -f "$root/etc/maven/settings.xml" ]"#,
            needsAuthority: false, place: "/etc/maven/settings.xml",
            commands: ["set_up_maven /etc/maven/settings.xml"]),
        SetupStep(
            tools: ["Chromium"], scope: .system, condition: "is_installed chromium", needsAuthority: false,
            place: "/etc/chromium/policies/managed/larder.json",
            commands: ["chromium_policy | write_file /etc/chromium/policies/managed/larder.json"]),
        SetupStep(
            tools: ["Chromium"], scope: .system, condition: "is_installed google-chrome", needsAuthority: false,
            place: "/etc/opt/chrome/policies/managed/larder.json",
            commands: ["chromium_policy | write_file /etc/opt/chrome/policies/managed/larder.json"]),
        SetupStep(
            tools: ["Firefox"], scope: .system,
            condition: "{ is_installed firefox || is_installed firefox-esr; }", needsAuthority: false,
            place: "/etc/firefox/policies/policies.json", commands: ["set_up_firefox"]),
        SetupStep(
            tools: ["maven"], scope: .user, condition: "is_installed mvn", needsAuthority: false,
            place: "~/.m2/settings.xml", commands: [#"set_up_maven "$HOME/.m2/settings.xml""#]),
        SetupStep(
            tools: ["wget"], scope: .user, condition: "is_installed wget", needsAuthority: true, place: "~/.wgetrc",
            commands: ["set_up_wget"]),
        SetupStep(
            tools: ["aria2"], scope: .user, condition: "is_installed aria2c", needsAuthority: true,
            place: "~/.config/aria2/aria2.conf", commands: ["set_up_aria2"]),
        SetupStep(
            tools: ["Chromium"], scope: .user,
            condition:
                #"is_installed certutil && { is_installed chromium || is_installed google-chrome || [ -d "$HOME/.pki/nssdb" ]; }"#,
            needsAuthority: true, place: "~/.pki/nssdb", commands: ["set_up_nss"]),
    ]
}
