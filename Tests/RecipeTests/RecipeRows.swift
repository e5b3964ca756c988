let hex40 = "0123456789abcdef0123456789abcdef01234567"
let hex64 = hex40 + "0123456789abcdef01234567"
let hex60 = String(hex64.dropLast(4))
private let hex128 = hex64 + hex64

/// What becomes of which path, by ecosystem: the plain cases, and those that caches have got wrong.
enum RecipeRows {
    static let all =
        languages + virtualMachines + systems + containers + sources + others

    private static let languages =
        rows(
            "python",
            [
                ("/packages/ab/cd/\(hex60)/six-1.16.0-py2.py3-none-any.whl", .immutable),
                ("/packages/ab/cd/\(hex60)/six-1.16.0-py2.py3-none-any.whl.metadata", .immutable),
                ("/packages/ab/cd/\(hex60)/six-1.16.0.tar.gz", .immutable),
                ("/packages/ab/cd/\(hex60)0/six-1.16.0.tar.gz", .revalidated),
                ("/packages/source/s/six/six-1.16.0.tar.gz", .revalidated),
                ("/packages/source/s/six/README", .revalidated),
                ("/whl/cpu/torch-2.0-cp311-linux_x86_64.whl", .exactly(86_400)),
                ("/simple/", .atMost(600)), ("/simple/six/", .atMost(600)), ("/simple/six", .atMost(600)),
                ("/team/pypi/simple/six/", .atMost(600)), ("/pypi/six/json", .atMost(600)),
                ("/ann/dev/+simple/six/", .atMost(600)), ("/ann/dev/+simple/", .atMost(600)),
                ("/pypi/six/1.16.0/json", .atMost(600)),
                ("/simple/six/extra", .revalidated), ("/", .revalidated),
            ])
        + rows(
            "npm",
            [
                ("/left-pad/-/left-pad-1.3.0.tgz", .immutable), ("/@acme/tool/-/tool-1.0.0.tgz", .immutable),
                ("/@acme%2ftool/-/tool-1.0.0.tgz", .immutable),
                ("/api/npm/all/left-pad/-/left-pad-1.3.0.tgz", .immutable),
                ("/left-pad", .atMost(300)), ("/@acme%2ftool", .atMost(300)), ("/@acme%2Ftool", .atMost(300)),
                ("/@acme/tool", .atMost(300)), ("/left-pad/1.3.0", .atMost(300)), ("/left-pad/latest", .atMost(300)),
                ("/files/left-pad-1.3.0.tgz", .revalidated), ("/a/b/left-pad-1.3.0.tgz", .revalidated),
                ("/a/b/c", .revalidated), ("/repository/npm/left-pad", .revalidated), ("/a/b/", .revalidated),
                ("/api/npm/npm/@acme%2ftool", .revalidated),
                ("/-/left-pad-1.3.0.tgz", .revalidated), ("/-/package/left-pad/dist-tags", .atMost(300)),
                ("/-/npm/v1/security/advisories/bulk", .neverStored), ("/-/whoami", .neverStored),
                ("/-/user/org.couchdb.user:me", .neverStored), ("/-/v1/search", .revalidated),
                ("/-/ping", .revalidated),
            ])
        + rows(
            "cargo",
            [
                ("/crates/serde/serde-1.0.0.crate", .immutable), ("/crates/a-b/a-b-1.0.0+x.crate", .immutable),
                ("/api/v1/crates/serde/1.0.0/download", .immutable), ("/serde/1.0.0/download", .immutable),
                ("/config.json", .atMost(60)), ("/index/config.json", .atMost(60)), ("/1/a", .atMost(60)),
                ("/2/ab", .atMost(60)), ("/3/a/abc", .atMost(60)), ("/se/rd/serde", .atMost(60)),
                ("/api/v1/crates/serde", .revalidated), ("/api/v1/me", .neverStored),
                ("/api/v1/crates/serde/owners", .neverStored), ("/ser/rd/serde", .revalidated), ("/", .revalidated),
            ])
        + rows(
            "go",
            [
                ("/example.org/m/@v/v1.2.3.zip", .immutable), ("/example.org/m/@v/v1.2.3.mod", .immutable),
                ("/example.org/m/@v/v1.2.3.info", .immutable),
                ("/example.org/m/@v/v2.0.0+incompatible.zip", .immutable),
                ("/example.org/m/@v/v0.0.0-20200101000000-abcdefabcdef.info", .immutable),
                ("/example.org/m/@v/v1.0.0-rc.1.zip", .immutable), ("/example.org/!m/@v/v1.2.3.mod", .immutable),
                ("/example.org/m/@v/master.info", .atMost(60)), ("/example.org/m/@v/v1.info", .atMost(60)),
                ("/example.org/m/@v/v1.2.info", .atMost(60)), ("/example.org/m/@v/list", .atMost(60)),
                ("/example.org/m/@latest", .atMost(60)), ("/sumdb/sum.example.org/latest", .atMost(60)),
                ("/sumdb/sum.example.org/tile/8/0/x001/234", .immutable), ("/tile/8/1/000.p/17", .immutable),
                ("/lookup/example.org/m@v1.2.3", .immutable), ("/sumdb/sum.example.org/supported", .revalidated),
            ])
        + rows(
            "rubygems",
            [
                ("/gems/rake-13.0.6.gem", .immutable), ("/quick/Marshal.4.8/rake-13.0.6.gemspec.rz", .immutable),
                ("/versions", .atMost(60)), ("/info/rake", .atMost(60)), ("/names", .atMost(60)),
                ("/specs.4.8.gz", .atMost(60)), ("/latest_specs.4.8.gz", .atMost(60)),
                ("/prerelease_specs.4.8", .atMost(60)),
                ("/api/v1/dependencies?gems=rake", .atMost(60)), ("/api/v1/api_key.json", .neverStored),
                ("/api/v1/gems/rake.json", .revalidated), ("/gems/rake", .revalidated),
            ])
        + rows(
            "composer",
            [
                ("/packages.json", .atMost(300)), ("/p2/acme/tool.json", .atMost(300)),
                ("/p2/acme/tool~dev.json", .atMost(300)),
                ("/p/provider-latest$\(hex64).json", .immutable), ("/p/acme/tool$\(hex64).json", .immutable),
                ("/p/acme/tool.json", .revalidated), ("/acme/tool/legacy.zip/\(hex40)", .exactly(604_800)),
                ("/repos/acme/tool/zipball/\(hex40)", .exactly(604_800)),
                ("/acme/tool/zip/refs/heads/main", .revalidated),
                ("/dist/acme-tool-\(hex40).zip", .exactly(604_800)), ("/search.json?q=a", .revalidated),
            ])

    private static let virtualMachines =
        rows(
            "maven",
            [
                ("/maven2/org/a/b/1.0/b-1.0.jar", .immutable), ("/maven2/org/a/b/1.0/b-1.0.pom", .immutable),
                ("/maven2/org/a/b/1.0/b-1.0.jar.sha1", .immutable), ("/maven2/org/a/b/1.0/b-1.0.pom.asc", .immutable),
                ("/maven2/org/a/b/1.0/b-1.0-sources.jar", .immutable), ("/maven2/org/a/b/1.0/b-1.0.module", .immutable),
                ("/maven2/org/a/b/maven-metadata.xml", .atMost(300)),
                ("/maven2/org/a/b/maven-metadata.xml.sha1", .atMost(300)),
                ("/maven2/org/a/b/1.0-SNAPSHOT/maven-metadata.xml", .atMost(300)),
                ("/maven2/org/a/b/1.0-SNAPSHOT/b-1.0-SNAPSHOT.jar", .revalidated),
                ("/maven2/org/a/b/1.0-SNAPSHOT/b-1.0-20260102.030405-7.jar", .immutable),
                ("/maven2/org/a/b/1.0-SNAPSHOT/b-1.0-20260102.030405-7-sources.jar", .immutable),
                ("/maven2/org/a/b/1.0-SNAPSHOT/b-1.0-20260102.030405.jar", .revalidated),
                ("/ivy/org/b/1.0-SNAPSHOT/jars/b.jar", .revalidated), ("/ivy/org/b/1.0/jars/b.jar", .revalidated),
                ("/maven2/archetype-catalog.xml", .atMost(300)), ("/maven2/org/a/b/", .revalidated),
                ("/maven2/org/a/b-c/1.0-2/b-c-1.0-2-javadoc.jar.asc.sha1", .immutable),
                ("/maven2/org/a/b/1.0/c-1.0.jar", .revalidated), ("/maven2/org/a/b/1.0/b-1.1.jar", .revalidated),
                ("/maven2/org/a/b/1.0/b-1.00.jar", .revalidated), ("/maven2/org/a/b/1.0/b-1.0-.jar", .revalidated),
                ("/maven2/org/a/b/LATEST/b-LATEST.jar", .revalidated),
                ("/maven2/org/a/b/[RELEASE]/b-[RELEASE].jar", .revalidated),
                ("/maven2/org/a/b/%5BRELEASE%5D/b-%5BRELEASE%5D.jar", .revalidated),
                ("/service/rest/v1/status/check.json", .revalidated),
                ("/repository/rpm/repodata/repomd.xml", .revalidated),
                ("/repository/nuget/v3/index.json", .revalidated),
            ])
        + rows(
            "nuget",
            [
                ("/v3/index.json", .atMost(300)), ("/v3-flatcontainer/a.b/index.json", .atMost(300)),
                ("/v3/registration5-semver1/a.b/index.json", .atMost(300)),
                ("/v3/registration5-semver1/a.b/page/1.0.0/2.0.0.json", .atMost(300)),
                ("/v3/registration5-semver1/a.b/1.0.0.json", .atMost(300)),
                ("/v3-flatcontainer/a.b/1.0.0/a.b.1.0.0.nupkg", .immutable),
                ("/v3-flatcontainer/a.b/1.0.0/a.b.nuspec", .immutable),
                ("/v3-flatcontainer/a.b/1.0.0/a.b.1.0.0.nupkg.sha512", .immutable), ("/query?q=a", .revalidated),
                ("/v3-flatcontainer/a.b/1.0.0/readme", .revalidated),
            ])

    private static let systems =
        rows(
            "debian",
            [
                ("/debian/dists/stable/InRelease", .atMost(120)), ("/debian/dists/stable/Release.gpg", .atMost(120)),
                ("/debian/dists/stable/main/binary-amd64/Packages.xz", .atMost(120)), ("/flat/Release", .atMost(120)),
                ("/debian/dists/stable/main/binary-amd64/by-hash/SHA256/\(hex64)", .immutable),
                ("/debian/dists/stable/main/binary-amd64/by-hash/SHA512/\(hex128)", .immutable),
                ("/debian/dists/stable/main/binary-amd64/by-hash/SHA1/\(hex40)", .immutable),
                ("/debian/dists/stable/main/binary-amd64/by-hash/SHA256/\(hex40)", .atMost(120)),
                ("/debian/pool/main/h/hello/hello_2.10-3_amd64.deb", .exactly(604_800)),
                ("/debian/pool/main/h/hello/hello_2.10.orig.tar.xz", .exactly(604_800)),
                ("/debian/pool/main/h/hello/", .revalidated), ("/flat/hello.deb", .revalidated),
            ])
        + rows(
            "rpm",
            [
                ("/os/repodata/repomd.xml", .atMost(300)), ("/os/repodata/repomd.xml.asc", .atMost(300)),
                ("/metalink?repo=a", .atMost(300)), ("/os/mirrorlist", .atMost(300)),
                ("/os/repodata/\(hex64)-primary.xml.gz", .immutable),
                ("/os/repodata/\(hex128)-primary.xml.zst", .immutable),
                ("/os/repodata/\(hex40)-primary.xml.gz", .immutable),
                ("/os/repodata/primary.xml.gz", .revalidated), ("/os/repodata/\(hex64)primary.xml.gz", .revalidated),
                ("/os/Packages/h/hello-2.10-1.x86_64.rpm", .exactly(604_800)),
                ("/os/drpms/a_b.drpm", .exactly(604_800)),
                ("/os/Packages/", .revalidated),
            ])
        + rows(
            "alpine",
            [
                ("/alpine/v3.20/main/x86_64/APKINDEX.tar.gz", .atMost(300)),
                ("/edge/main/x86_64/APKINDEX.tar.gz", .atMost(300)),
                ("/alpine/v3.20/main/x86_64/busybox-1.36.1-r29.apk", .exactly(604_800)),
                ("/alpine/edge/community/x86_64/a-b-1_git20200101-r0.apk", .exactly(604_800)),
                ("/alpine/v3.20/main/x86_64/busybox.apk", .revalidated),
                ("/alpine/v3.20/main/x86_64/busybox-1.36.1.apk", .revalidated),
                ("/alpine/latest-stable/releases/x86_64/alpine-3.20.iso", .revalidated), ("/alpine/", .revalidated),
            ])
        + rows(
            "nix",
            [
                ("/nix-cache-info", .atMost(3600)), ("/0123456789abcdfghijklmnpqrsvwxyz.narinfo", .atMost(86_400)),
                ("/0123456789abcdfghijklmnpqrsvwxy.narinfo", .revalidated),
                ("/nar/\(hex60.prefix(52)).nar.xz", .immutable), ("/nar/0123.nar", .revalidated),
                ("/0123456789abcdfghijklmnpqrsvwxyz.ls", .atMost(86_400)), ("/log/abc.drv", .revalidated),
                ("/", .revalidated),
            ])

    private static let containers =
        rows(
            "oci",
            [
                ("/v2/library/alpine/blobs/sha256:\(hex64)", .immutable),
                ("/v2/a/b/c/blobs/sha512:\(hex128)", .immutable),
                ("/v2/library/alpine/manifests/sha256:\(hex64)", .immutable),
                ("/v2/library/alpine/manifests/latest", .revalidated), ("/v2/library/alpine/tags/list", .revalidated),
                ("/v2/library/alpine/blobs/sha256:\(hex40)", .revalidated), ("/v2/", .neverStored),
                ("/token?service=a&scope=b", .neverStored), ("/v2/auth", .neverStored),
                ("/registry-v2/docker/registry/v2/blobs/sha256/01/\(hex64)/data?verify=1-a", .immutable),
                ("/ghcr1/blobs/sha256:\(hex64)?se=1&sig=a", .immutable), ("/sha256/01/\(hex64)", .immutable),
                ("/v2/a/blobs/uploads/\(hex64)", .revalidated), ("/v2/a/referrers/sha256:\(hex64)", .revalidated),
            ])

    private static let sources =
        rows(
            "github",
            [
                ("/acme/tool/releases/download/v1.0/tool.tar.gz", .atMost(86_400)),
                ("/acme/tool/releases/latest/download/tool.tar.gz", .revalidated),
                ("/acme/tool/releases/latest", .revalidated), ("/acme/tool/\(hex40)/src/main.c", .immutable),
                ("/acme/tool/main/src/main.c", .revalidated), ("/acme/tool/tar.gz/\(hex40)", .exactly(604_800)),
                ("/acme/tool/archive/\(hex40).zip", .exactly(604_800)),
                ("/acme/tool/tar.gz/refs/tags/v1.0", .atMost(86_400)),
                ("/acme/tool/tar.gz/refs/heads/main", .revalidated),
                ("/acme/tool/archive/refs/tags/v1.0.tar.gz", .atMost(86_400)),
                ("/github-production-release-asset-2e65be/1234/0f-ab?X-Amz-Signature=1", .atMost(86_400)),
                ("/login", .neverStored), ("/acme/tool/info/refs?service=git-upload-pack", .revalidated),
            ])
        + rows(
            "git-lfs",
            [
                ("/acme/tool.git/info/lfs/objects/batch", .neverStored),
                ("/acme/tool.git/info/lfs/locks", .neverStored),
                ("/alambic/media/objects/\(hex64)", .immutable), ("/objects/\(hex64)/1234", .immutable),
                ("/store/01/23/\(hex64)?X-Amz-Signature=1", .immutable), ("/store/01/23/\(hex60)", .immutable),
                ("/objects/\(hex40)", .revalidated), ("/acme/tool.git/info/refs", .revalidated),
                ("/locks/verify", .neverStored),
            ])
        + rows(
            "huggingface",
            [
                ("/acme/model/resolve/\(hex40)/config.json", .immutable),
                ("/datasets/acme/d/resolve/\(hex40)/a/b.bin", .immutable),
                ("/acme/model/resolve/main/config.json", .revalidated),
                ("/acme/model/resolve/v1.0/config.json", .revalidated),
                ("/api/models/acme/model", .revalidated),
                ("/api/models/acme/model/xet-read-token/\(hex40)", .neverStored),
                ("/v1/reconstructions/\(hex64)", .neverStored), ("/api/whoami-v2", .neverStored),
                ("/repos/01/23/\(hex64)/\(hex64)?Signature=1", .immutable), ("/repos/01/23/\(hex64)", .revalidated),
            ])

    private static let others =
        rows(
            "conda",
            [
                ("/conda-forge/linux-64/repodata.json", .atMost(600)),
                ("/conda-forge/linux-64/repodata.json.zst", .atMost(600)),
                ("/conda-forge/linux-64/current_repodata.json", .atMost(600)), ("/main/channeldata.json", .atMost(600)),
                ("/conda-forge/linux-64/repodata_shards.msgpack.zst", .atMost(600)),
                ("/conda-forge/linux-64/\(hex64).msgpack.zst", .immutable),
                ("/conda-forge/noarch/six-1.16.0-pyh6c4a22f_0.conda", .immutable),
                ("/conda-forge/linux-64/python-3.12.0-h_0.tar.bz2", .immutable),
                ("/conda-forge/linux-64/repodata.jlap", .revalidated),
                ("/conda-forge/linux-64/six.conda", .revalidated),
            ])
        + rows(
            "terraform",
            [
                ("/.well-known/terraform.json", .atMost(300)), ("/v1/providers/acme/cloud/versions", .atMost(300)),
                ("/v1/modules/acme/vpc/aws/versions", .atMost(300)), ("/terraform/index.json", .atMost(300)),
                ("/v1/providers/acme/cloud/1.0.0/download/linux/amd64", .revalidated),
                ("/terraform/1.9.0/terraform_1.9.0_linux_amd64.zip", .immutable),
                ("/terraform/1.9.0/terraform_1.9.0_SHA256SUMS", .immutable),
                ("/terraform/1.9.0/terraform_1.9.0_SHA256SUMS.sig", .immutable), ("/terraform/1.9.0/", .revalidated),
                ("/terraform/1.9.0/latest.zip", .revalidated),
                ("/terraform/1.9.0/consul_1.9.0_linux.zip", .revalidated),
                ("/acme/p/releases/download/v1.0.0/p_1.0.0_linux_amd64.zip", .atMost(86_400)),
            ])
        + rows(
            "vscode",
            [
                ("/extensions/acme/tool/1.0.0/1700000000/Microsoft.VisualStudio.Services.VSIXPackage", .immutable),
                ("/extensions/acme/tool/latest/1/a", .revalidated),
                (
                    "/_apis/public/gallery/publishers/acme/vsextensions/tool/1.0.0/vspackage?targetPlatform=a",
                    .immutable
                ),
                ("/_apis/public/gallery/publishers/acme/vsextensions/tool/latest/vspackage", .revalidated),
                ("/_apis/public/gallery/publisher/acme/extension/tool/1.0.0/assetbyname/a.vsix", .immutable),
                ("/_apis/public/gallery/extensionquery", .revalidated),
                ("/api/acme/tool/1.0.0/file/acme.tool-1.0.0.vsix", .immutable),
                ("/api/acme/tool/latest", .revalidated), ("/vscode/asset/acme/tool/1.0.0/package", .immutable),
                ("/api/acme/tool", .revalidated),
            ])
}
