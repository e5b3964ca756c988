import Testing

extension RegistryClient {
    /// A project that needs no plugin: its parent comes from the repository, and so does an extension, whose jar Maven downloads with its POM and
    /// their checksums.
    static let maven = RegistryClient(
        name: "maven", recipe: "maven", programs: ["mvn", "python3"],
        publish: { host in
            var artefacts: [String] = []
            for (name, packaging) in [("parent", "pom"), ("demo", "jar")] {
                let file = "/maven/test/example/\(name)/1.0/\(name)-1.0"
                try host.place.write("www\(file).pom", model(of: name, packaging: packaging).utf8)
                artefacts.append("\(file).pom")
            }
            let jar = "/maven/test/example/demo/1.0/demo-1.0.jar"
            try await host.place.zip(
                "www\(jar)",
                ["META-INF/MANIFEST.MF": "Manifest-Version: 1.0\n", "data": String(repeating: "x", count: 50_000)])
            artefacts.append(jar)
            for artefact in artefacts {
                let digest = try await host.place.digest(of: "www\(artefact)", "sha1sum")
                try host.place.write("www\(artefact).sha1", digest.utf8)
            }
            return artefacts + artefacts.map { "\($0).sha1" }
        },
        install: { host, home in
            let project = home.name
            try host.place.write("\(project)/settings.xml", settings(host).utf8)
            try host.place.write("\(project)/pom.xml", model(of: "user", packaging: "pom", parent: "parent").utf8)
            try host.place.write(
                "\(project)/.mvn/extensions.xml",
                "<extensions><extension>\(coordinates("demo"))</extension></extensions>".utf8
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
        }, installs: "repository/test/example/demo/1.0/demo-1.0.jar")

    private static func coordinates(_ name: String) -> String {
        "<groupId>test.example</groupId><artifactId>\(name)</artifactId><version>1.0</version>"
    }

    private static func model(of name: String, packaging: String, parent: String? = nil) -> String {
        let parent = parent.map { "<parent>\(coordinates($0))<relativePath/></parent>" } ?? ""
        return """
            <project><modelVersion>4.0.0</modelVersion>\(coordinates(name))<packaging>\(packaging)</packaging>\(parent)</project>
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
