import Accounts
import Authentication
import ClientSetup
import Credentials
import Foundation
import LogIns
import Message
import Provisioning
import Origins
import Server
import Settings
import Storage
import TLS
import Testing
import Tokens

/// A scripted origin, Larder as it runs, and scripted clients on one page.
///
/// ```swift
/// try scenario { s in
///     s.origin.expects("GET /a", "!Connection").replies(200, body: "hello")
///     #expect(try s.client().get("/a").text == "hello")
/// }
/// ```
final class Scenario {
    let origin: ScriptedOrigin
    private(set) var proxy: Proxy
    private let snapshot: Snapshot
    let directory: URL
    private let pacFiles = ScenarioPACFiles()
    private var hasEnded = false

    fileprivate init(pages: Pages, _ configure: (inout Configuration, Scenario.Files) throws -> Void) throws {
        origin = try ScriptedOrigin()
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("larder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        snapshot = try Scenario.snapshot(
            in: directory, origin: origin, pages: pages, pacFiles: pacFiles, configure)
        proxy = try Proxy.start(snapshot)
    }

    /// Ends Larder as SIGTERM does, and starts it anew with the same configuration; clients have to connect anew.
    func restart(between: () throws -> Void = {}) throws {
        proxy.stop()
        proxy.join()
        try between()
        proxy = try Proxy.start(snapshot)
    }

    /// Of the default zone.
    var tier: Tiers { proxy.shared.zones.current[0].tier }

    /// What is stored is on the disk, and memory forgets it.
    func leaveToDisk() throws {
        // An answer may be out a moment before its fetch has come to its end.
        try eventually("all in memory is given to the disk") {
            var (records, given) = (0, 0)
            tier.memory.forEach {
                records += 1
                given += $0.storedID == nil ? 0 : 1
            }
            return records > 0 && records == given
        }
        guard tier.backStore?.flush() == true else { throw WireError("the disk does not take what it has to") }
        tier.clearMemory()
    }

    /// What a configuration may name.
    struct Files {
        let directory: URL
        let origin: ScriptedOrigin
        func write(_ name: String, _ text: String) throws -> String {
            let url = directory.appendingPathComponent(name)
            try text.write(to: url, atomically: true, encoding: .utf8)
            return url.path
        }
    }

    private static func snapshot(
        in directory: URL, origin: ScriptedOrigin, pages: Pages = Pages(), pacFiles: ScenarioPACFiles,
        after earlier: Snapshot? = nil, _ configure: (inout Configuration, Files) throws -> Void
    ) throws -> Snapshot {
        var configuration = Configuration()
        configuration.listen = [.tcp(IPAddress(v4: 0x7F00_0001), port: 0)]
        configuration.workers = .count(2)
        // A script says what happens to each request. Scenarios about other attempts turn them on.
        configuration.retries.countMax = 0
        configuration.admin.address = nil
        configuration.admin.socket = nil
        configuration.cache.memory = 64 << 20
        configuration.access.privateDestinations = .allow
        configuration.log.access = .file(directory.appendingPathComponent("access.log").path)
        try configure(&configuration, Files(directory: directory, origin: origin))
        var authentication = AuthenticationMaterial()
        if let path = configuration.access.authentication.digest.usersFile {
            authentication.digestUsers =
                DigestFile.parse(
                    Array(try Data(contentsOf: URL(fileURLWithPath: path))),
                    realm: configuration.access.authentication.digest.realm
                ).file
        }
        if let path = configuration.access.authentication.basic.usersFile {
            authentication.users = HtpasswdFile.parse(Array(try Data(contentsOf: URL(fileURLWithPath: path)))).file
        }
        if let path = configuration.access.authentication.bearer.tokensFile {
            authentication.tokens = TokenFile.parse(Array(try Data(contentsOf: URL(fileURLWithPath: path)))).file
        }
        if case .file(let path) = configuration.access.authentication.bearer.keys {
            authentication.tokenKeys = try JSONWebKeySet(
                parsing: Array(try Data(contentsOf: URL(fileURLWithPath: path))), allowsShared: true)
        }
        // Only the program reads files and variables: a secret in the text is one for the tests.
        var secrets: [String: [SecretPart: Secret]] = [:]
        for rule in configuration.credentials {
            if rule.secrets.isEmpty { secrets[rule.name] = [:] }
            for case (let part, .text(let secret)) in rule.secrets { secrets[rule.name, default: [:]][part] = secret }
        }
        return try Snapshot(
            configuration: configuration, authentication: authentication, interceptor: try interceptor(configuration),
            pages: pages,
            secrets: SecretShelf(secrets),
            listenerTLS: try readListeners(configuration.listen, earlier: earlier?.listenerTLS ?? [:]),
            originTLS: try materials(configuration),
            scripts: try pacFiles.scripts(for: configuration), after: earlier)
    }

    /// What the program makes of the files that `origins` names.
    private static func materials(_ configuration: Configuration) throws -> [TLSMaterial] {
        try configuration.origins.compactMap { rule in
            guard let tls = rule.tls else { return nil }
            var options = TLSClientOptions(tls, over: configuration.tls)
            if let path = tls.authorityFile { options.authorities = .file(path) }
            if case .pem(let certificate, let key)? = tls.identity {
                func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
                options.identity = try ClientIdentity(certificates: bytes(certificate), key: bytes(key))
            }
            return TLSMaterial(rule: rule.number, tls, options, digest: [])
        }
    }

    func client(receiveBuffer: CInt? = nil, from source: UInt32? = nil) throws -> ScriptedClient {
        try ScriptedClient(port: proxy.addresses[0].port, origin: origin, receiveBuffer: receiveBuffer, from: source)
    }

    /// A new configuration for requests that begin from now on.
    func adopt(_ configure: (inout Configuration, Files) throws -> Void) throws {
        proxy.adopt(
            try Scenario.snapshot(in: directory, origin: origin, pacFiles: pacFiles, after: proxy.snapshot, configure))
    }

    func count(_ counter: Counter) -> UInt64 { proxy.counters.reduce(0) { $0 + $1[counter] } }

    /// What the workers had when they last looked, which is once a second.
    func gauge(_ gauge: Gauge) -> UInt64 { proxy.counters.reduce(0) { $0 + $1.gauges[gauge.rawValue] } }

    /// Waits until a condition holds that no event tells of, such as a counter's value.
    func eventually(_ what: String, _ condition: () throws -> Bool) throws {
        let deadline = Date(timeIntervalSinceNow: Double(patience) / 1000)
        while try !condition() {
            guard Date() < deadline else { throw WireError("not in time: \(what)") }
            usleep(500)
        }
    }

    func expect(_ counter: Counter, _ value: UInt64) throws {
        try eventually("\(counter) = \(value), it is \(count(counter))") { count(counter) == value }
    }

    /// The access log; ends the proxy, so that every line is there.
    func logLines() throws -> [String] {
        end()
        return try String(contentsOf: directory.appendingPathComponent("access.log"), encoding: .utf8)
            .split(separator: "\n").map(String.init)
    }

    fileprivate func end() {
        guard !hasEnded else { return }
        hasEnded = true
        proxy.stop()
        proxy.join()
        pacFiles.close()
        origin.end()
    }

    fileprivate func remove() {
        end()
        do { try FileManager.default.removeItem(at: directory) } catch { Issue.record(error) }
    }
}

/// Runs one scenario and fails where the origin saw something else than its script.
func scenario(
    pages: Pages = Pages(), _ configure: (inout Configuration, Scenario.Files) throws -> Void = { _, _ in },
    sourceLocation: SourceLocation = #_sourceLocation, _ play: (Scenario) throws -> Void
) throws {
    let scenario = try Scenario(pages: pages, configure)
    defer { scenario.remove() }
    do { try play(scenario) } catch {
        Issue.record("\(error)", sourceLocation: sourceLocation)
    }
    for problem in scenario.origin.problems() { Issue.record("\(problem)", sourceLocation: sourceLocation) }
}
