extension RegistryClient {
    static let go = RegistryClient(
        name: "go", recipe: "go", programs: ["go", "python3"], limits: limitsOfStoredFiles,
        publish: { host, release in
            let version = "/example.test/demo/@v/v\(release.version)"
            try host.place.write("www/example.test/demo/@v/list", "v\(release.version)\n".utf8)
            try host.place.write(
                "www\(version).info", #"{ "Version": "v\#(release.version)", "Time": "2026-01-01T00:00:00Z" }"#.utf8)
            try host.place.write("www\(version).mod", "module example.test/demo\n".utf8)
            try await host.place.zip(
                "www\(version).zip",
                [
                    "example.test/demo@v\(release.version)/go.mod": "module example.test/demo\n",
                    "example.test/demo@v\(release.version)/demo.go": "package demo // \(release.text)\n",
                ])
            return ["zip", "mod", "info"].map { "\(version).\($0)" }
        },
        install: { host, home, _ in
            try host.place.write(
                "\(home.name)/go.mod", "module user\n".utf8)
            var environment = host.environment(home: home)
            environment["GOPROXY"] = host.url
            environment["GOSUMDB"] = "off"
            environment["GOTOOLCHAIN"] = "local"
            environment["GOFLAGS"] = "-modcacherw"
            return try await host.place.run(
                "go", ["get", "example.test/demo@latest"], environment: environment, in: home.path)
        })
}
