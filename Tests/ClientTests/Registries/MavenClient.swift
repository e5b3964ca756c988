import Testing

extension RegistryClient {
    /// A project that needs no plugin: its parent comes from the repository, and so does an extension, whose jar Maven downloads with its POM and
    /// their checksums.
    static let maven = RegistryClient(
        name: "maven", recipe: "maven", programs: ["mvn", "python3"], limits: limitsOfStoredFiles,
        publish: { host, release in
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
            return artefacts + artefacts.map { "\($0).sha1" }
        },
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
}
