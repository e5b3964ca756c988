import Testing

@testable import Caching

@Suite("Documents that clients take together")
struct CompanionDocumentsTests {
    static let rows: [(key: String, includes: [String])] = [
        ("http://a/dists/x/Release", ["http://a/dists/x/Release.gpg"]),
        ("http://a/dists/x/Release.gpg", ["http://a/dists/x/Release"]),
        ("http://a/repodata/repomd.xml", ["http://a/repodata/repomd.xml.asc"]),
        ("http://a/repodata/repomd.xml.asc", ["http://a/repodata/repomd.xml"]),
        (
            "http://a/g/maven-metadata.xml",
            [
                "http://a/g/maven-metadata.xml.sha1", "http://a/g/maven-metadata.xml.md5",
                "http://a/g/maven-metadata.xml.asc",
            ]
        ),
        (
            "http://a/g/maven-metadata.xml.sha1",
            ["http://a/g/maven-metadata.xml", "http://a/g/maven-metadata.xml.sha256"]
        ),
        ("http://a/x_1_SHA256SUMS", ["http://a/x_1_SHA256SUMS.sig"]),
        ("http://a/SHA512SUMS.gpg", ["http://a/SHA512SUMS"]),
        ("http://a/Release#credential-12", ["http://a/Release.gpg#credential-12"]),
    ]
    @Test(arguments: rows) func `a document and its signatures and checksums belong together`(
        _ row: (key: String, includes: [String])
    ) {
        let others = CompanionDocuments.others(of: Array(row.key.utf8)).map { String(decoding: $0, as: UTF8.self) }
        #expect(Set(others).isSuperset(of: row.includes) && !others.contains(row.key), "\(others)")
        #expect(others.count == 7)
    }

    @Test(arguments: [
        "http://a/", "http://a/x.jar", "http://a/x.jar.sha1", "http://a/x/PreRelease", "http://a/Release/",
        "http://a/.gpg",
        "http://a/Release?x", "http://a/InRelease",
    ])
    func `others stand alone`(_ key: String) {
        #expect(CompanionDocuments.others(of: Array(key.utf8)).isEmpty)
    }
}
