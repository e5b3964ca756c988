import Foundation
import Glibc
import ProgramUnderTest
import Testing

/// docs/https.md says which programs enforce name constraints, and where. This is the proof.
@Suite(
    "Leaves and name constraints in real TLS clients",
    .enabled(if: installed("openssl") != nil && installed("python3") != nil, "packages openssl, python3"))
struct LeafTests {
    /// Below the name of `--host '*.example.test'`, and longer than a common name may be.
    static let long = String(repeating: "a", count: 60) + ".example.test"
    static let constraints =
        "nameConstraints=critical,permitted;DNS:example.test,excluded;IP:0.0.0.0/0.0.0.0,excluded;IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0"

    /// The rows that must be accepted, and those that must be refused, of one authority.
    private func check(
        _ client: LeafClient, _ authority: LeafAuthority, accepts: [String], refuses: [String]
    ) async throws {
        let server = try await LeafServer.start(in: authority.place, leaves: authority.leaves)
        try await client.prepare(authority)
        for host in accepts where client.canAsk(for: host) {
            let output = try await client.fetch(host, authority, server)
            #expect(output.status == 0, "\(client.name) refused \(host) of \(authority.directory): \(output)")
        }
        for host in refuses where client.canAsk(for: host) {
            let output = try await client.fetch(host, authority, server)
            #expect(output.status != 0, "\(client.name) accepted \(host) of \(authority.directory): \(output)")
        }
    }

    @Test(arguments: LeafClient.all.filter(\.isInstalled))
    func `leaves of a constrained authority are accepted, and what it must not certify is refused`(
        _ client: LeafClient
    ) async throws {
        try await Workplace.with { place in
            let names = try await LeafAuthority.made(in: place, "names", "--host", "*.example.test")
            try names.issue("a.example.test", Self.long)
            try await names.forge("b.test", "192.0.2.2")
            try await check(client, names, accepts: ["a.example.test", Self.long], refuses: ["b.test", "192.0.2.2"])
        }
    }

    @Test(arguments: LeafClient.all.filter { $0.isInstalled && $0.knowsAddresses })
    func `an authority for an address certifies no other`(_ client: LeafClient) async throws {
        try await Workplace.with { place in
            let address = try await LeafAuthority.made(
                in: place, "address", "--host", "192.0.2.1", "--host", "a.example.test")
            try address.issue("192.0.2.1", "a.example.test")
            try await address.forge("192.0.2.2", "2001:db8::1", "b.test")
            try await check(
                client, address, accepts: ["192.0.2.1", "a.example.test"],
                refuses: ["192.0.2.2", "2001:db8::1", "b.test"])
        }
    }

    @Test(.enabled(if: installed("curl") != nil, "package curl"))
    func `the proxy hands out the root, and both roots during a rotation`() async throws {
        try await Workplace.with { place in
            let authority = try await LeafAuthority.made(in: place, "ca", "--host", "*.example.test")
            let larder = try await Larder.start(
                in: place,
                more: """
                    intercept:
                      ca: { certificate: \(place.path("ca/intermediate.pem")), key: \(place.path("ca/intermediate.key")) }
                      hosts: [ "*.example.test" ]
                    """)
            func page(_ name: String) async throws -> String {
                let output = try await place.run("curl", ["-sS", "\(larder.url)/\(name)"])
                try #require(output.status == 0, "\(output)")
                return output.out
            }
            let root = textOfFile(authority.root)
            #expect(try await page("ca.pem") == root)
            #expect(try await page("ca-bundle.pem").hasPrefix(root))
            let shown = try await larder.command("ca", "show", "--json")
            let fingerprint = try #require(shown.out.firstMatch(of: /"roots":\[\{[^}]*"sha256":"([0-9a-f]{64})"/)).1
            #expect(larder.child.errors.contains("--ca-sha256 \(fingerprint)"), "\(larder.child.errors)")

            let rotated = try await larder.command("ca", "rotate")
            #expect(rotated.status == 0, "\(rotated)")
            larder.child.signal(SIGHUP)
            let both = try await eventually("both roots are handed out") {
                let text = try await page("ca.pem")
                return text == root ? nil : text
            }
            #expect(both == root + textOfFile(place.path("ca/next/root.pem")))
        }
    }

    /// So it is the constraints that the clients above heeded.
    @Test(arguments: LeafClient.all.filter(\.isInstalled))
    func `an unconstrained authority can certify everything`(_ client: LeafClient) async throws {
        try await Workplace.with { place in
            let free = try await LeafAuthority.made(in: place, "free", "--unconstrained")
            try free.issue("a.example.test", "192.0.2.1")
            try await free.forge("b.test", "192.0.2.2")
            try await check(client, free, accepts: ["a.example.test", "192.0.2.1", "b.test", "192.0.2.2"], refuses: [])
        }
    }

    @Test(arguments: LeafClient.all.filter(\.isInstalled))
    func `constraints in the intermediate alone are enough`(_ client: LeafClient) async throws {
        try await Workplace.with { place in
            let authority = try await LeafAuthority.foreign(
                in: place, "intermediate", root: "", intermediate: Self.constraints)
            try await authority.forge("a.example.test", "b.test", "192.0.2.2")
            try await check(client, authority, accepts: ["a.example.test"], refuses: ["b.test", "192.0.2.2"])
        }
    }

    @Test(arguments: LeafClient.all.filter(\.isInstalled))
    func `constraints in the root alone are not enough for every client`(_ client: LeafClient) async throws {
        try await Workplace.with { place in
            let authority = try await LeafAuthority.foreign(in: place, "root", root: Self.constraints, intermediate: "")
            try await authority.forge("a.example.test", "b.test", "192.0.2.2")
            let foreign = ["b.test", "192.0.2.2"]
            try await check(
                client, authority, accepts: ["a.example.test"] + (client.heedsRoot ? [] : foreign),
                refuses: client.heedsRoot ? foreign : [])
        }
    }
}

extension LeafClient {
    /// NSS sends no SNI for an address, and its test client knows no proxy.
    fileprivate func canAsk(for host: String) -> Bool { knowsAddresses || host.contains { "g"..."z" ~= $0 } }
}
