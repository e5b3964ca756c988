extension RegistryClient {
    static let go = RegistryClient(
        name: "go", recipe: "go", programs: ["go", "python3"],
        publish: { host in
            let version = "/example.test/demo/@v/v1.0.0"
            try host.place.write("www/example.test/demo/@v/list", "v1.0.0\n".utf8)
            try host.place.write(
                "www\(version).info", #"{ "Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z" }"#.utf8)
            try host.place.write("www\(version).mod", "module example.test/demo\n".utf8)
            try await host.place.zip(
                "www\(version).zip",
                [
                    "example.test/demo@v1.0.0/go.mod": "module example.test/demo\n",
                    "example.test/demo@v1.0.0/demo.go": "package demo\n",
                ])
            return ["info", "mod", "zip"].map { "\(version).\($0)" }
        },
        install: { host, home in
            try host.place.write(
                "\(home.name)/go.mod", "module user\n\nrequire example.test/demo v1.0.0\n".utf8)
            var environment = host.environment(home: home)
            environment["GOPROXY"] = host.url
            environment["GOSUMDB"] = "off"
            environment["GOTOOLCHAIN"] = "local"
            environment["GOFLAGS"] = "-modcacherw"
            return try await host.place.run(
                "go", ["mod", "download", "-x", "example.test/demo"], environment: environment, in: home.path)
        }, installs: "go/pkg/mod/example.test/demo@v1.0.0/demo.go")
}
