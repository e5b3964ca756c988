import Testing

extension RegistryClient {
    /// A project that needs no plugin: its parent comes from the repository, and so does an extension, whose jar Maven downloads with its POM and
    /// their checksums.
    static let maven = RegistryClient(
        name: "maven", recipe: "maven", programs: ["mvn", "python3"], limits: limitsOfStoredFiles,
        publish: publishRepository,
        install: { host, home, release in
            let project = home.name
            try host.place.write("\(project)/settings.xml", settings(host).utf8)
            try host.place.write(
                "\(project)/pom.xml", model(of: "user", release.version, packaging: "pom", parent: "parent").utf8)
            try host.place.write(
                "\(project)/.mvn/extensions.xml",
                "<extensions><extension>\(coordinates("demo", release.version))</extension></extensions>".utf8
            )
            var environment = ["HOME": home.path]
            if host.root != nil {
                environment["MAVEN_OPTS"] = "-Djavax.net.ssl.trustStore=\(try await host.trustStore())"
            }
            return try await host.place.run(
                "mvn",
                [
                    "-B", "-ntp", "-s", "settings.xml", "-gs", "settings.xml",
                    "-Dmaven.repo.local=\(home.path)/repository",
                    "validate",
                ], environment: environment, in: home.path)
        })

    /// A build that needs no plugin. It takes the newest version of the index, and neither asks for the parent nor for checksums.
    static let gradle = RegistryClient(
        name: "gradle", recipe: "maven", programs: ["gradle", "python3"], ways: [.http, .password],
        limits: [.replacedFile: "Larder serves the stored file", .wrongBody: "it compares no digest"],
        publish: { host, release in
            try await publishRepository(host, release).filter { $0.contains("/demo/") && !$0.hasSuffix(".sha1") }
        },
        install: { host, home, _ in
            let project = home.name
            try host.place.write("\(project)/user/gradle.properties", try await properties(host).utf8)
            try host.place.write("\(project)/settings.gradle", [])
            try host.place.write(
                "\(project)/build.gradle",
                """
                repositories { maven { url "\(host.url)/maven" } }
                configurations { demo }
                dependencies { demo "test.example:demo:+" }
                task install(type: Copy) { from configurations.demo; into "installed" }

                """.utf8)
            // A build this short is over before the second compiler pays off.
            return try await host.place.run(
                "gradle", ["--no-daemon", "--console", "plain", "-g", "user", "install"],
                environment: ["HOME": home.path, "GRADLE_OPTS": "-XX:TieredStopAtLevel=1"], in: home.path)
        })

    /// A repository with the package, its parent and its index.
    @Sendable private static func publishRepository(_ host: ProxiedHost, _ release: Release) async throws -> [String] {
        let version = release.version
        let jar = "/maven/test/example/demo/\(version)/demo-\(version).jar"
        try await host.place.zip(
            "www\(jar)", ["META-INF/MANIFEST.MF": "Manifest-Version: 1.0\n", "data": release.padded])
        var artefacts = [jar]
        for (name, packaging) in [("parent", "pom"), ("demo", "jar")] {
            let file = "/maven/test/example/\(name)/\(version)/\(name)-\(version)"
            try host.place.write("www\(file).pom", model(of: name, version, packaging: packaging).utf8)
            artefacts.append("\(file).pom")
        }
        for artefact in artefacts {
            let digest = try await host.place.digest(of: "www\(artefact)", "sha1sum")
            try host.place.write("www\(artefact).sha1", digest.utf8)
        }
        try host.place.write(
            "www/maven/test/example/demo/maven-metadata.xml",
            """
            <metadata><groupId>test.example</groupId><artifactId>demo</artifactId>
              <versioning><release>\(version)</release><versions><version>\(version)</version></versions></versioning></metadata>
            """.utf8)
        return artefacts + artefacts.map { "\($0).sha1" }
    }

    private static func coordinates(_ name: String, _ version: String) -> String {
        "<groupId>test.example</groupId><artifactId>\(name)</artifactId><version>\(version)</version>"
    }

    private static func model(of name: String, _ version: String, packaging: String, parent: String? = nil) -> String {
        let parent = parent.map { "<parent>\(coordinates($0, version))<relativePath/></parent>" } ?? ""
        return """
            <project><modelVersion>4.0.0</modelVersion>\(coordinates(name, version))<packaging>\(packaging)</packaging>\(parent)</project>
            """
    }

    /// One proxy is enough for Maven, whatever its protocol.
    private static func settings(_ host: ProxiedHost) -> String {
        let login = host.credentials == nil ? "" : "<username>ali</username><password>sesame</password>"
        return """
            <settings>
              <proxies><proxy><active>true</active><protocol>http</protocol><host>127.0.0.1</host>
                <port>\(host.larder.port)</port>\(login)</proxy></proxies>
              <mirrors><mirror><id>demo</id><mirrorOf>*</mirrorOf><url>\(host.url)/maven</url></mirror></mirrors>
            </settings>
            """
    }

    /// Of gradle. It has a proxy for each protocol of origins.
    private static func properties(_ host: ProxiedHost) async throws -> String {
        var properties: [String] = []
        for scheme in ["http", "https"] {
            properties += ["\(scheme).proxyHost=127.0.0.1", "\(scheme).proxyPort=\(host.larder.port)"]
            guard host.credentials != nil else { continue }
            properties += ["\(scheme).proxyUser=ali", "\(scheme).proxyPassword=sesame"]
        }
        if host.root != nil { properties.append("javax.net.ssl.trustStore=\(try await host.trustStore())") }
        return properties.map { "systemProp.\($0)\n" }.joined()
    }
}
