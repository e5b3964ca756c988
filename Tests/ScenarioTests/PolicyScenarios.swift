import Server
import Testing

/// How a request uses the stored response.
enum Outcome: String, Sendable {
    /// The stored response is served, and the origin is not asked.
    case served
    /// The origin is asked to validate the stored response, and confirms it.
    case validated
    /// The origin is asked for the whole, and gives it.
    case fetched
    /// 504.
    case refused
}

/// What is stored when the policy comes into force.
enum Stored: String, Sendable {
    case nothing, fresh, stale
    /// Beyond a week, after which even an origin that fails brings nothing stale any more.
    case ancient

    var fields: [String] {
        switch self {
        case .nothing: []
        case .fresh: ["Cache-Control: max-age=60", "ETag: \"a\""]
        case .stale: ["Cache-Control: max-age=10", "Age: 60", "ETag: \"a\""]
        case .ancient: ["Cache-Control: max-age=10", "Age: 1000000", "ETag: \"a\""]
        }
    }
}

/// Who may say what the policy is.
enum PolicyWay: String, CaseIterable, Sendable {
    case rule, zone, client

    /// Of the configuration that stores, and of the one with the policy.
    func cache(_ policy: String?) -> String {
        switch self {
        case .rule:
            policy.map { "rules: [ { match: { path: /a }, policy: [ \($0) ] } ]" } ?? "rules: []"
        case .zone:
            """
            zones: [ { name: z, memory: 8MiB\(policy.map { ", policy: [ \($0) ]" } ?? "") } ]
            rules: [ { match: { path: /a }, zone: z } ]
            """
        case .client: "policy_clients: 127.0.0.0/8"
        }
    }

    func fields(_ policy: String) -> [String] { self == .client ? ["Larder-Policy: \(policy)"] : [] }
}

@Suite("Cache policies, by rule, by zone and by Larder-Policy")
struct PolicyScenarios {
    static let rows: [(policy: String, stored: Stored, expected: Outcome)] = [
        ("revalidate-when-stale", .fresh, .served), ("revalidate-when-stale", .stale, .validated),
        ("revalidate-when-stale", .nothing, .fetched),
        ("revalidate-always", .fresh, .validated), ("revalidate-always", .stale, .validated),
        ("revalidate-always", .nothing, .fetched),
        ("cache-first", .fresh, .served), ("cache-first", .stale, .served), ("cache-first", .ancient, .served),
        ("cache-first", .nothing, .fetched),
        ("cache-only", .fresh, .served), ("cache-only", .stale, .served), ("cache-only", .nothing, .refused),
        ("no-read", .fresh, .fetched), ("no-read", .stale, .fetched), ("no-read", .nothing, .fetched),
        ("no-write", .fresh, .served), ("no-write", .stale, .validated), ("no-write", .nothing, .fetched),
        ("stale-on-error", .fresh, .served), ("stale-on-error", .stale, .validated),
        ("no-read, no-write", .fresh, .fetched), ("cache-only, stale-on-error", .nothing, .refused),
        ("revalidate-always, stale-on-error", .fresh, .validated),
    ]

    @Test(arguments: rows, PolicyWay.allCases)
    func `each cache policy decides how a request uses the store`(
        _ row: (policy: String, stored: Stored, expected: Outcome), _ way: PolicyWay
    )
        throws
    {
        try scenario(cache: way.cache(nil)) { s in
            let client = try s.client()
            if row.stored != .nothing {
                s.origin.expects("GET /a").replies(200, row.stored.fields, Array("old".utf8))
                try client.get("/a")
            }
            try s.adopt(cache: way.cache(row.policy))
            switch row.expected {
            case .served, .refused: break
            case .validated:
                s.origin.expects("GET /a", "If-None-Match: \"a\"", "!Larder-Policy").replies(
                    304, "Cache-Control: max-age=60", "ETag: \"a\"")
            case .fetched:
                s.origin.expects("GET /a", "!If-None-Match", "!Larder-Policy").replies(
                    200, "Cache-Control: max-age=60", body: "new")
            }
            try client.ask("GET", "/a", way.fields(row.policy))
            let answer = try client.response()
            #expect(answer.status == (row.expected == .refused ? 504 : 200), "\(answer)")
            switch row.expected {
            case .served, .validated: #expect(answer.text == "old")
            case .fetched: #expect(answer.text == "new")
            case .refused: break
            }
            let isHit = answer.cacheStatus.hasPrefix("larder; hit")
            #expect(isHit == (row.expected == .served), "\(answer.cacheStatus)")
            #expect(
                answer.cacheStatus.hasSuffix("; zone=z")
                    == (way == .zone && row.expected != .refused && !row.policy.contains("no-write"))
                    || row.policy.contains("no-write"), "\(answer.cacheStatus)")
        }
    }

    @Test(arguments: PolicyWay.allCases) func `no-read stores the fetched response, and no-write does not`(
        _ way: PolicyWay
    )
        throws
    {
        for (policy, isStored) in [("no-read", true), ("no-write", false)] {
            try scenario(cache: way.cache(policy)) { s in
                s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "1")
                let client = try s.client()
                try client.ask("GET", "/a", way.fields(policy))
                let first = try client.response()
                #expect(first.cacheStatus.contains("; stored") == isStored, "\(first.cacheStatus)")
                try s.adopt(cache: way.cache(nil))
                if !isStored { s.origin.expects("GET /a").replies(200, "Cache-Control: max-age=60", body: "2") }
                #expect(try client.get("/a").text == (isStored ? "1" : "2"))
            }
        }
    }

    /// How the origin fails, and whether the stored response is served.
    static let failures: [(policy: String, stored: Stored, script: String?, isServed: Bool)] = [
        ("stale-on-error", .ancient, "HTTP/1.1 503 Down\r\nContent-Length: 4\r\n\r\ndown", true),
        ("stale-on-error", .ancient, "HTTP/1.1 500 Down\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndown\r\n", true),
        ("stale-on-error", .ancient, nil, true),
        ("stale-on-error", .ancient, "nonsense\r\n\r\n", true),
        ("stale-on-error", .ancient, "HTTP/1.1 404 Gone\r\nContent-Length: 4\r\n\r\ndown", false),
        ("revalidate-when-stale", .ancient, "HTTP/1.1 503 Down\r\nContent-Length: 4\r\n\r\ndown", false),
        ("revalidate-when-stale", .ancient, nil, false),
        ("revalidate-when-stale", .stale, nil, true),
        ("revalidate-always, stale-on-error", .fresh, "HTTP/1.1 503 Down\r\nContent-Length: 4\r\n\r\ndown", true),
    ]

    @Test(arguments: failures)
    func `a stale response is served after a failure as the policies say`(
        _ row: (policy: String, stored: Stored, script: String?, isServed: Bool)
    ) throws {
        for way in PolicyWay.allCases {
            try scenario(cache: way.cache(nil)) { s in
                let client = try s.client()
                s.origin.expects("GET /a").replies(200, row.stored.fields, Array("old".utf8))
                try client.get("/a")
                try s.adopt(cache: way.cache(row.policy))
                // A pooled connection that dies is tried again on a new one.
                for _ in 0..<(row.script == nil ? 2 : 1) {
                    s.origin.expects("GET /a", "If-None-Match: \"a\"").sends(row.script ?? "").closes()
                }
                try client.ask("GET", "/a", way.fields(row.policy))
                let answer = try client.response()
                #expect((answer.text == "old") == row.isServed, "\(way) \(answer)")
                #expect((answer.status == 200) == row.isServed, "\(way) \(answer)")
                if row.isServed {
                    #expect(answer.cacheStatus.contains("detail=stale-on-error"), "\(answer.cacheStatus)")
                }
            }
        }
    }

    @Test func `stale-on-error does not override must-revalidate (RFC 9111 §5.2.2.2)`() throws {
        try scenario(cache: "rules: [ { policy: stale-on-error } ]") { s in
            s.origin.expects("GET /a").replies(
                200, "Cache-Control: max-age=10, must-revalidate", "Age: 60", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a").replies(503, body: "down")
            let client = try s.client()
            try client.get("/a")
            #expect(try client.get("/a").status == 503)
        }
    }

    @Test func `Larder-Policy counts from policy_clients only, and is never forwarded`() throws {
        try scenario(cache: "policy_clients: 127.0.0.9") { s in
            s.origin.expects("GET /a", "!Larder-Policy").replies(
                200, "Cache-Control: max-age=10", "Age: 60", "ETag: \"a\"", body: "old")
            s.origin.expects("GET /a", "!Larder-Policy", "If-None-Match: \"a\"").replies(
                304, "Cache-Control: max-age=10", "Age: 60", "ETag: \"a\"")
            let (stranger, trusted) = (try s.client(from: 0x7F00_0005), try s.client(from: 0x7F00_0009))
            try stranger.get("/a", "Larder-Policy: no-write")
            #expect(try trusted.get("/a", "Larder-Policy: cache-first").cacheStatus.hasPrefix("larder; hit"))
            #expect(try stranger.get("/a", "Larder-Policy: cache-first").cacheStatus.contains("fwd=stale"))
            s.origin.expects("POST /a", "!Larder-Policy").replies(200)
            try trusted.request("POST", "/a", "Larder-Policy: cache-first", body: "x")
            s.origin.expects("GET /up", "!Larder-Policy", "Upgrade: websocket").replies(200, "Cache-Control: no-store")
            try trusted.get("/up", "Larder-Policy: cache-first", "Connection: upgrade", "Upgrade: websocket")
        }
    }

    /// What a trusted client says, and whether a second request of it still finds what the first stored.
    static let members: [(policy: String, fields: [String], status: Int, isHit: Bool)] = [
        ("ttl=60", [], 200, true), ("ttl=0", ["Cache-Control: max-age=60"], 200, false),
        ("respect-cache-control=?0, ttl=60", ["Cache-Control: no-store"], 200, true),
        ("ttl=60", ["Cache-Control: no-store"], 200, false),
        ("negative-ttl=60", [], 404, true), ("negative-ttl=0", [], 404, false),
        ("object-size-max=4", ["Cache-Control: max-age=60"], 200, true),
        ("object-size-max=3", ["Cache-Control: max-age=60"], 200, false),
        ("store-cookies", ["Cache-Control: max-age=60", "Set-Cookie: a=b"], 200, true),
        ("store-cookies=?0", ["Cache-Control: max-age=60", "Set-Cookie: a=b"], 200, false),
        ("unheard-of=1, ttl=60", [], 200, true), ("ttl=60, ttl", [], 200, false), ("ttl=-1", [], 200, false),
        ("ttl=60, =", [], 200, false), ("cache-first, no-read, ttl=60", [], 200, false),
    ]

    @Test(arguments: members)
    func `each member of Larder-Policy has its effect`(
        _ row: (policy: String, fields: [String], status: Int, isHit: Bool)
    ) throws {
        try scenario(cache: "policy_clients: 127.0.0.1\nnegative_ttl: 0") { s in
            for _ in 0..<(row.isHit ? 1 : 2) {
                s.origin.expects("GET /a").replies(row.status, row.fields, Array("body".utf8))
            }
            let client = try s.client()
            try client.get("/a", "Larder-Policy: \(row.policy)")
            let second = try client.get("/a", "Larder-Policy: \(row.policy)")
            #expect(second.cacheStatus.hasPrefix("larder; hit") == row.isHit, "\(second.cacheStatus)")
            #expect(second.text == "body")
        }
    }
}
