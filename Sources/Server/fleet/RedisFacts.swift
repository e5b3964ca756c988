import EventLoop
package import Fleet
import Message
import Redis
package import Settings

/// What `larder doctor --server` finds out about the Redis of a fleet. What follows from it is for the doctor to say.
package struct RedisFacts: Sendable, Equatable {
    /// A node, as its report says.
    package struct Node: Sendable, Equatable {
        package var report: NodeReport
        /// How many milliseconds its clock is ahead of the one here. Nil if that is not known.
        package var clockAhead: Int64?

        package init(report: NodeReport, clockAhead: Int64? = nil) {
            self.report = report
            self.clockAhead = clockAhead
        }

        /// Nil if the node has said nothing for too long.
        ///
        /// - Parameters:
        ///   - left: for how many milliseconds the Redis keeps the report. Below zero: for ever. Nil: the user may not ask.
        ///   - now: in milliseconds since 1970.
        init?(_ report: NodeReport, left: Int64?, now: Int64) {
            // So long ago the Redis got it.
            let age = left.map { Int64(FleetNode.reportSeconds) * 1000 - min(max($0, -2), 1 << 53) }
            guard age.map({ $0 <= Int64(SeenNodes.silenceMax / 1_000_000) }) ?? true else { return nil }
            self.init(report: report, clockAhead: age.map { report.saidAt.saturatingAdd($0).saturatingSubtract(now) })
        }
    }

    /// By how many milliseconds a clock is ahead.
    ///
    /// - Parameters:
    ///   - time: in microseconds since 1970, as INFO says. Nil if it is no number.
    ///   - now: in milliseconds since 1970.
    static func clockAhead(_ time: String, now: Int64) -> Int64? {
        Int64(time).map { ($0 / 1000).saturatingSubtract(now) }
    }

    /// Whether a node has said something within the last minute, by its own clock.
    ///
    /// - Parameters:
    ///   - entry: its line in the register, which begins with the seconds since 1970.
    ///   - now: in milliseconds since 1970.
    static func isOfLastMinute(_ entry: [UInt8], now: Int64) -> Bool {
        let time = entry.split(separator: 0x20).first.flatMap(parseDecimal).flatMap { Int64(exactly: $0) } ?? 0
        return (now / 1000).saturatingSubtract(time).magnitude < 60
    }

    /// As in the configuration.
    package var url: String
    package var isSecured: Bool
    /// The addresses of the name, with the port.
    package var addresses: [String] = []
    /// Why nothing more is known.
    package var failure: ProbeFailure?
    /// When the first certificate of the chain ends, in seconds since 1970. Nil without TLS.
    package var chainEnd: Int64?
    /// The commands that the user may not use, by the words of an ACL.
    package var forbidden: [String] = []
    /// The first error that is no lack of a permission, by the command.
    package var refusals: [String: String] = [:]
    /// What INFO says. Empty if the user may not ask.
    package var info: [String: String] = [:]
    /// The times of PINGs, in microseconds, the shortest first.
    package var pings: [Int] = []
    /// How many milliseconds the clock of the server is ahead of the one here. Nil if it does not say its time.
    package var clockAhead: Int64?
    package var nodes: [Node] = []
    /// Names in the register whose report cannot be read, and that said something within the last minute by their own clocks.
    package var unreadable: [String] = []

    package init(url: String, isSecured: Bool) {
        self.url = url
        self.isSecured = isSecured
    }
}

/// The commands that nodes send, by the words of an ACL, and a harmless way to try each. `AUTH` and `SELECT` are tried by the log-in.
///
/// A node that sends another command needs a row here, and a word in the user's line in docs/fleet.md: a test compares the two.
package struct RedisTrial: Sendable {
    package let name: String
    /// `KEY` stands for the beginning of keys that nobody else uses, and `LARDER` for that of the fleet's own.
    let words: [String]
    /// Only the doctor needs it.
    package var isOfDoctor = false

    private init(_ name: String, _ words: String, isOfDoctor: Bool = false) {
        self.name = name
        self.words = words.split(separator: " ").map(String.init)
        self.isOfDoctor = isOfDoctor
    }

    package static let all: [RedisTrial] = [
        RedisTrial("client|setname", "CLIENT SETNAME larder-doctor"),
        RedisTrial("ping", "PING"),
        RedisTrial("info", "INFO"),
        RedisTrial("set", "SET KEY:s x EX 60 NX"),
        RedisTrial("get", "GET KEY:s"),
        RedisTrial("setex", "SETEX KEY:e 60 x"),
        RedisTrial("mget", "MGET KEY:s KEY:e"),
        RedisTrial("pttl", "PTTL KEY:e", isOfDoctor: true),
        RedisTrial("hset", "HSET KEY:h f v"),
        RedisTrial("expire", "EXPIRE KEY:h 60"),
        RedisTrial("hlen", "HLEN KEY:h"),
        RedisTrial("hgetall", "HGETALL KEY:h"),
        RedisTrial("hdel", "HDEL KEY:h f"),
        RedisTrial("xadd", "XADD KEY:x MAXLEN ~ 10 * f v"),
        RedisTrial("xrange", "XRANGE KEY:x - + COUNT 1"),
        RedisTrial("xread", "XREAD COUNT 1 STREAMS KEY:x 0-0"),
        RedisTrial("xinfo|stream", "XINFO STREAM KEY:x"),
        RedisTrial("unlink", "UNLINK KEY:s KEY:e KEY:h KEY:x"),
    ]
    /// The words of an ACL that stand for the log-in.
    package static let logIn = ["auth", "select"]
}

/// Looks at the Redis of a fleet. Blocks, for some seconds at most.
package func examineRedis(_ terms: FleetTerms, dns: DNSSettings) -> RedisFacts {
    var facts = RedisFacts(url: "\(terms.url)", isSecured: terms.url.isSecured)
    do {
        let loop = try EventLoop()
        let resolver = try Resolver(loop: loop, options: Resolver.Options(dns))
        let deadline = ProbeConnection.deadline
        let addresses = try ProbeConnection.addresses(
            of: terms.url.host, port: terms.url.port, by: deadline, loop: loop, resolver: resolver)
        facts.addresses = addresses.map { "\($0)" }
        let probe = try RedisProbe(terms, to: addresses, by: deadline, loop: loop)
        facts.chainEnd = probe.chainEnd
        try logIn(probe, terms)
        try readInfo(probe, &facts)
        try measure(probe, &facts)
        try tryCommands(probe, &facts)
        try readNodes(probe, terms, &facts)
    } catch let failure as ProbeFailure {
        facts.failure = failure
    } catch {
        facts.failure = .name("\(error)")
    }
    return facts
}

private func bytes(_ words: [String]) -> [[UInt8]] { words.map { Array($0.utf8) } }

private func logIn(_ probe: RedisProbe, _ terms: FleetTerms) throws(ProbeFailure) {
    if let password = terms.password {
        let user = terms.url.user.map { [Array($0.utf8)] } ?? []
        let reply = try probe.ask(bytes(["AUTH"]) + user + [password])
        if reply.errorCode != nil { throw .logIn(reply.text ?? "") }
    }
    // Without a password only this command shows that one is wanted.
    let greeting = try probe.ask(bytes(["PING"]))
    if greeting.errorCode == "NOAUTH" { throw .logIn(greeting.text ?? "") }
    if terms.url.database > 0 {
        let reply = try probe.ask(bytes(["SELECT", "\(terms.url.database)"]))
        if reply.errorCode != nil { throw .database(reply.text ?? "") }
    }
}

private func wallMilliseconds() -> Int64 {
    let duration = readWallTicks()
    return Int64(Double(duration) / 1024 * 1000)
}

private func readInfo(_ probe: RedisProbe, _ facts: inout RedisFacts) throws(ProbeFailure) {
    let reply = try probe.ask(bytes(["INFO"]))
    let now = wallMilliseconds()
    guard reply.errorCode == nil, let text = reply.text else { return }
    for line in text.split(whereSeparator: \.isNewline) {
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2, !line.hasPrefix("#") { facts.info[String(parts[0])] = String(parts[1]) }
    }
    facts.clockAhead = facts.info["server_time_usec"].flatMap { RedisFacts.clockAhead($0, now: now) }
}

private let pingCount = 20

private func measure(_ probe: RedisProbe, _ facts: inout RedisFacts) throws(ProbeFailure) {
    for _ in 0..<pingCount {
        let start = ContinuousClock.now
        _ = try probe.ask(bytes(["PING"]))
        let time = (ContinuousClock.now - start).components
        facts.pings.append(Int(time.seconds) * 1_000_000 + Int(time.attoseconds / 1_000_000_000_000))
    }
    facts.pings.sort()
}

private func tryCommands(_ probe: RedisProbe, _ facts: inout RedisFacts) throws(ProbeFailure) {
    let random = String(decoding: hexadecimal((0..<8).map { _ in UInt8.random(in: 0...255) }), as: UTF8.self)
    let own = "\(String(decoding: SharedKeys.prefix, as: UTF8.self))doctor:\(random)"
    for trial in RedisTrial.all {
        let words = trial.words.map { $0.replacing("KEY", with: own) }
        let reply = try probe.ask(bytes(words))
        guard let code = reply.errorCode else { continue }
        // What is not there cannot be examined: the command before has failed, and says why.
        if code == "ERR", reply.text?.contains("no such key") == true { continue }
        if code == "NOPERM" {
            facts.forbidden.append(trial.name)
        } else {
            facts.refusals[trial.name] = reply.text ?? code
        }
    }
}

private func readNodes(
    _ probe: RedisProbe, _ terms: FleetTerms, _ facts: inout RedisFacts
) throws(ProbeFailure) {
    guard let register = try probe.ask([Array("HGETALL".utf8), SharedKeys.nodes]).array else { return }
    let entries = stride(from: 0, to: register.count - 1, by: 2).compactMap { index -> (String, [UInt8])? in
        guard let name = register[index].text, let value = register[index + 1].data else { return nil }
        return (name, value)
    }
    for (name, entry) in entries.sorted(by: { $0.0 < $1.0 }).prefix(SeenNodes.countMax) {
        let key = SharedKeys.report(of: name)
        let value = try probe.ask([Array("MGET".utf8), key]).array?.first?.data
        let now = wallMilliseconds()
        let left = try probe.ask([Array("PTTL".utf8), key]).int
        do throws(NodeReportError) {
            guard let value else { throw .notAReport }
            let report = try NodeReport.decode(value, of: name, hash: terms.hash)
            if let node = RedisFacts.Node(report, left: left, now: now) { facts.nodes.append(node) }
        } catch {
            if RedisFacts.isOfLastMinute(entry, now: now) { facts.unreadable.append(name) }
        }
    }
}
