import Access
import ClientSetup
import Foundation
import Server
import Settings
import Testing

@Suite("check.larder.internal, the origin of larder doctor")
struct CheckOriginScenarios {
    static let run = CheckOrigin.RunName(random: (7, 9)).text

    private func seen(_ s: Scenario) throws -> [CheckRecords.Sighting: Int] {
        CheckRecords.read(try s.client().get("http://check.larder.internal/doctor/\(Self.run)/seen").text)
    }

    @Test func `the second request for a URL is a hit, and does not reach the origin`() throws {
        try scenario { s in
            let url = "http://check.larder.internal/doctor/\(Self.run)/curl/file"
            let first = try s.client().get(url)
            #expect(first.status == 200 && first.cacheStatus.contains("fwd=uri-miss"), "\(first)")
            let second = try s.client().get(url)
            #expect(second.status == 200 && second.cacheStatus.contains("hit"), "\(second)")
            #expect(try seen(s) == [.init(way: .http, method: "GET", path: "/doctor/\(Self.run)/curl/file"): 1])
            #expect(try seen(s).count == 1)
        }
    }

    @Test func `a target with https in absolute-form gets there as well`() throws {
        try scenario { s in
            let answer = try s.client().get("https://check.larder.internal/doctor/\(Self.run)/a")
            #expect(answer.status == 200)
            #expect(try seen(s).keys.map(\.way) == [.https])
        }
    }

    @Test func `neither closed networks nor rules keep a client from it`() throws {
        try scenario({ configuration, _ in
            configuration.access.privateDestinations = .deny
            configuration.access.rules = [AccessRule(effect: .deny(reason: "nothing"), number: 1)]
        }) { s in
            let inside = try s.client().get("http://check.larder.internal/doctor/\(Self.run)/a")
            let outside = try s.client().get("/a")
            #expect(inside.status == 200 && outside.status == 403)
        }
    }

    @Test func `a tunnel to port 80 carries requests`() throws {
        try scenario { s in
            let client = try s.client()
            #expect(try client.request("CONNECT", "check.larder.internal:80").status == 200)
            for _ in 1...2 {
                try client.send(
                    "GET /doctor/\(Self.run)/node HTTP/1.1\r\nHost: check.larder.internal\r\n\r\n")
                #expect(try client.response().status == 200)
            }
            #expect(try seen(s) == [.init(way: .tunnel, method: "GET", path: "/doctor/\(Self.run)/node"): 2])
        }
    }

    @Test func `what is no HTTP ends a tunnel to it`() throws {
        try scenario { s in
            let client = try s.client()
            #expect(try client.request("CONNECT", "check.larder.internal:443").status == 200)
            try client.send("\u{16}\u{3}\u{1}\u{0}\u{5}hello")
            try client.expectClosed()
        }
    }

    @Test(arguments: [
        "http://check.larder.internal:8080/", "http://x.check.larder.internal/", "http://larder.internal/",
    ])
    func `no other port and no other name leads there`(_ url: String) throws {
        let names = try ScriptedNames(.noSuchName)
        try scenario({ configuration, _ in configuration.dns.servers = [.tcp(.init(v4: 0x7F00_0001), port: names.port)]
        }) { s in
            let answer = try s.client().get(url)
            #expect(answer.status == 502 || answer.status == 404 || answer.status == 504, "\(answer)")
            #expect(answer.cacheStatus.contains("detail=name-not-found"), "\(answer)")
        }
    }

    @Test func `its connections are few, and go away with their clients`() throws {
        try scenario({ configuration, _ in configuration.workers = .count(1) }) { s in
            for round in 1...3 {
                let tunnels = try (0..<30).map { _ in
                    let client = try s.client()
                    #expect(try client.request("CONNECT", "check.larder.internal:80").status == 200, "\(round)")
                    return client
                }
                _ = tunnels
                withExtendedLifetime(tunnels) {}
            }
            try s.eventually("there is room again") {
                try s.client().get(
                    "http://check.larder.internal/doctor/\(Self.run)/late\(Int.random(in: 0..<1_000_000))"
                ).status == 200
            }
        }
    }

    @Test func `a password is asked for there too`() throws {
        try scenario({ configuration, files in
            configuration.access.authentication.basic.usersFile = try files.write(
                "users", "ann:$1$salt$qJH7.N4xYta3aEG/dfqo/0\n")
        }) { s in
            let answer = try s.client().get("http://check.larder.internal/")
            #expect(answer.status == 407)
        }
    }
}
