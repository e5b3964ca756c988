import Testing

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
        ("nuget", "<add key=\"a\" value=\"https://nuget.example.org/v3/index.json\" />", ["nuget.example.org"]),
        ("nix", "substituters = https://nix.example.org https://[::1]:80/\n", ["nix.example.org", "::1"]),
    ]
    @Test(arguments: rows) func `the hosts of the URLs, without comments and other settings`(
        _ row: (recipe: String, text: String, hosts: [String])
    ) throws {
        let tool = try #require(ToolConfiguration.all.first { $0.recipe == row.recipe })
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
