import Testing

@Suite("Signatures and checksums beside their documents")
struct CompanionScenarios {
    private static let rules = """
        rules:
          - match: { path: "/d/*" }
            ttl: 1h
        """

    /// A client gets both documents, which are fresh for an hour.
    private func fill(_ s: Scenario, _ paths: [String]) throws {
        for path in paths {
            s.origin.expects("GET \(path)").replies(200, "ETag: \"1\"", body: "1 of \(path)")
            #expect(try s.client().get(path).status == 200)
        }
        for path in paths { #expect(try s.client().get(path).cacheStatus.hasPrefix("larder; hit")) }
    }

    static let pairs = [
        ["/d/Release", "/d/Release.gpg"], ["/d/Release.gpg", "/d/Release"],
        ["/d/repodata/repomd.xml", "/d/repodata/repomd.xml.asc"],
        ["/d/maven-metadata.xml", "/d/maven-metadata.xml.sha1"],
    ]
    @Test(arguments: pairs) func `if one has changed, the other is validated before it is served again`(
        _ pair: [String]
    ) throws {
        try scenario(cache: Self.rules) { s in
            try fill(s, pair)
            let client = try s.client()
            s.origin.expects("GET \(pair[0])").replies(200, "ETag: \"2\"", body: "2")
            #expect(try client.get(pair[0], "Cache-Control: no-cache").text == "2")
            s.origin.expects("GET \(pair[1])", "If-None-Match: \"1\"").replies(200, "ETag: \"2\"", body: "2 as well")
            #expect(try client.get(pair[1]).text == "2 as well")
            // The other has changed now: the first is validated once, and is what it was.
            s.origin.expects("GET \(pair[0])", "If-None-Match: \"2\"").replies(304, "ETag: \"2\"")
            #expect(try client.get(pair[0]).text == "2")
            for path in pair { #expect(try client.get(path).cacheStatus.hasPrefix("larder; hit")) }
        }
    }

    @Test func `if one has the content that it had, the other stays fresh`() throws {
        try scenario(cache: Self.rules) { s in
            try fill(s, Self.pairs[0])
            let client = try s.client()
            s.origin.expects("GET /d/Release").replies(200, body: "1 of /d/Release")
            #expect(try client.get("/d/Release", "Cache-Control: no-cache").status == 200)
            #expect(try client.get("/d/Release.gpg").cacheStatus.hasPrefix("larder; hit"))
        }
    }
}
