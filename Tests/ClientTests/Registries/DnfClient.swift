import ProgramUnderTest
import Testing

extension RegistryClient {
    /// It takes the key from the registry, and compares the signature of `repomd.xml`.
    static let dnf = RegistryClient(
        name: "dnf", recipe: "rpm", programs: ["dnf", "rpmbuild", "createrepo_c"] + SigningKey.programs,
        ways: [.http, .password],
        limits: limitsOfStoredFiles.merging([.originDown: "it asks for repomd.xml with no-cache"]) { $1 },
        publish: { host, release in
            let place = host.place
            try place.write("data", release.padded.utf8)
            let package = try place.write(
                "larder-demo.spec",
                """
                Name: larder-demo
                Version: \(release.version)
                Release: 1
                Summary: made for a test
                License: none
                BuildArch: noarch
                %description
                made for a test
                %install
                install -D -m 644 \(place.path("data")) %{buildroot}/usr/share/larder-demo/data
                %files
                /usr/share/larder-demo/data

                """.utf8)
            let repository = try place.makeDirectory("www/rpm")
            let file = "rpm/larder-demo-\(release.version).noarch.rpm"
            // Without compression, so that the text of the release is found in it.
            let settings = [
                "_topdir \(place.path("build"))", "_rpmdir \(repository)", "_binary_payload w0.gzdio",
                "_build_name_fmt %%{NAME}-%%{VERSION}.%%{ARCH}.rpm",
            ]
            let built = try await place.run(
                "rpmbuild", ["-bb", "--quiet"] + settings.flatMap { ["--define", $0] } + [package])
            try #require(built.status == 0, "\(built)")
            let indexed = try await place.run(
                "createrepo_c",
                ["-q", "--no-database", "--includepkg", "larder-demo-\(release.version).noarch.rpm", repository])
            try #require(indexed.status == 0, "\(indexed)")
            let key = try await SigningKey.take(in: place)
            try await key.sign("www/rpm/repodata/repomd.xml", beside: "www/rpm/repodata/repomd.xml.asc")
            try place.write("www/rpm/repodata/repomd.xml.key", place.bytes("key.asc"))
            let index = textOfFile(place.path("www/rpm/repodata/repomd.xml")).matches(of: /href="([^"]*)"/)
            // Of the indexes it takes these two.
            let taken = index.map { "/rpm/\($0.1)" }.filter { $0.contains("-primary") || $0.contains("-filelists") }
            return ["/\(file)"] + taken
        },
        install: { host, home, _ in
            var repository = [
                "name=demo", "baseurl=\(host.url)/rpm", "repo_gpgcheck=1", "gpgcheck=0",
                "gpgkey=\(host.url)/rpm/repodata/repomd.xml.key", "proxy=\(host.larder.url)", "retries=1",
            ]
            if host.credentials != nil { repository += ["proxy_username=ali", "proxy_password=sesame"] }
            if let root = host.root { repository.append("sslcacert=\(root)") }
            let folders = ["cache", "persist", "log", "repos", "vars"]
            let main =
                ["plugins=0", "cachedir=\(home.path)/cache", "persistdir=\(home.path)/persist"]
                + ["logdir=\(home.path)/log", "reposdir=\(home.path)/repos", "varsdir=\(home.path)/vars"]
            for folder in folders { try host.place.makeDirectory("\(home.name)/\(folder)") }
            let configuration = try host.place.write(
                "\(home.name)/dnf.conf",
                "[main]\n\(main.joined(separator: "\n"))\n[demo]\n\(repository.joined(separator: "\n"))\n".utf8)
            return try await host.place.run(
                "dnf",
                [
                    "-c", configuration, "-y", "--installroot=\(home.path)/root", "--releasever=1", "install",
                    "--downloadonly", "larder-demo",
                ], environment: ["HOME": home.path])
        })
}
