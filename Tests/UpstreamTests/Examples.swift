import Upstream

// The examples of docs/upstream.md.

func get(_ url: String) async throws -> String {
    let client = try Client(.direct())
    let response = try await client.send(Request(.get, url, fields: ["Accept": "text/plain"]))
    return String(decoding: try await response.body.collect(upTo: 1 << 20), as: UTF8.self)
}

func download(_ url: String, _ use: ([UInt8]) async -> Void) async throws {
    var request = Request(.get, url)
    request.redirectsMax = 5
    request.progress = { progress in print("\(progress.received) of \(progress.toReceive ?? 0)") }
    for try await piece in try await Client(.direct()).send(request).body { await use(piece) }
}

func upload(_ path: String, to url: String) async throws -> Int {
    let request = Request(.put, url, fields: ["Content-Type": "application/octet-stream"], body: .file(path))
    return try await Client(.direct()).send(request).status
}

func throughLarder(_ url: String, port: UInt16) async throws -> (status: Int, cache: String?) {
    let client = try Client(.proxy(host: "127.0.0.1", port: port, user: "ann", password: "secret"))
    let response = try await client.send(Request(.get, url))
    return (response.status, response.fields["Cache-Status"])
}

func fetchAll(_ urls: [String], urgent: Set<String>) async throws -> [String: Int] {
    var options = Client.Options()
    options.requestsMax = 8
    let client = try Client(.direct(), options)
    return try await withThrowingTaskGroup(of: (String, Int).self) { group in
        for url in urls {
            group.addTask {
                var request = Request(.get, url)
                request.priority = urgent.contains(url) ? .high : .low
                request.timeLimits.whole = .seconds(60)
                return (url, try await client.send(request).body.collect().count)
            }
        }
        // The first error cancels the tasks that are left, and with them their transfers.
        return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
}

func throughTheEngine(_ url: String, proxy: String) async throws -> String {
    let configuration = """
        credentials:
          - { name: corp, scheme: [ digest, basic ], user: fleet, password: { env: CORP_PASSWORD } }
          - { name: mirror, scheme: bearer, match: { host: mirror.example }, plain_http: yes, token: { env: MIRROR_TOKEN } }
        routes:
          - { match: { host: mirror.example }, via: [ "\(proxy)" ], credential: corp }
        """
    let client = try Client(.engine(.text(configuration)))
    do throws(ClientError) {
        let response = try await client.send(Request(.get, url))
        return String(decoding: try await response.body.collect(), as: UTF8.self)
    } catch .refused(let refusal) {
        // No answer of the server: the reason is one of those of docs/troubleshooting.md.
        return "refused: \(refusal.reason)"
    }
}
