import Access
import Learning
import Message
import Rules
import Testing

/// Whatever was observed: the text of the rules, read by the configuration, allows it, and allows nothing that differs in host, port or
/// method, or lies outside of the directories of its paths.
@Suite("Learning: learnt rules allow what was observed and nothing beyond it")
struct LearntRulesPropertyTests {
    private struct World {
        var generator: SeededGenerator
        let hosts = ["a.example.org", "b.example.org", "c.example", "203.0.113.7", "10.9.8.7", "[2001:db8::1]"]
        let ports: [UInt16] = [80, 443, 8080]
        let methods: [(Method, String?)] = [
            (.get, nil), (.head, nil), (.post, nil), (.put, nil), (.other, "PURGE"), (.other, "'PUT'"), (.other, "#X"),
            (.other, "!t"), (.other, "*"), (.other, "NO"),
        ]
        let segments = [
            "a", "b", "c", "pool", "x.whl", "y.deb", "%7E", "%2f", "a*b", "{x}", "with%20space", ";p", "...", "~", "-",
            "simple", "info", "refs", "", "a%2Fb", "\\", "%5c", ".", "..",
        ]

        mutating func pick<C: Collection>(_ values: C) -> C.Element {
            guard let value = values.randomElement(using: &generator) else { preconditionFailure("nothing to pick") }
            return value
        }

        mutating func path() -> String {
            let depth = Int.random(in: 1...4, using: &generator)
            return (0..<depth).map { _ in
                "/"
                    + (Bool.random(using: &generator)
                        ? pick(segments) : "n\(Int.random(in: 0..<40, using: &generator))")
            }.joined()
        }

        mutating func observed() throws -> AccessRequest {
            let host = pick(hosts), port = pick(ports)
            if Int.random(in: 0..<8, using: &generator) == 0 {
                return try request(host, port: port, method: .connect, user: "builder")
            }
            let (method, text) = pick(methods)
            return try request(host, path(), port: port, method: method, text: text, user: "builder")
        }
    }

    private let recipes = RecipePaths([
        recipe("python", ["*/{project}.whl", "*/simple/{project}"]), recipe("debian", ["*/pool/*.{deb|dsc}"]),
        recipe("git", ["*/info/refs"], methods: ["GET"]), recipe("odd", ["/a/*/c", "/{one}"]),
    ])

    @Test(arguments: 1...60 as ClosedRange<UInt64>) func `for any requests`(_ seed: UInt64) throws {
        var world = World(generator: SeededGenerator(seed: seed))
        let count = [1, 5, 40, 400][Int(seed % 4)]
        let requests = try (0..<count).map { _ in try world.observed() }
        let scopes = [JobScope(), JobScope(user: "builder"), JobScope(client: AddressRange("10.2.0.0/16"))]
        var journal = Journal(job: "property", scope: scopes[Int(seed % 3)])
        journal.begin(journal.scope, allowing: false, at: WallTime(secondsSinceEpoch: 0))
        var kept: [AccessRequest] = []
        for request in requests {
            let before = journal.leftOut
            journal.note(Observation(request, .allowed), recipes: recipes)
            if journal.leftOut == before { kept.append(request) }
        }
        // Rules may name users only where users authenticate.
        let users = "access:\n  authentication: { basic: { users: /users } }\n"
        let policy = AccessPolicy(from: try accessRules(journal.yaml.replacing("access:\n", with: users)))

        for request in kept {
            #expect(
                policy.decide(request, address: nil).isAllowed,
                "\(request.methodText) \(request.host):\(request.port) \(text(request))")
        }
        let places = Set(requests.map { "\($0.host) \($0.port) \($0.methodText)" })
        for request in kept {
            for mutant in try mutants(of: request, &world) {
                let place = "\(mutant.host) \(mutant.port) \(mutant.methodText)"
                if places.contains(place) { continue }
                #expect(!policy.decide(mutant, address: nil).isAllowed, "\(place) was never requested")
            }
            // No rule reaches beyond the first segments that were observed, unless a recipe says so.
            guard !request.isTunnel else { continue }
            let outside = another(request, path: "/never-\(world.generator.next())/seen/at/all/here")
            #expect(!policy.decide(outside, address: nil).isAllowed, "\(text(outside)) was never requested")
        }
        // Whoever is not of the job gets nothing from its rules.
        if let request = kept.first, !journal.scope.isEverybody {
            var stranger = request
            stranger.client = IPAddress(v4: 0x0A07_0001)
            stranger.identity = Identity(name: "stranger", scheme: .basic)
            #expect(!policy.decide(stranger, address: nil).isAllowed)
        }
    }

    private func mutants(of request: AccessRequest, _ world: inout World) throws -> [AccessRequest] {
        var otherHost = request
        otherHost.destination = try #require(
            DestinationHost("other.\(request.host == "c.example" ? "c" : "x").example".utf8))
        var otherPort = request
        otherPort.port = request.port &+ 1
        let otherMethod = request.isTunnel ? request : request.with(method: "DELETE", port: request.port)
        let tunnel = request.with(method: "CONNECT", port: request.port)
        return [otherHost, otherPort, tunnel] + (request.isTunnel ? [] : [otherMethod])
    }

    private func another(_ request: AccessRequest, path: String) -> AccessRequest {
        request.with(pathAndQuery: ArraySlice(path.utf8))
    }

    private func text(_ request: AccessRequest) -> String {
        request.path.map { String(decoding: $0, as: UTF8.self) } ?? "-"
    }
}

extension Verdict {
    fileprivate var isAllowed: Bool { if case .allow = self { true } else { false } }
}
