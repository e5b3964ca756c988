import Testing

import Provisioning
@testable import larder

@Suite("larder recipe hosts: what tools are configured for")
struct ToolConfigurationTests {
    static let rows: [(recipe: String, text: String, hosts: [String])] = [
        (
            "python",
            "[global]\n# index-url = https://no.example.org/\nindex-url = https://me:word@Pip.example.org:8443/simple\nproxy = http://proxy.example.org\n",
            ["pip.example.org"]
        ),
        (
            "npm",
            "registry=https://npm.example.org/\n@acme:registry=https://acme.example.org/npm/\n;registry=https://no.example.org\n//npm.example.org/:_authToken=a\n",
            ["npm.example.org", "acme.example.org"]
        ),
        (
            "cargo",
            "[registries.a]\nindex = \"sparse+https://index.example.org/\"\n[source.b]\nregistry = \"https://git.example.org/index\"\n",
            ["index.example.org", "git.example.org"]
        ),
        ("maven", "<mirror>\n<url>https://maven.example.org/maven2</url>\n</mirror>", ["maven.example.org"]),
        (
            "debian",
            "# deb http://no.example.org/debian stable main\ndeb [signed-by=/a] http://deb.example.org/debian stable main\nURIs: http://a.example.org/ https://b.example.org/\n",
            ["deb.example.org", "a.example.org", "b.example.org"]
        ),
        ("rpm", "[a]\nname=http://no.example.org\nbaseurl=https://rpm.example.org/$releasever/\n", ["rpm.example.org"]),
        (
            "alpine", "http://apk.example.org/alpine/v3.20/main\nhttp://apk.example.org/alpine/v3.20/community\n",
            ["apk.example.org"]
        ),
        ("oci", "{ \"registry-mirrors\": [\"https://mirror.example.org\"] }", ["mirror.example.org"]),
        (
            "oci",
            "{\n\"registry-mirrors\": [\n\"https://mirror.example.org:5000\"\n],\n\"http-proxy\": \"http://proxy.example.org\" }",
            ["mirror.example.org"]
        ),
        (
            "conda",
            "channels:\n  - https://conda.example.org/main\n  - defaults\nproxy_servers:\n  http: http://proxy.example.org:3128\n  https: http://proxy.example.org:3128\n",
            ["conda.example.org"]
        ),
        (
            "nuget",
            "<add key=\"http_proxy\" value=\"http://proxy.example.org\" />\n<add key=\"a\" value=\"https://n.example.org/\" />",
            ["n.example.org"]
        ),
        (
            "composer",
            "{ \"repositories\": [ { \"type\": \"composer\",\n\"url\": \"https://php.example.org\" } ],\n\"homepage\": \"https://no.example.org\" }",
            ["php.example.org"]
        ),
        ("nuget", "<add key=\"a\" value=\"https://nuget.example.org/v3/index.json\" />", ["nuget.example.org"]),
        ("nix", "substituters = https://nix.example.org https://[::1]:80/\n", ["nix.example.org", "::1"]),
    ]
    @Test(arguments: rows) func `the hosts of the URLs, without comments and other settings`(
        _ row: (recipe: String, text: String, hosts: [String])
    ) throws {
        let tool = try #require(ToolConfiguration.all.first { $0.recipe == row.recipe })
        #expect(tool.hosts(in: row.text) == row.hosts)
    }

    static let containers: [(file: String, text: String, hosts: [String])] = [
        (
            "/etc/containers/registries.conf",
            """
            # unqualified-search-registries = ["no.example.org"]
            unqualified-search-registries = ["a.example.org", 'b.example.org:5000']
            [[registry]]
            prefix = "*.c.example.org"
            location = "d.example.org/team"
            insecure = true
            [[registry.mirror]]
              location = "Mirror.example.org:5000/d"
            [aliases]
              "image" = "no.example.org/image"
            """,
            ["a.example.org", "b.example.org", "*.c.example.org", "d.example.org", "mirror.example.org"]
        ),
        (
            "~/.docker/config.json",
            """
            {
              "auths": {
                "registry.example.org": { "auth": "bWU6d29yZA==" },
                "https://index.example.org/v1/": {}
              },
              "proxies": { "default": {
                "httpProxy": "http://proxy.example.org:3128"
              } }
            }
            """,
            ["registry.example.org", "index.example.org"]
        ),
    ]
    @Test(arguments: containers) func `tools of containers name registries without a scheme`(
        _ row: (file: String, text: String, hosts: [String])
    ) throws {
        let tool = try #require(ToolConfiguration.all.first { $0.files.contains(row.file) })
        #expect(tool.recipe == "oci")
        #expect(tool.hosts(in: row.text) == row.hosts)
    }

    @Test func `only web URLs have hosts`() {
        #expect(
            hostsOfURLs(in: "https://a.test|http://b.test,direct file:///c ftp://d.test http:// x") == [
                "a.test", "b.test",
            ])
        #expect(hostsOfURLs(in: "git+ssh://e.test/x").isEmpty)
    }

    @Test func `every recipe that is named is there`() {
        let names = RecipeBook.files.map(\.name)
        for tool in ToolConfiguration.all { #expect(names.contains(tool.recipe)) }
    }
}
