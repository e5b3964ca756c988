import Foundation
import ProgramUnderTest
import Testing

/// curl under `limits.rules`: what it is told, and that it heeds it.
@Suite("limits.rules: curl")
struct LimitTests {
    private static func serve(_ head: String, _ connection: ScriptedConnection) {
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789")
    }

    private static func with(
        _ rule: String, _ body: (Workplace, ScriptedOrigin, Larder) async throws -> Void
    ) async throws {
        try await Workplace.with { place in
            try await ScriptedOrigin.with(serve) { origin in
                let limits = "limits: { budgets_file: \(place.path("budgets")), rules: [ \(rule) ] }\n"
                try await body(place, origin, try await Larder.start(in: place, more: limits))
            }
        }
    }

    @Test func `--retry waits as long as Retry-After says`() async throws {
        try await Self.with("{ name: each, requests: 1/s }") { place, origin, larder in
            let first = try await place.curl("\(origin.url)/a", through: larder)
            #expect(first.status == 200, "\(first)")
            let refused = try await place.curl("\(origin.url)/a", through: larder)
            #expect(refused.status == 200 || refused.text.contains("limit each for client 127.0.0.1"), "\(refused)")
            let patient = try await place.curl("--retry", "5", "\(origin.url)/a", through: larder)
            #expect(patient.status == 200 && patient.text.hasSuffix("0123456789"), "\(patient)")
        }
    }

    @Test func `a budget holds for curl in a tunnel as well, and explain says what is left`() async throws {
        try await Self.with("{ name: quota, budget: { bytes: 15, every: week } }") { place, origin, larder in
            for _ in 1...2 {
                let reply = try await place.curl("\(origin.url)/a", through: larder)
                #expect(reply.status == 200, "\(reply)")
            }
            let refused = try await place.curl("\(origin.url)/a", through: larder)
            #expect(refused.status == 429 && refused.text.contains("15 bytes in one week"), "\(refused)")
            let tunnel = try await place.curl("-p", "\(origin.url)/a", through: larder)
            #expect(tunnel.text.isEmpty, "the tunnel is refused: \(tunnel)")
            let explained = try await larder.command("explain", "\(origin.url)/a")
            #expect(explained.out.contains("20 of 15 bytes used in this week"), "\(explained)")
        }
    }

    @Test func `larder budget reset lets a budget in all begin anew`() async throws {
        try await Self.with("{ name: quota, budget: { bytes: 15, every: total } }") { place, origin, larder in
            for _ in 1...2 { #expect(try await place.curl("\(origin.url)/a", through: larder).status == 200) }
            #expect(try await place.curl("\(origin.url)/a", through: larder).status == 429)
            let other = try await larder.command("budget", "reset", "quota", "--client", "127.0.0.9")
            #expect(other.status == 0 && other.out.hasPrefix("nothing of this budget"), "\(other)")
            #expect(try await place.curl("\(origin.url)/a", through: larder).status == 429)
            let reset = try await larder.command("budget", "reset", "quota", "--client", "127.0.0.1")
            #expect(reset.status == 0 && reset.out == "reset 1 budget of the limit quota\n", "\(reset)")
            #expect(try await place.curl("\(origin.url)/a", through: larder).status == 200)
        }
    }

    @Test func `a command line of larder budget that is wrong changes nothing`() async throws {
        try await Self.with("{ name: quota, budget: { bytes: 15, every: total } }") { place, origin, larder in
            for _ in 1...2 { #expect(try await place.curl("\(origin.url)/a", through: larder).status == 200) }
            for (words, status, part) in [
                (["reset"], 2, "takes reset and the name of a limit"), (["clear", "quota"], 2, "takes reset"),
                (["reset", "quota", "--client", "127.0.0.1", "--user", "ali"], 2, "one client, one user or one group"),
                (["reset", "quota", "--client", "localhost"], 2, "address"),
                (["reset", "quota", "--group", "staff"], 2, "client"), (["reset", "quote"], 1, "quota"),
            ] as [([String], Int32, String)] {
                let output = try await place.run(
                    Larder.executable, ["budget"] + words + ["--config", larder.configuration])
                #expect(output.status == status && output.err.contains(part), "\(words): \(output)")
            }
            #expect(try await place.curl("\(origin.url)/a", through: larder).status == 429)
        }
    }
}
