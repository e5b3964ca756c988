import Foundation
import Server
import Testing

@Suite("Origins that ask for a certificate of the client")
struct ClientCertificateScenarios {
    private static let versions = ["-tls1_2", "-tls1_3"]

    private static func play(
        _ demand: AskingOrigin.Demand, _ version: String, _ play: (Scenario, AskingOrigin) throws -> Void
    ) throws {
        let certificate = try MadeCertificate(for: "IP:127.0.0.1")
        let origin = try AskingOrigin(certificate, demand, version: version)
        defer { origin.end() }
        try scenario { configuration, files in
            configuration.tls.caFile = try files.write("origin.pem", certificate.certificate)
            try files.intercept("127.0.0.1", in: &configuration)
        } _: { s in
            try play(s, origin)
        }
    }

    /// What `/stats` has of it.
    private static func remembered(_ s: Scenario) throws -> String {
        try s.stats()["certificate_requests"]?.elements?.map { entry in
            let host = entry["host"].map { "\($0)" } ?? ""
            return "\(host) \(entry["required"] == .bool(true)) \(entry["count"]?.integer ?? 0)"
        }.joined(separator: "; ") ?? "nothing"
    }

    @Test(arguments: versions, ["GET", "POST"])
    func `one that ends the connection without one is named, and remembered`(
        _ version: String, _ method: String
    ) throws {
        try Self.play(.required, version) { s, origin in
            for _ in 0..<2 {
                let client = try s.client()
                let answer =
                    method == "GET"
                    ? try client.get(origin.url("/a"))
                    : try client.request(method, origin.url("/a"), body: "body")
                #expect(answer.status == 502, "\(answer)")
                #expect(answer["Proxy-Status"]?.hasPrefix("larder; error=tls_alert_received; details=") == true)
                #expect(answer["Cache-Status"]?.contains("detail=client-certificate-required") == true)
            }
            #expect(try Self.remembered(s).hasSuffix(" true 2"))
        }
    }

    @Test(arguments: versions) func `the client in an opened tunnel gets the same`(_ version: String) throws {
        try Self.play(.required, version) { s, origin in
            let client = try s.secureTunnel(to: "127.0.0.1:\(origin.port)")
            let answer = try client.getInside("/a", host: "127.0.0.1:\(origin.port)")
            #expect(answer.status == 502 && answer.text.contains("wants a certificate of the client"), "\(answer)")
        }
    }

    @Test(arguments: versions) func `one that goes on without one answers`(_ version: String) throws {
        try Self.play(.optional, version) { s, origin in
            let answer = try s.client().get(origin.url("/a"))
            #expect(answer.status == 200)
            #expect(try Self.remembered(s).hasSuffix(" false 1"))
        }
    }
}
