import Foundation
import Testing

/// Real clients of package registries, whose registry changes or fails between one installation and the next. Each installs with a fresh home.
@Suite("Clients of package registries that change or fail", .enabled(if: Nginx.isInstalled, "package nginx-light"))
struct RegistryChangeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let client: RegistryClient
        let change: RegistryClient.Change
        var testDescription: String { "\(client.name), \(change.rawValue)" }
    }
    static let rows = RegistryClient.all.filter(\.isInstalled).flatMap { client in
        RegistryClient.Change.allCases.filter { client.limits[$0] == nil }.map { Row(client: client, change: $0) }
    }

    @Test(arguments: rows) func `a client gets what the registry says now, or what it said last`(
        _ row: Row
    ) async throws {
        let client = row.client
        try await Workplace.with { place in
            let lifetime = row.change == .originDown ? RegistryClient.Lifetime.unsaid : .none
            try await client.withRegistry(client.ways[0], lifetime: lifetime, in: place) { host in
                let first = Release()
                let file = try #require(try await client.publish(host, first).first)
                // Validators of nginx count in seconds.
                let aged = try await place.run(
                    "find", [place.path("www"), "-type", "f", "-exec", "touch", "-d", "50 days ago", "{}", "+"])
                try #require(aged.status == 0, "\(aged)")
                var second = first
                switch row.change {
                case .newVersion, .replacedFile:
                    try await expectInstalled(first, by: client, from: host, home: "before")
                    if row.change == .newVersion { second.version = "1.1.0" }
                    second.content = "as it was published later"
                    _ = try await client.publish(host, second)
                case .originDown:
                    try await expectInstalled(first, by: client, from: host, home: "before")
                    await host.nginx.child.stop()
                case .brokenOff, .wrongBody:
                    if row.change == .brokenOff { try place.breakOff(file) } else { try place.makeWrong(file) }
                    let home = try Home.make("before", in: place)
                    let output = try await client.install(host, home, first)
                    #expect(output.status != 0, "\(output)")
                    #expect(!host.nginx.asked(file).isEmpty, "\(host.nginx.asked)")
                    try place.mend(file)
                }
                try await expectInstalled(second, by: client, from: host, home: "after")
            }
        }
    }

    private func expectInstalled(
        _ release: Release, by client: RegistryClient, from host: ProxiedHost, home name: String
    ) async throws {
        let home = try Home.make(name, in: host.place)
        let output = try await client.install(host, home, release)
        try #require(output.status == 0, "\(name): \(output)\n\(host.nginx.asked.joined(separator: "\n"))")
        #expect(try await home.has(release, in: host.place), "\(name): \(output)")
    }
}
