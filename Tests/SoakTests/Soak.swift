import Foundation
import ProgramUnderTest

/// One run: two origins that do what they can to go wrong, the real program, and many clients.
struct Soak: Sendable {
    enum Storage: String, CaseIterable, Sendable { case memory, disk }

    var seed: UInt64
    var storage: Storage
    /// The run ends with this request, or with the time, whichever comes first.
    var requestsMax = Int.max
    var seconds: Int?
    var clientCount = 32
    var resourceCount = 170

    struct Result: Sendable {
        var summary: String
        var tally: World.Tally
        /// Requests to which an origin answered that it wants a log-in.
        var challenges: Int
        /// Bodies that did not have the digest that they should have, as the proxy has counted them.
        var mismatches: Int
        var faultCounts: [Fault: Int]
        var wrongs: [String]
        /// All that was wrong, by kind, with counts.
        var wrongKinds: [String]
    }

    /// Blocks.
    func run() throws -> Result {
        _ = Noise.bytes
        let isLong = seconds != nil
        let world = World(seed: seed, resourceCount: resourceCount, patience: isLong ? 40 : 120, hasLongSilence: isLong)
        let origin = try Origin(world)
        defer { origin.stop() }
        let larder = try Larder(
            cache: cache, origins: origins, credentials: credentials, timeouts: timeouts(isLong))
        let inquiry = Inquiry(world: world, originPorts: origin.ports, proxyPort: larder.port)
        try publishIndexes(inquiry, larder)
        let begin = ContinuousClock.now
        let serial = Client.Serial(requestsMax: requestsMax, end: seconds.map { begin + .seconds($0) })
        let (ports, proxyPort) = (origin.ports, larder.port)
        inThreads(clientCount) { number in
            var client = Client(world, number: number, originPorts: ports, proxyPort: proxyPort, serial: serial) {
                _ = try larder.admin("POST", "/purge", body: #"{"url":"\#($0)","soft":\#($1)}"#)
            }
            client.run()
        }
        let time = ContinuousClock.now - begin
        try expectRelease(world, larder)
        world.heal()
        if larder.isRunning { inquiry.expectPromises() }
        let mismatches = larder.isRunning ? try larder.statistic("store", "digest-mismatches") : 0
        try expectEmptiness(world, larder)
        let status = larder.end()
        if status != 0 {
            world.wrong(nil, "larder ended with \(status.map { "\($0)" } ?? "SIGKILL"): \(larder.errors)")
        }
        var wrongs = world.wrongs
        if !wrongs.isEmpty { wrongs = wrongs.map { "\(reproduction)\n\($0)" } }
        if ProcessInfo.processInfo.environment["LARDER_SOAK_KEEP"] == "1" {
            print("soak: kept \(larder.directory)")
        } else {
            larder.removeFiles()
        }
        return Result(
            summary: "\(reproduction): \(world.tally) in \(time); slowest \(world.slowest)", tally: world.tally,
            challenges: origin.challenges, mismatches: mismatches,
            faultCounts: world.faultCounts,
            wrongs: wrongs, wrongKinds: world.wrongKinds)
    }

    private var reproduction: String {
        "LARDER_SOAK_SEED=\(seed)\(seconds.map { " LARDER_SOAK_SECONDS=\($0)" } ?? ""), \(storage)"
    }

    private var cache: String {
        let disk =
            storage == .disk
            ? "{ path: DIRECTORY/store, size: 96MiB, sync: 200ms }" : "{ path: DIRECTORY/none, size: 0 }"
        return """
              memory: \(storage == .disk ? 8 : 24)MiB
              object_size_max: 4MiB
              disk: \(disk)
              rules:
            \(Resource.rulesOfPromised)
                - { match: { path: "/b/*" }, policy: stale-on-error }
                - { match: { path: "/fly/*" }, compress: on-the-fly }
                - { match: { path: "/once/*" }, compress: once }
                - { match: { path: "/whole/*" }, ranges: whole }
                - { match: { path: "/pass/*" }, ranges: pass }
                - { match: { path: "/first/*" }, policy: cache-first }
            """
    }

    private var origins: String {
        let paths = Resource.followed.map { "/\($0.rawValue)/*" }.joined(separator: ", ")
        return "[ { match: { path: [ \(paths) ] }, redirects: follow } ]"
    }

    private var credentials: String {
        let paths = Resource.guarded.map { "/\($0.rawValue)/*" }.joined(separator: ", ")
        return """
            [ { name: soak, scheme: [ digest, basic ], match: { host: [ 127.0.0.1, \(Question.originName) ], path: [ \(paths) ] }, plain_http: yes,
                user: \(Guards.user), password: \(Guards.password) } ]
            """
    }

    /// In a long run origins are silent for longer than the proxy waits. A short one waits for long everywhere, so that a busy
    /// machine is not taken for a fault.
    private func timeouts(_ isLong: Bool) -> String {
        isLong
            ? "{ first_byte: 4s, idle: 4s, collapse: 3s, drain: 5s }"
            : "{ first_byte: 100s, idle: 100s, collapse: 100s, drain: 30s }"
    }

    // MARK: before and afterwards

    /// Without it the proxy would not know what the indexes promise when the first client asks for a file.
    private func publishIndexes(_ inquiry: Inquiry, _ larder: Larder) throws {
        let count = try inquiry.readIndexes()
        guard try eventually(seconds: 60, { try larder.statistic("store", "digests-promised") >= count }) else {
            throw Failure(description: "the proxy has not read what the indexes promise")
        }
    }

    /// With the last client all that was made for clients is gone: connections, fetches, tunnels, transfers.
    private func expectRelease(_ world: World, _ larder: Larder) throws {
        guard larder.isRunning else { return world.wrong(nil, "larder is gone: \(larder.errors)") }
        var last = ""
        let isReleased = try eventually(seconds: 60) {
            let statistics = try larder.admin("GET", "/stats")
            func gauge(_ group: String, _ name: String) -> Int {
                (statistics[group] as? [String: Any])?[name] as? Int ?? -1
            }
            let transfers = (try larder.admin("GET", "/transfers")["transfers"] as? [Any])?.count ?? -1
            last = """
                \(gauge("clients", "open")) clients, \(gauge("tunnels", "open")) tunnels, \(transfers) transfers, \
                \(gauge("origins", "open")) connections to origins of which \(gauge("origins", "idle")) are idle
                """
            return gauge("clients", "open") == 0 && gauge("tunnels", "open") == 0 && transfers == 0
                && gauge("origins", "open") == gauge("origins", "idle")
        }
        if !isReleased { world.wrong(nil, "a minute after the last client: \(last)") }
    }

    /// What is purged leaves nothing in memory.
    private func expectEmptiness(_ world: World, _ larder: Larder) throws {
        guard larder.isRunning else { return world.wrong(nil, "larder is gone: \(larder.errors)") }
        var last = ""
        _ = try larder.admin("POST", "/purge", body: #"{"all":true}"#)
        let isEmpty = try eventually(seconds: 60) {
            let memory = try larder.admin("GET", "/stats")["memory"] as? [String: Any]
            last = "\(memory ?? [:])"
            return memory?["records"] as? Int == 0 && memory?["used"] as? Int == 0
        }
        if !isEmpty { world.wrong(nil, "a minute after all was purged: \(last)") }
    }

    private func eventually(seconds: Double, _ holds: () throws -> Bool) throws -> Bool {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while try !holds() {
            guard ContinuousClock.now < deadline else { return false }
            usleep(50_000)
        }
        return true
    }
}
