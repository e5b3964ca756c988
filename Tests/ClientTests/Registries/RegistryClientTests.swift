import Foundation
import Testing

/// Real clients of package registries. Each installs twice with a fresh home, and the second time no artefact comes from the origin.
@Suite("Clients of package registries", .enabled(if: Nginx.isInstalled, "package nginx-light"))
struct RegistryClientTests {
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
            try await row.client.withRegistry(row.way, in: place) { host in
                try await expectOneFetch(row.client, host)
            }
        }
    }

    private func expectOneFetch(_ client: RegistryClient, _ host: ProxiedHost) async throws {
        let place = host.place
        let release = Release()
        let artefacts = try await client.publish(host, release)
        var sent: [Int] = []
        for round in 1...2 {
            let home = try Home.make("home-\(round)", in: place)
            let output = try await client.install(host, home, release)
            #expect(output.status == 0, "round \(round): \(output)")
            #expect(try await home.has(release, in: place), "round \(round): \(output)")
            if client.asksForRanges { sent.append(try await host.larder.statistic("origins", "requests")) }
        }
        let asked = host.nginx.asked
        let paths = asked.map { $0.split(separator: " ").prefix(3).joined(separator: " ") }
        for artefact in artefacts {
            let requests = host.nginx.asked(artefact)
            #expect(requests.filter { $0.contains(" 200 ") }.count == 1, "\(artefact): \(paths)")
            #expect(
                requests.count == 1 || client.isValidated || client.asksForRanges, "\(artefact): \(paths)")
        }
        #expect(sent.first == sent.last, "the second time all ranges are hits: \(paths)")
        #expect(!artefacts.isEmpty)
        #expect(asked.allSatisfy { $0.contains("via=\"1.1 larder") && $0.contains("pa=\"-\"") }, "\(asked)")
        if host.way != .http { #expect(try await host.larder.statistic("tunnels", "intercepted") >= 2) }
    }
}
