import Foundation
import Testing

/// Real clients of package registries. Each installs twice with a fresh home, and the second time no artefact comes from the origin.
@Suite("Clients of package registries", .enabled(if: Nginx.isInstalled, "package nginx-light"))
struct RegistryClientTests {
    /// The origin gives no lifetime of use, so that without a recipe each file would be asked for again.
    private static let unhelpful = "add_header Cache-Control 'max-age=0';"

    struct Row: Sendable, CustomTestStringConvertible {
        let client: RegistryClient
        let way: Way
        var testDescription: String { "\(client.name), \(way.rawValue)" }
    }
    static let rows = RegistryClient.all.filter(\.isInstalled).flatMap { client in
        client.ways.map { Row(client: client, way: $0) }
    }

    @Test(arguments: rows) func `an artefact is fetched from the origin once`(_ row: Row) async throws {
        try await Workplace.with { place in
            let (client, way) = (row.client, row.way)
            let host = try await ProxiedHost.start(
                way, in: place, recipe: client.recipe, server: "\(Self.unhelpful) \(client.server)")
            let artefacts = try await client.publish(host)
            for round in 1...2 {
                let home = Home(name: "home-\(round)", path: try place.makeDirectory("home-\(round)"))
                let output = try await client.install(host, home)
                #expect(output.status == 0, "round \(round): \(output)")
                #expect(!place.bytes("\(home.name)/\(client.installs)").isEmpty, "round \(round): \(output)")
            }
            let asked = host.nginx.asked
            let paths = asked.map { $0.split(separator: " ").prefix(3).joined(separator: " ") }
            for artefact in artefacts {
                let requests = host.nginx.asked(artefact)
                #expect(requests.filter { $0.contains(" 200 ") }.count == 1, "\(artefact): \(paths)")
                #expect(requests.count == 1 || client.isValidated, "\(artefact): \(paths)")
            }
            #expect(!artefacts.isEmpty)
            #expect(asked.allSatisfy { $0.contains("via=\"1.1 larder") && $0.contains("pa=\"-\"") }, "\(asked)")
            if way != .http { #expect(try await host.larder.statistic("tunnels", "intercepted") >= 2) }
        }
    }
}
