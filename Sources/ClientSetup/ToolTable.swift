/// Every tool, and what it takes to set it up: the one place where this is written down.
///
/// What is marked as tried was tried with the programs of Debian 12 and of the Python index, each setting alone. Everything else is from the
/// documentation of the tool.
extension Tool {
    package static let all: [Tool] = [
        Tool(
            "curl", ["curl"],
            proxy: variables("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
                + [.file("~/.curlrc", key: "proxy", .none)],
            authority: [
                .systemStore, .variable("CURL_CA_BUNDLE", .replaces), .variable("SSL_CERT_FILE", .replaces),
                .variable("SSL_CERT_DIR", .adds), .file("~/.curlrc", key: "cacert", .replaces),
            ],
            traps: ["`HTTP_PROXY` in upper case is not read.", "`CURL_CA_BUNDLE` is read by curl, not by libcurl."],
            probe: ToolProbe("{program}", "-fsS", "-m", "20", "-o", "{dir}/out", "{url}/file")),
        Tool(
            "wget", ["wget"],
            proxy: variables("http_proxy", "https_proxy") + [.file("~/.wgetrc", key: "http_proxy, https_proxy", .none)],
            authority: [.systemStore, .file("~/.wgetrc", key: "ca_certificate", .adds)],
            traps: ["No variable names a CA. `no_proxy=*` has no effect."],
            probe: ToolProbe("{program}", "-nv", "-T", "20", "-t", "1", "-O", "{dir}/out", "{url}/file")),
        Tool(
            "aria2", ["aria2c"],
            proxy: variables("http_proxy", "https_proxy", "all_proxy")
                + [.file("~/.aria2/aria2.conf", key: "all-proxy", .none)],
            authority: [.systemStore, .file("~/.aria2/aria2.conf", key: "ca-certificate", .replaces)],
            traps: ["In `no_proxy`, `example.org` does not mean the hosts below it; `.example.org` does."],
            probe: ToolProbe("{program}", "--dir={dir}", "--timeout=20", "--max-tries=1", "{url}/file")),
        Tool(
            "git", ["git"],
            proxy: variables("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
                + [.file("~/.gitconfig", key: "http.proxy", .none)],
            authority: [
                .systemStore, .variable("GIT_SSL_CAINFO", .adds), .file("~/.gitconfig", key: "http.sslCAInfo", .adds),
            ],
            traps: [
                "`SSL_CERT_FILE` has no effect on Debian's git, which uses GnuTLS. Built with OpenSSL, "
                    + "`GIT_SSL_CAINFO` replaces the system's certificates.", "`git@` and `ssh://` use no proxy.",
            ],
            probe: ToolProbe(
                "{program}", "ls-remote", "{url}/repository.git", environment: ["GIT_TERMINAL_PROMPT": "0"],
                mayBeCached: false)),
        Tool(
            "apt", ["apt-get"],
            proxy: [.file("/etc/apt/apt.conf.d", key: "Acquire::http::Proxy, Acquire::https::Proxy", .none)]
                + variables("http_proxy", "https_proxy"),
            authority: [.systemStore, .file("/etc/apt/apt.conf.d", key: "Acquire::https::CaInfo", .replaces)],
            traps: ["`sudo` drops the variables. apt downloads as the user `_apt`, who must be able to read the CA."],
            probe: ToolProbe("/usr/lib/apt/apt-helper", "download-file", "{url}/file", "{dir}/file")),
        Tool(
            "dnf", ["dnf"],
            proxy: [.file("/etc/dnf/dnf.conf", key: "proxy", .none)]
                + variables("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
            authority: [.systemStore, .file("/etc/dnf/dnf.conf", key: "sslcacert", .adds)]),
        Tool(
            "pip", ["pip", "pip3"],
            proxy: anyCase + [.variable("PIP_PROXY", .none), .file("pip.conf", key: "proxy", .none)],
            authority: [
                .systemStore, .variable("PIP_CERT", .replaces), .variable("REQUESTS_CA_BUNDLE", .replaces),
                .variable("CURL_CA_BUNDLE", .replaces), .variable("SSL_CERT_FILE", .replaces),
                .file("pip.conf", key: "cert", .replaces),
            ],
            traps: [
                "From 24.2 on pip reads the system's certificates, and the variables add to them. Before, it reads a "
                    + "file of its own.", "An isolated build inherits the variables, and not `--cert`.",
            ],
            probe: ToolProbe(
                "{program}", "download", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--retries", "0",
                "--timeout", "20", "-d", "{dir}", "{url}/larder_check-1.0-py3-none-any.whl")),
        Tool(
            "uv", ["uv"],
            proxy: anyCase + allProxy + [.file("uv.toml", key: "http-proxy, https-proxy", .none)],
            authority: [.variable("SSL_CERT_FILE", .replaces), .variable("SSL_CERT_DIR", .replaces)],
            traps: [
                "It reads the system's certificates only with `UV_SYSTEM_CERTS=1` (`UV_NATIVE_TLS` before 0.11). It "
                    + "ignores `REQUESTS_CA_BUNDLE`."
            ],
            probe: ToolProbe(
                "{program}", "pip", "install", "--no-cache", "--no-deps", "--target", "{dir}",
                "{url}/larder_check-1.0-py3-none-any.whl")),
        Tool(
            "poetry", ["poetry"], proxy: anyCase + allProxy,
            authority: [.variable("REQUESTS_CA_BUNDLE", .replaces), .variable("CURL_CA_BUNDLE", .replaces)],
            probe: ToolProbe(
                "{program}", "lock", "--no-interaction", "-C", "{dir}",
                environment: ["POETRY_CACHE_DIR": "{dir}/cache", "POETRY_VIRTUALENVS_CREATE": "false"],
                files: ["pyproject.toml": ProbeProjects.poetry])),
        Tool(
            "pdm", ["pdm"], proxy: anyCase + allProxy,
            authority: [
                .systemStore, .variable("REQUESTS_CA_BUNDLE", .replaces), .variable("CURL_CA_BUNDLE", .replaces),
                .variable("SSL_CERT_FILE", .replaces), .file("pdm config", key: "pypi.ca_certs", .replaces),
            ],
            probe: ToolProbe(
                "{program}", "lock", "-p", "{dir}",
                environment: [
                    "PDM_CACHE_DIR": "{dir}/cache", "PDM_LOG_DIR": "{dir}/log", "PDM_CHECK_UPDATE": "0",
                ], files: ["pyproject.toml": ProbeProjects.pdm], mayBeCached: false,
                // Its own faults: some of its versions do not run with some of what they depend on.
                impossibleIf: ["AttributeError", "TypeError"])),
        Tool(
            "conda, mamba", ["conda", "mamba", "micromamba"],
            proxy: anyCase + [.file("~/.condarc", key: "proxy_servers", .none)],
            authority: [
                .variable("CONDA_SSL_VERIFY", .replaces), .variable("MAMBA_SSL_VERIFY", .replaces),
                .variable("REQUESTS_CA_BUNDLE", .replaces), .file("~/.condarc", key: "ssl_verify", .replaces),
            ], isTried: false,
            probe: ToolProbe(
                "{program}", "search", "--override-channels", "-c", "{url}", "larder-check",
                environment: ["CONDA_PKGS_DIRS": "{dir}/packages"], mayBeCached: false)),
        Tool(
            "Python: urllib, aiohttp", ["python3"], proxy: anyCase,
            authority: [.systemStore, .variable("SSL_CERT_FILE", .replaces), .variable("SSL_CERT_DIR", .adds)],
            traps: ["aiohttp reads the proxy's variables only with `trust_env=True`."],
            probe: ToolProbe(
                "{program}", "-c", "import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=20).read()",
                "{url}/file")),
        Tool(
            "Python: requests", ["python3"], proxy: anyCase + allProxy,
            authority: [.variable("REQUESTS_CA_BUNDLE", .replaces), .variable("CURL_CA_BUNDLE", .replaces)],
            traps: ["Without a variable it reads the file of certifi, and never the system's certificates."],
            probe: ToolProbe(
                "{program}", "-c", "import sys, requests; requests.get(sys.argv[1], timeout=20)", "{url}/file",
                impossibleIf: ["No module named"])),
        Tool(
            "Python: httpx, huggingface-hub", ["python3"], proxy: anyCase + allProxy,
            authority: [.variable("SSL_CERT_FILE", .replaces), .variable("SSL_CERT_DIR", .replaces)],
            probe: ToolProbe(
                "{program}", "-c", "import sys, httpx; httpx.get(sys.argv[1], timeout=20)", "{url}/file",
                impossibleIf: ["No module named"])),
        Tool(
            "aws", ["aws"], proxy: anyCase,
            authority: [
                .variable("AWS_CA_BUNDLE", .replaces), .variable("REQUESTS_CA_BUNDLE", .replaces),
                .file("~/.aws/config", key: "ca_bundle", .replaces),
            ], traps: ["botocore reads a file of its own without a variable."],
            probe: ToolProbe(
                "{program}", "s3api", "list-buckets", "--no-sign-request", "--region", "us-east-1", "--endpoint-url",
                "{url}", environment: ["AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"])),
        Tool(
            "gcloud", ["gcloud"], proxy: anyCase,
            authority: [
                .variable("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", .replaces), .variable("HTTPLIB2_CA_CERTS", .replaces),
            ], isTried: false,
            probe: ToolProbe(
                "{program}", "storage", "ls", "gs://larder-check",
                environment: [
                    "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": "{url}/", "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
                    "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
                ], ways: [.https], mayBeCached: false)),
        Tool(
            "npm", ["npm"],
            proxy: anyCase
                + [
                    .variable("npm_config_proxy", .none), .variable("npm_config_https_proxy", .none),
                    .file("~/.npmrc", key: "proxy, https-proxy", .none),
                ],
            authority: [
                .variable("NODE_EXTRA_CA_CERTS", .adds), .variable("npm_config_cafile", .replaces),
                .file("~/.npmrc", key: "cafile", .replaces),
            ],
            traps: [
                "It does not read the system's certificates, and with a `cafile` it ignores `NODE_EXTRA_CA_CERTS`. Each "
                    + "package's own downloads follow their own rules."
            ],
            probe: ToolProbe(
                "{program}", "view", "larder-check", "--registry", "{url}/", "--cache", "{dir}", "--fetch-retries", "0",
                "--fetch-timeout", "20000")),
        Tool(
            "yarn 1", ["yarn", "yarnpkg"],
            proxy: anyCase
                + [
                    .variable("YARN_PROXY", .none), .variable("YARN_HTTPS_PROXY", .none),
                    .file("~/.yarnrc", key: "proxy, https-proxy", .none),
                ],
            authority: [
                .variable("NODE_EXTRA_CA_CERTS", .adds), .variable("YARN_CAFILE", .replaces),
                .file("~/.yarnrc", key: "cafile", .replaces),
            ],
            probe: ToolProbe(
                "{program}", "info", "larder-check", "--registry", "{url}/", "--non-interactive", "--cache-folder",
                "{dir}",
                impossibleIf: ["Usage Error", "Unknown Syntax Error"])),
        Tool(
            "yarn 2 and later", ["yarn", "yarnpkg"],
            proxy: [.variable("YARN_HTTP_PROXY", .none), .variable("YARN_HTTPS_PROXY", .none)],
            authority: [
                .variable("NODE_EXTRA_CA_CERTS", .adds), .variable("YARN_HTTPS_CA_FILE_PATH", .replaces),
            ], isTried: false,
            traps: ["It ignores `HTTPS_PROXY`. What corepack downloads follows neither setting."],
            probe: ToolProbe(
                "{program}", "npm", "info", "larder-check", environment: ["YARN_NPM_REGISTRY_SERVER": "{url}"],
                files: ["package.json": "{}", "yarn.lock": ""], ways: [.https], mayBeCached: false,
                impossibleIf: ["Command \"npm\" not found"])),
        Tool(
            "pnpm", ["pnpm"], proxy: anyCase,
            authority: [.variable("NODE_EXTRA_CA_CERTS", .adds), .file("~/.npmrc", key: "cafile", .replaces)],
            isTried: false,
            probe: ToolProbe(
                "{program}", "add", "larder-check", "--dir", "{dir}", "--store-dir", "{dir}/store", "--registry",
                "{url}/", "--config.cache-dir={dir}/cache", "--fetch-retries", "0", mayBeCached: false)),
        Tool(
            "node", ["node"],
            proxy: variables("NODE_USE_ENV_PROXY")
                + [.option("setGlobalDispatcher(new ProxyAgent(url))", .none)],
            authority: [
                .variable("NODE_EXTRA_CA_CERTS", .adds),
                .option("--use-openssl-ca with SSL_CERT_FILE", .replaces), .option("--use-system-ca", .adds),
            ],
            traps: [
                "`fetch` reads the proxy's variables only with `NODE_USE_ENV_PROXY=1`, from Node 22.21 and 24 on. Older "
                    + "ones use no proxy.", "It asks for `http` URLs through CONNECT as well.",
                "A library that passes `ca` itself ignores both settings.",
            ],
            probe: ToolProbe(
                "{program}", "-e",
                "const [major, minor] = process.versions.node.split('.').map(Number); "
                    + "if (major < 22 || major === 23 || (major === 22 && minor < 21)) throw 'no support for proxies'; "
                    + "fetch(process.argv[1]).then(r => r.text()).catch(e => { console.error(e.cause || e); process.exitCode = 1 })",
                "{url}/file", incapableIf: "no support for proxies")),
        Tool(
            "deno", ["deno"], proxy: anyCase,
            authority: [.variable("DENO_CERT", .adds), .variable("DENO_TLS_CA_STORE", .replaces)], isTried: false,
            probe: ToolProbe("{program}", "eval", "await (await fetch('{url}/file')).text()")),
        Tool(
            "bun", ["bun"], proxy: anyCase, authority: [.variable("NODE_EXTRA_CA_CERTS", .adds)], isTried: false,
            probe: ToolProbe("{program}", "-e", "await (await fetch('{url}/file')).text()")),
        Tool(
            "cargo", ["cargo"],
            proxy: variables("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "CARGO_HTTP_PROXY")
                + [.file("~/.cargo/config.toml", key: "http.proxy", .none)],
            authority: [
                .systemStore, .variable("CARGO_HTTP_CAINFO", .replaces), .variable("SSL_CERT_FILE", .replaces),
                .variable("SSL_CERT_DIR", .adds), .file("~/.cargo/config.toml", key: "http.cainfo", .replaces),
            ], traps: ["Dependencies from git follow git's settings if `net.git-fetch-with-cli` is on."],
            probe: ToolProbe(
                "{program}", "search", "larder-check", "--limit", "1", "--index", "sparse+{url}/",
                impossibleIf: ["-Z sparse-registry"])),
        Tool(
            "go, and programs in Go", ["go"], proxy: anyCase,
            authority: [.systemStore, .variable("SSL_CERT_FILE", .adds), .variable("SSL_CERT_DIR", .adds)],
            traps: ["Requests to localhost never use the proxy. On macOS and Windows only the system's store counts."],
            probe: ToolProbe(
                "{program}", "mod", "download", "larder.internal/check@v1.0.0",
                environment: ["GOPROXY": "{url}", "GONOSUMDB": "*", "GOFLAGS": "-modcacherw", "GOMODCACHE": "{dir}"])),
        Tool(
            "java", ["java"],
            proxy: [
                .variable("JAVA_TOOL_OPTIONS", .none), .option("-Dhttp.proxyHost, -Dhttps.proxyHost", .none),
            ],
            authority: [
                .systemStore, .variable("JAVA_TOOL_OPTIONS", .replaces),
                .option("-Djavax.net.ssl.trustStore", .replaces),
            ],
            traps: [
                "It reads no variable of the proxy. With `JAVA_TOOL_OPTIONS` every virtual machine prints a line on "
                    + "standard error.",
                "Debian's Java reads the system's certificates; others have their own, of which `setup.sh` makes a copy "
                    + "with the CA in it.",
            ],
            probe: ToolProbe(
                "{program}", "{dir}/Check.java", "{url}/file",
                files: [
                    "Check.java":
                        "import java.net.*; public class Check { public static void main(String[] words) throws Exception { new URL(words[0]).openStream().readAllBytes(); } }"
                ],
                impossibleIf: ["Could not find or load main class", "jdk.compiler"])),
        Tool(
            "maven", ["mvn"],
            proxy: [
                .file("settings.xml", key: "<proxies>", .none), .variable("MAVEN_OPTS", .none),
                .variable("JAVA_TOOL_OPTIONS", .none),
            ],
            authority: [
                .systemStore, .variable("MAVEN_OPTS", .replaces), .variable("JAVA_TOOL_OPTIONS", .replaces),
            ],
            probe: ToolProbe(
                "{program}", "-B", "-q", "-f", "{dir}/pom.xml", "-Dmaven.repo.local={dir}/repository", "validate",
                files: ["pom.xml": ProbeProjects.maven], ways: [.https], mayBeCached: false)),
        Tool(
            "gradle", ["gradle"],
            proxy: [
                .variable("JAVA_TOOL_OPTIONS", .none), .file("~/.gradle/gradle.properties", key: "systemProp.*", .none),
            ],
            authority: [.systemStore, .variable("JAVA_TOOL_OPTIONS", .replaces)], isTried: false,
            traps: ["Its daemon keeps the settings with which it was started: `gradle --stop`."],
            // With http, newer versions want leave that older ones do not know.
            probe: ToolProbe(
                "{program}", "--no-daemon", "-q", "--refresh-dependencies", "-p", "{dir}", "--project-cache-dir",
                "{dir}/cache", "probe", files: ["build.gradle": ProbeProjects.gradle, "settings.gradle": ""],
                ways: [.https], mayBeCached: false)),
        Tool(
            "gem", ["gem"], proxy: anyCase,
            authority: [
                .systemStore, .variable("SSL_CERT_FILE", .replaces), .variable("SSL_CERT_DIR", .adds),
                .file("~/.gemrc", key: ":ssl_ca_cert:", .adds),
            ],
            probe: ToolProbe("{program}", "fetch", "larder-check", "--clear-sources", "--source", "{url}/")),
        Tool(
            "bundler", ["bundle"], proxy: anyCase,
            authority: [
                .systemStore, .variable("SSL_CERT_FILE", .replaces), .variable("SSL_CERT_DIR", .adds),
                .variable("BUNDLE_SSL_CA_CERT", .unknown),
            ],
            probe: ToolProbe(
                "{program}", "lock",
                environment: ["BUNDLE_GEMFILE": "{dir}/Gemfile", "BUNDLE_USER_CACHE": "{dir}/cache"],
                files: ["Gemfile": "source \"{url}\"\ngem \"larder-check\"\n"])),
        Tool(
            "composer", ["composer"], proxy: anyCase + allProxy,
            authority: [
                .systemStore, .variable("SSL_CERT_FILE", .replaces), .variable("SSL_CERT_DIR", .adds),
                .variable("COMPOSER_CAFILE", .replaces), .file("composer config", key: "cafile", .replaces),
            ],
            probe: ToolProbe(
                "{program}", "update", "-d", "{dir}", "--no-interaction", "--no-plugins",
                environment: ["COMPOSER_CACHE_DIR": "{dir}/cache", "COMPOSER_ALLOW_SUPERUSER": "1"],
                files: ["composer.json": ProbeProjects.composer])),
        Tool(
            "dotnet, nuget", ["dotnet"], proxy: anyCase,
            authority: [.systemStore, .variable("SSL_CERT_FILE", .replaces), .variable("SSL_CERT_DIR", .adds)],
            isTried: false,
            // NuGet refuses a source that is reached over http.
            probe: ToolProbe(
                "{program}", "restore", "{dir}/probe.csproj", "--configfile", "{dir}/nuget.config",
                environment: [
                    "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1", "NUGET_PACKAGES": "{dir}/packages",
                    "NUGET_HTTP_CACHE_PATH": "{dir}/http",
                ], files: ["probe.csproj": ProbeProjects.dotnet, "nuget.config": ProbeProjects.nuget], ways: [.https],
                mayBeCached: false)),
        Tool(
            "skopeo", ["skopeo"], proxy: anyCase, authority: containerAuthority, traps: [containerTrap],
            probe: ToolProbe("{program}", "inspect", "docker://{place}:latest", ways: [.https])),
        Tool(
            "podman, buildah", ["podman", "buildah"], proxy: anyCase, authority: containerAuthority,
            traps: [containerTrap],
            // What Larder answers is no manifest, so nothing is pulled.
            probe: ToolProbe(
                "{program}", "--root", "{dir}/root", "--runroot", "{dir}/run", "--storage-driver", "vfs", "pull", "-q",
                "docker://{place}:latest", ways: [.https])),
        Tool(
            "docker", ["dockerd"],
            proxy: [
                .file("/etc/docker/daemon.json", key: "proxies", .none), .option("the environment of its unit", .none),
            ], authority: [.systemStore], isTried: false,
            traps: [
                "The daemon downloads, so it needs the variables: put the output of `setup.sh --print systemd` into "
                    + "`/etc/systemd/system/docker.service.d/larder.conf`, and restart it.",
                "Builds and containers have an environment of their own: `--print dockerfile`.",
            ],
            probe: ToolProbe(
                "docker", "pull", "-q", "{place}:latest", ways: [.https],
                impossibleIf: ["Cannot connect to the Docker daemon", "permission denied"])),
        Tool(
            "nix", ["nix"], proxy: anyCase, authority: [.variable("NIX_SSL_CERT_FILE", .replaces)], isTried: false,
            traps: ["The daemon has an environment of its own: `ssl-cert-file` in `nix.conf`."]),
        Tool(
            "mix, rebar3", ["mix", "rebar3"], proxy: anyCase, authority: [.variable("HEX_CACERTS_PATH", .replaces)],
            isTried: false),
        Tool(
            "julia", ["julia"], proxy: anyCase, authority: [.variable("JULIA_SSL_CA_ROOTS_PATH", .replaces)],
            isTried: false),
        Tool(
            "Perl: LWP", ["perl"], proxy: variables("http_proxy", "https_proxy"),
            authority: [.variable("PERL_LWP_SSL_CA_FILE", .replaces)], isTried: false),
        Tool(
            "gRPC", [], proxy: variables("grpc_proxy", "https_proxy", "http_proxy"),
            authority: [.variable("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", .replaces)], isTried: false,
            traps: ["It needs HTTP/2 inside the tunnel, so its hosts cannot be intercepted."]),
        Tool(
            "Chromium", ["chromium", "google-chrome"],
            proxy: [.file("/etc/chromium/policies/managed", key: "ProxySettings", .none)] + anyCase + allProxy,
            authority: [
                .file("/etc/chromium/policies/managed", key: "CACertificates", .adds),
                .file("~/.pki/nssdb", key: "certutil -A -t C,,", .adds),
            ], traps: ["The desktop's settings come before the variables. Snap and Flatpak have a home of their own."],
            probe: ToolProbe(
                "{program}", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir={dir}", "--dump-dom",
                "{url}/file")),
        Tool(
            "Firefox", ["firefox", "firefox-esr"],
            proxy: [.file("/etc/firefox/policies/policies.json", key: "Proxy", .none)],
            authority: [.file("/etc/firefox/policies/policies.json", key: "Certificates.Install", .adds)],
            traps: [
                "It has a store of its own. Without root, import `ca.pem` and set the proxy in its settings by hand."
            ],
            probe: ToolProbe(
                "{program}", "--headless", "--no-remote", "--profile", "{dir}", "--screenshot", "{dir}/page.png",
                "{url}/file", environment: ["HOME": "{dir}"])),
    ]

    private static let containerAuthority: [Source] = [
        .systemStore, .variable("SSL_CERT_FILE", .adds), .variable("SSL_CERT_DIR", .adds),
        .file("/etc/containers/certs.d/HOST", key: "ca.crt", .adds),
    ]
    private static let containerTrap = "`certs.d` is for one host. Layers often come from another."
    private static let anyCase = variables("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY")
    private static let allProxy = variables("all_proxy", "ALL_PROXY")
    private static func variables(_ names: String...) -> [Source] { names.map { .variable($0, .none) } }
}
