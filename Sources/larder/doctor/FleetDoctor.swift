import EventLoop
import Fleet
import Glibc
import Provisioning
import Server
import Settings
import Texts

/// Looks at the fleet: its secret, and its Redis. Nothing if this Larder is alone. Connects to the Redis by itself, whether the proxy runs or not.
func fleetChecks(_ configuration: Configuration) -> [ServerCheck] {
    let fleet = configuration.fleet
    guard fleet.redis != nil else { return [] }
    var checks = [("fleet secret", fleet.secretFile), ("redis password", fleet.passwordFile)].compactMap { name, path in
        path.map { secretCheck(name, $0) }
    }
    do throws(ProvisioningFault) {
        guard let terms = try readFleet(configuration) else { return checks }
        let now = Int64(time(nil))
        checks += redisChecks(examineRedis(terms, dns: configuration.dns), now: now)
        checks += peerChecks(examinePeers(terms, dns: configuration.dns), now: now)
    } catch {
        // A file that cannot be read has its line already.
        if !checks.contains(where: { $0.state == .wrong }) {
            checks.append(
                ServerCheck(name: "redis", state: .wrong, text: "\(error.key): \(error.message)", mend: error.hint))
        }
    }
    return checks
}

private func secretCheck(_ name: String, _ path: String) -> ServerCheck {
    var status = stat()
    guard unsafe stat(path, &status) == 0, unsafe access(path, R_OK) == 0 else {
        return ServerCheck(
            name: name, state: .wrong, text: "\(path): \(systemErrorText(errno))",
            mend: "make it readable for this user, or run the doctor as the user of the service")
    }
    guard status.st_mode & 0o007 == 0 else {
        return ServerCheck(
            name: name, state: .warning, text: "\(path) can be read by everybody", mend: "chmod 600 \(shellWord(path))")
    }
    return ServerCheck(name: name, state: .ok, text: path)
}

// MARK: what the facts mean

/// - Parameter now: in seconds since 1970.
func redisChecks(_ facts: RedisFacts, now: Int64) -> [ServerCheck] {
    var checks: [ServerCheck] = []
    func add(_ name: String, _ state: ServerCheck.State, _ text: String, _ mend: String? = nil) {
        checks.append(ServerCheck(name: name, state: state, text: text, mend: mend))
    }
    let failure = facts.failure.map { reason(of: $0, facts) }
    if let failure, failure.name == "redis" {
        add(failure.name, .wrong, "\(facts.url): \(failure.text)", failure.mend)
        return checks
    }
    let places = facts.addresses.joined(separator: ", ")
    add("redis", .ok, "\(facts.url) answers (\(places))")
    if let failure, failure.name == "redis TLS" {
        add(failure.name, .wrong, failure.text, failure.mend)
        return checks
    }
    if facts.isSecured { checks.append(certificateCheck(facts.chainEnd, now)) }
    if let failure {
        add(failure.name, .wrong, failure.text, failure.mend)
        return checks
    }
    add("redis user", .ok, "the log-in is accepted")
    checks.append(commandCheck(facts))
    checks += infoChecks(facts)
    checks.append(latencyCheck(facts.pings))
    checks += nodeChecks(facts)
    return checks
}

private func reason(of failure: ProbeFailure, _ facts: RedisFacts) -> (name: String, text: String, mend: String?) {
    switch failure {
    case .name(let text):
        return (
            "redis", "its name cannot be resolved: \(text)", "correct fleet.redis.url, or ask who runs the name server"
        )
    case .connection(let text):
        return (
            "redis", "it cannot be connected to: \(text)",
            "start the Redis, and let this machine connect to it (bind and port of redis.conf, firewalls)"
        )
    case .tls(let text):
        return (
            "redis TLS", text,
            "name the authority of its certificate in fleet.redis.ca_file, and the name in the certificate in fleet.redis.url; without TLS on this port, write redis://"
        )
    case .logIn(let text):
        return (
            "redis user", "the log-in is refused: \(text)",
            "correct fleet.redis.password_file and the user in fleet.redis.url, or the user in the Redis (ACL SETUSER)"
        )
    case .database(let text):
        return ("redis user", "the database is refused: \(text)", "correct the number at the end of fleet.redis.url")
    case .closed:
        return (
            "redis", "it closes the connection",
            facts.isSecured
                ? "look at the log of the Redis" : "if its port uses TLS, write rediss:// in fleet.redis.url"
        )
    case .silence: return ("redis", "it does not answer within 2 seconds", "look at the log of the Redis")
    case .nonsense(let text):
        return (
            "redis", text,
            "correct fleet.redis.url: another service answers there"
                + (facts.isSecured ? "" : ", or the port uses TLS and needs rediss://")
        )
    }
}

private func certificateCheck(_ end: Int64?, _ now: Int64) -> ServerCheck {
    guard let end else {
        return ServerCheck(name: "redis TLS", state: .warning, text: "the end of the certificate is not known")
    }
    let days = (end - now) / 86_400
    return days <= 14
        ? ServerCheck(
            name: "redis TLS", state: .warning, text: "the certificate is valid for \(days) more days only",
            mend: "renew the certificate of the Redis, or its authority")
        : ServerCheck(name: "redis TLS", state: .ok, text: "the certificate is valid for \(days) more days")
}

private func commandCheck(_ facts: RedisFacts) -> ServerCheck {
    let name = "redis commands"
    let trials = RedisTrial.all
    let own = facts.forbidden.filter { command in trials.contains { $0.name == command && !$0.isOfDoctor } }
    let mend =
        "the line of the user in docs/fleet.md has all commands and keys: "
        + (["~larder:1:*"] + facts.forbidden.map { "+\($0)" }).joined(separator: " ")
    if !own.isEmpty {
        return ServerCheck(
            name: name, state: .wrong, text: "the user may not use: \(facts.forbidden.joined(separator: ", "))",
            mend: mend)
    }
    for (code, mend) in [
        ("MOVED", "name a Redis without cluster mode: Redis Cluster is not supported"),
        ("CROSSSLOT", "name a Redis without cluster mode: Redis Cluster is not supported"),
        ("READONLY", "let fleet.redis.url lead to the primary"),
        ("OOM", "raise maxmemory, and set maxmemory-policy allkeys-lru"),
        ("MISCONF", "the Redis cannot write its files: free some space there, or switch persistence off (save \"\")"),
    ] {
        guard let refusal = facts.refusals.values.sorted().first(where: { $0.hasPrefix(code) }) else { continue }
        return ServerCheck(name: name, state: .wrong, text: "commands are refused: \(refusal)", mend: mend)
    }
    if let (command, text) = facts.refusals.min(by: { $0.key < $1.key }) {
        return ServerCheck(
            name: name, state: .wrong, text: "\(command): \(text)",
            mend: "use Redis 7, Valkey, or what understands their commands")
    }
    if !facts.forbidden.isEmpty {
        return ServerCheck(
            name: name, state: .warning,
            text:
                "the user may not use \(facts.forbidden.joined(separator: ", ")), which only the doctor needs: the clocks of nodes are not compared",
            mend: mend)
    }
    return ServerCheck(name: name, state: .ok, text: "the user may use all \(trials.count + RedisTrial.logIn.count)")
}

// MARK: INFO

private func infoChecks(_ facts: RedisFacts) -> [ServerCheck] {
    guard !facts.info.isEmpty else {
        return [
            ServerCheck(
                name: "redis version", state: .warning,
                text: "the user may not use INFO: version, memory and role are not known",
                mend: "+info in the line of the user")
        ]
    }
    return [versionCheck(facts.info), memoryCheck(facts.info), roleCheck(facts.info)] + persistenceChecks(facts.info)
}

private func versionCheck(_ info: [String: String]) -> ServerCheck {
    let name = "redis version"
    if let valkey = info["valkey_version"] { return ServerCheck(name: name, state: .ok, text: "Valkey \(valkey)") }
    guard let version = info["redis_version"], let major = version.split(separator: ".").first.flatMap({ Int($0) })
    else {
        return ServerCheck(name: name, state: .warning, text: "not known", mend: "Larder is tested with Redis 7")
    }
    // KeyDB counts on its own from Redis 6 on.
    if info["executable"]?.contains("keydb") == true || info["mvcc_depth"] != nil {
        return ServerCheck(name: name, state: .ok, text: "KeyDB \(version)")
    }
    guard major >= 7 else {
        return ServerCheck(
            name: name, state: .warning,
            text:
                "Redis \(version) does not say how many purges its stream has lost, so nodes validate more than they need to",
            mend: "use Redis 7 or later, or Valkey")
    }
    return ServerCheck(name: name, state: .ok, text: "Redis \(version)")
}

private func memoryCheck(_ info: [String: String]) -> ServerCheck {
    let name = "redis memory"
    let policy = info["maxmemory_policy"]
    guard let most = info["maxmemory"].flatMap({ Double($0) }) else {
        return ServerCheck(name: name, state: .warning, text: "the server does not say its maxmemory")
    }
    guard most > 0 else {
        return ServerCheck(
            name: name, state: .warning,
            text: "there is no maxmemory: the Redis grows until the machine has no memory left",
            mend: "maxmemory 8gb and maxmemory-policy allkeys-lru in redis.conf")
    }
    let used = info["used_memory"].flatMap { Double($0) } ?? 0
    let text = "\(binarySize(used)) of \(binarySize(most)), \(policy ?? "policy not known")"
    if policy == "noeviction" {
        return ServerCheck(
            name: name, state: .wrong, text: "\(text): once it is full, nothing new is shared, and purges wait",
            mend: "maxmemory-policy allkeys-lru in redis.conf")
    }
    if let policy, !policy.hasPrefix("allkeys-") {
        return ServerCheck(
            name: name, state: .warning, text: "\(text): keys without an expiry, such as the purges, are never removed",
            mend: "maxmemory-policy allkeys-lru in redis.conf")
    }
    return ServerCheck(name: name, state: .ok, text: text)
}

private func roleCheck(_ info: [String: String]) -> ServerCheck {
    let name = "redis role"
    guard info["role"] == "slave" || info["role"] == "replica" else {
        return ServerCheck(name: name, state: .ok, text: "primary")
    }
    return ServerCheck(
        name: name, state: .wrong,
        text: "a replica\(info["master_host"].map { " of \($0)" } ?? ""): nothing new is shared, and purges wait",
        mend: "let fleet.redis.url lead to the primary")
}

private func persistenceChecks(_ info: [String: String]) -> [ServerCheck] {
    let name = "redis files"
    if info["rdb_last_bgsave_status"] == "err" || info["aof_last_write_status"] == "err" {
        return [
            ServerCheck(
                name: name, state: .warning,
                text: "the Redis could not write its files, and may refuse writes for that reason",
                mend: "free some space there, or switch persistence off (save \"\", appendonly no)")
        ]
    }
    guard info["aof_enabled"] == "1" else { return [] }
    return [
        ServerCheck(
            name: name, state: .ok,
            text: "appendonly is on. The fleet does not need it: what the Redis loses is fetched again")
    ]
}

// MARK: latency

private func latencyCheck(_ pings: [Int]) -> ServerCheck {
    func text(_ microseconds: Int) -> String {
        microseconds < 1000 ? "\(microseconds) µs" : "\(fixed(Double(microseconds) / 1000)) ms"
    }
    guard let worst = pings.last else {
        return ServerCheck(name: "redis latency", state: .warning, text: "not measured")
    }
    let median = pings[pings.count / 2]
    let measured = "\(text(median)) (median), \(text(worst)) (worst of \(pings.count))"
    let bound = 20_000
    if median >= bound {
        return ServerCheck(
            name: "redis latency", state: .wrong,
            text: "\(measured): look-ups are given up after 20 ms, so nothing is read",
            mend: "put the nodes and the Redis into one network")
    }
    if worst >= bound || median >= bound / 4 {
        return ServerCheck(
            name: "redis latency", state: .warning,
            text: "\(measured): look-ups have 20 ms, and long bodies need two round trips",
            mend: "put the nodes and the Redis into one network; look for commands that keep the Redis busy (SLOWLOG)")
    }
    return ServerCheck(name: "redis latency", state: .ok, text: measured)
}

// MARK: nodes

private func nodeChecks(_ facts: RedisFacts) -> [ServerCheck] {
    [listCheck(facts)] + namesakeChecks(facts) + [fleetClockCheck(facts)]
}

private func listCheck(_ facts: RedisFacts) -> ServerCheck {
    let name = "fleet nodes"
    let releases = Dictionary(grouping: facts.nodes, by: \.report.release).sorted { $0.key < $1.key }
    let list = releases.map { "\($1.map(\.report.node).sorted().joined(separator: ", ")) (\($0))" }.joined(
        separator: "; ")
    if !facts.unreadable.isEmpty {
        let names = facts.unreadable.prefix(8).joined(separator: ", ")
        return ServerCheck(
            name: name, state: .warning,
            text: "\(facts.nodes.isEmpty ? "" : "\(list); ")no figures that this secret opens: \(names)",
            mend:
                "give all nodes the same fleet.secret_file and this release; if you do not know the name, look who can write to the Redis"
        )
    }
    if facts.nodes.isEmpty { return ServerCheck(name: name, state: .ok, text: "none is running") }
    if releases.count > 1 {
        return ServerCheck(
            name: name, state: .warning, text: "\(list): more than one release", mend: "upgrade the others, too")
    }
    return ServerCheck(name: name, state: .ok, text: list)
}

private func namesakeChecks(_ facts: RedisFacts) -> [ServerCheck] {
    facts.nodes.filter { $0.report[.hasNamesake] == 1 }.map { node in
        ServerCheck(
            name: "fleet names", state: .wrong,
            text:
                "two nodes have the name \(node.report.node): a purge counts them as one, and their figures hide each other",
            mend: "give each its own name with fleet.node.name")
    }
}

/// Limits and budgets are counted by the clocks of the nodes. A difference of a second is what a busy machine explains.
private func fleetClockCheck(_ facts: RedisFacts) -> ServerCheck {
    let bound: UInt64 = 1_000
    var clocks: [(String, Int64)] = facts.nodes.compactMap { node in node.clockAhead.map { (node.report.node, $0) } }
    if let ahead = facts.clockAhead { clocks.append(("the Redis", ahead)) }
    let wrong = clocks.filter { $0.1.magnitude > bound }
    guard wrong.isEmpty else {
        let list = wrong.map { name, ahead in
            "\(name) by \(fixed(Double(ahead.magnitude) / 1000)) s (\(ahead > 0 ? "ahead" : "behind"))"
        }
        return ServerCheck(
            name: "fleet clocks", state: .warning,
            text: "they differ from the one here: \(list.joined(separator: ", "))",
            mend: "run a time service on all machines: limits, budgets and nonces are counted by these clocks")
    }
    return ServerCheck(
        name: "fleet clocks", state: .ok,
        text: clocks.isEmpty ? "there is none to compare with" : "\(clocks.count) compared, the same within 1 s")
}

// MARK: nodes that own responses

/// - Parameter now: in seconds since 1970.
func peerChecks(_ facts: [PeerFacts], now: Int64) -> [ServerCheck] {
    facts.map { fact in
        func check(_ state: ServerCheck.State, _ text: String, _ mend: String? = nil) -> ServerCheck {
            ServerCheck(name: "owner \(fact.name)", state: state, text: text, mend: mend)
        }
        switch fact.result {
        case .failure(let failure):
            let (text, mend) = reason(of: failure)
            return check(.wrong, text, mend)
        case .success(.refused(.secret)):
            return check(.wrong, "it has another secret", "give all nodes the same fleet.secret_file")
        case .success(.refused(.version)), .success(.refused(.malformed)):
            return check(
                .warning, "it speaks another version of the protocol between nodes", "give all nodes one release")
        case .success(.refused(.behind)):
            return check(
                .warning, "a purge that others have applied is not applied there yet",
                "run the doctor again; if it stays so, look at the log of that node")
        case .success:
            let days = fact.chainEnd.map { ($0 - now) / 86_400 }
            guard let days, days > 14 else {
                return check(
                    .warning,
                    "it answers, and its certificate is valid for \(days.map { "\($0) more days" } ?? "?") only",
                    "renew the certificates of the fleet, or their authority")
            }
            return check(.ok, "it answers, and its certificate is valid for \(days) more days")
        }
    }
}

private func reason(of failure: ProbeFailure) -> (text: String, mend: String) {
    switch failure {
    case .name(let text):
        ("its name cannot be resolved: \(text)", "correct fleet.peers, or ask who runs the name server")
    case .connection(let text):
        (
            "it cannot be connected to: \(text)",
            "start that node, and let this machine connect to its fleet.node.peer.address"
        )
    case .tls(let text):
        (
            "TLS: \(text)",
            "its certificate has to come from fleet.node.peer.ca, and to name what fleet.peers calls the node: conf/fleet-certificates.sh"
        )
    case .closed:
        (
            "it closes the connection",
            "the certificate of this node has to come from the fleet.node.peer.ca of that one"
        )
    case .silence: ("it does not answer within 2 seconds", "look at the log of that node")
    case .nonsense(let text), .logIn(let text), .database(let text):
        ("it is no node of a fleet: \(text)", "correct fleet.peers: another service answers there")
    }
}
