import ClientSetup
import Message
import TLS
import Testing

func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

/// Something that stands for a certificate.
func blob(_ name: String) -> [UInt8] {
    Array("certificate \(name) of some length, so that base 64 takes two lines".utf8)
}

@Suite("Client setup: the pages")
struct PagesTests {
    static let now = WallTime(secondsSinceEpoch: 784_111_777)
    static let place = ProxyPlace(host: Array("proxy.example.org".utf8), port: 3128)
    static let pages = Pages(
        roots: [blob("larder")], systemRoots: [blob("one"), blob("larder"), blob("two")], now: now, sha1: Digest.sha1)

    func page(_ name: Pages.Name, of pages: Pages = pages, at place: ProxyPlace? = place) throws -> Pages.Page {
        guard case .page(let page) = pages.answer(name, place: place) else {
            throw Absent(name: name)
        }
        return page
    }
    struct Absent: Error { let name: Pages.Name }

    @Test func `ca.pem has Larder's roots alone`() throws {
        #expect(PEMCertificates.read(try page(.authority).body) == [blob("larder")])
    }

    @Test func `ca-bundle.pem has Larder's roots and the system's, each once`() throws {
        #expect(PEMCertificates.read(try page(.bundle).body) == [blob("larder"), blob("one"), blob("two")])
    }

    @Test func `truststore.jks has the same certificates`() throws {
        let store = try page(.trustStore).body
        for name in ["larder", "one", "two"] { #expect(text(store).contains(text(blob(name)))) }
        // Magic, version and count.
        #expect(Array(store.prefix(12)) == [0xFE, 0xED, 0xFE, 0xED, 0, 0, 0, 2, 0, 0, 0, 3])
    }

    @Test(arguments: [Pages.Name.authority, .bundle, .trustStore])
    func `without an authority there is no page with certificates`(_ name: Pages.Name) {
        #expect(Pages().answer(name, place: Self.place) == .noAuthority)
    }

    @Test(arguments: [Pages.Name.setupScript, .proxyConfiguration, .autoDiscovery])
    func `pages that name the proxy need its place, and no authority`(_ name: Pages.Name) throws {
        #expect(Pages().answer(name, place: nil) == .noPlace)
        #expect(text(try page(name, of: Pages()).body).contains("proxy.example.org:3128"))
    }

    @Test func `an entity tag changes with the page`() throws {
        let other = ProxyPlace(host: Array("other.example.org".utf8), port: 3128)
        #expect(try page(.setupScript).eTag == page(.setupScript).eTag)
        #expect(try page(.setupScript).eTag != page(.setupScript, at: other).eTag)
        #expect(try page(.authority).eTag != page(.bundle).eTag)
    }

    @Test func `proxy.pac names what browsers reach without the proxy`() throws {
        var direct = DirectDestinations()
        direct.hosts = ["printer.example", "fd00::1"]
        direct.suffixes = [".internal"]
        direct.networks = [
            .init(IPAddress(v4: 0x0A00_0000), prefixLength: 8), .init(IPAddress(v4: 0), prefixLength: 0),
        ]
        let script = text(try page(.proxyConfiguration, of: Pages(direct: direct)).body)
        for part in [
            #"host === "printer.example""#, #"host === "fd00::1""#, #"host === "[fd00::1]""#,
            #"dnsDomainIs(host, ".internal")"#,
            #"isInNet(host, "10.0.0.0", "255.0.0.0")"#, #"isInNet(host, "0.0.0.0", "0.0.0.0")"#,
        ] { #expect(script.contains(part), "\(script)") }
    }

    @Test func `proxy.pac sends everything through the proxy, but what is local`() throws {
        let script = text(try page(.proxyConfiguration).body)
        #expect(script.contains("return \"PROXY proxy.example.org:3128\";"))
        #expect(script.contains("host === \"localhost\""))
        #expect(text(try page(.autoDiscovery).body) == script)
    }
}

@Suite("Client setup: PEM (RFC 7468)")
struct PEMTests {
    @Test func `what is written is read`() {
        let certificates = [blob("a"), blob("b")]
        #expect(PEMCertificates.read(PEMCertificates.write(certificates)) == certificates)
        #expect(text(PEMCertificates.write(certificates)).split(separator: "\n").allSatisfy { $0.count <= 64 })
    }

    static let rows: [(name: String, file: String, count: Int)] = [
        ("text around it", "x\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\ny\n", 1),
        ("line ends of Windows", "-----BEGIN CERTIFICATE-----\r\nAAAA\r\n-----END CERTIFICATE-----\r\n", 1),
        (
            "the same twice",
            String(repeating: "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", count: 2), 1
        ),
        ("a key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0),
        ("no base 64", "-----BEGIN CERTIFICATE-----\nA*AA\n-----END CERTIFICATE-----\n", 0),
        ("no end", "-----BEGIN CERTIFICATE-----\nAAAA\n", 0),
        ("nothing in it", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", 0),
        ("an empty file", "", 0),
    ]
    @Test(arguments: rows) func `only whole certificates count`(_ row: (name: String, file: String, count: Int)) {
        #expect(PEMCertificates.read(row.file.utf8).count == row.count, "\(row.name)")
    }
}

@Suite("Client setup: where the proxy is")
struct ProxyPlaceTests {
    static let accepted: [(host: String, authority: String, plain: String)] = [
        ("proxy", "proxy:80", "proxy"), ("Proxy.Example.ORG", "proxy.example.org:80", "proxy.example.org"),
        ("larder_proxy", "larder_proxy:80", "larder_proxy"), ("127.0.0.1", "127.0.0.1:80", "127.0.0.1"),
        ("[::1]", "[::1]:80", "::1"), ("[fe80::A]", "[fe80::a]:80", "fe80::a"),
    ]
    @Test(arguments: accepted) func `names and addresses are accepted`(
        _ row: (host: String, authority: String, plain: String)
    ) {
        let place = ProxyPlace(host: Array(row.host.utf8), port: 80)
        #expect(place?.authority == row.authority && place?.plainHost == row.plain)
    }

    static let refused = [
        "", "-x", ".", "a b", "a'b", "a\"b", "a`b`", "$(id)", "${HOME}", "a;b", "a&b", "a|b", "a\\b", "a\nb", "a/b",
        "a%27b", "a!b", "a*b", "a~b", "a#b", "[", "[]", "[::1", "::1", "[::1%25eth0]", "[::1'x]", "ä.example",
        String(repeating: "a", count: 256),
    ]
    @Test(arguments: refused) func `whatever a shell could interpret is refused`(_ host: String) {
        #expect(ProxyPlace(host: Array(host.utf8), port: 80) == nil)
    }

    @Test func `every byte that is not of a name or an address is refused, wherever it stands`() {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._".utf8)
        for byte in UInt8.min...UInt8.max where !allowed.contains(byte) {
            #expect(ProxyPlace(host: [0x61, byte, 0x61], port: 80) == nil, "\(byte)")
            #expect(ProxyPlace(host: [0x61, byte], port: 80) == nil, "\(byte)")
        }
    }

    @Test func `port 0 is refused`() { #expect(ProxyPlace(host: Array("a".utf8), port: 0) == nil) }
}
