import Accounts
package import EventLoop
import Glibc
package import Server
package import Settings
import TLS

/// Reads the files that `fleet` names, and throws the first fault. Nil if this Larder is alone.
package func readFleet(_ configuration: Configuration) throws(ProvisioningFault) -> FleetTerms? {
    guard configuration.fleet.redis != nil, configuration.fleet.secretFile != nil else { return nil }
    return try Preparation.throwing { preparation throws(ProvisioningFault) in
        try readFleet(configuration, &preparation)
    }
}

/// Reads the files that `fleet` names. Nil if this Larder is alone, or for a fault.
func readFleet(
    _ configuration: Configuration, _ preparation: inout Preparation
) throws(ProvisioningFault) -> FleetTerms? {
    let fleet = configuration.fleet
    guard let url = fleet.redis, let secretFile = fleet.secretFile else { return nil }
    let secret = try preparation.attempt { () throws(ProvisioningFault) in try readFleetSecret(secretFile) }
    let password = try preparation.attempt { () throws(ProvisioningFault) in try readFleetPassword(fleet) }
    let authorities = try preparation.attempt { () throws(ProvisioningFault) in
        try readRedisAuthorities(configuration, url)
    }
    let peers = try readPeers(fleet, &preparation)
    guard let secret, let password, let authorities, let peers else { return nil }
    return try preparation.attempt { () throws(ProvisioningFault) in
        do throws(TLSContextError) {
            return try FleetTerms(
                url: url, password: password, authorities: authorities, node: fleet.node ?? machineName(),
                secret: secret, peers: peers.terms)
        } catch {
            throw ProvisioningFault("fleet.redis.ca_file", "\(error)")
        }
    }
}

private func readFleetSecret(_ path: String) throws(ProvisioningFault) -> [UInt8] {
    let key = "fleet.secret_file"
    let secret = try firstLine(path, key: key)
    guard secret.count >= FleetSettings.secretBytesMin else {
        throw ProvisioningFault(
            key, "\(path): its first line has \(secret.count) bytes and not \(FleetSettings.secretBytesMin) or more",
            hint: "openssl rand -hex 32 makes one")
    }
    return secret
}

/// Nil if Larder logs in to the Redis without a password.
private func readFleetPassword(_ fleet: FleetSettings) throws(ProvisioningFault) -> [UInt8]? {
    guard let path = fleet.passwordFile else { return nil }
    let key = "fleet.redis.password_file"
    let line = try firstLine(path, key: key)
    guard !line.isEmpty else { throw ProvisioningFault(key, "\(path): its first line is empty") }
    return line
}

private func readRedisAuthorities(
    _ configuration: Configuration, _ url: RedisURL
) throws(ProvisioningFault) -> TLSClientOptions.Authorities {
    let fleet = configuration.fleet
    guard url.isSecured, let path = fleet.authorityFile ?? configuration.tls.caFile else { return .system }
    return .pem(try contents(of: path, key: fleet.authorityFile == nil ? "tls.ca_file" : "fleet.redis.ca_file"))
}

private struct PeerReading {
    /// Nil if the nodes do not ask each other.
    let terms: PeerTerms?
}

/// What `fleet.peers` and `fleet.node.peer` name. Its terms are nil if the nodes do not ask each other. Nil for a fault.
private func readPeers(
    _ fleet: FleetSettings, _ preparation: inout Preparation
) throws(ProvisioningFault) -> PeerReading? {
    guard let peers = fleet.peers, fleet.peer.tls != nil else { return PeerReading(terms: nil) }
    guard let (server, client) = try readPeerContexts(fleet.peer, &preparation) else { return nil }
    return PeerReading(
        terms: PeerTerms(peers: peers, listener: fleet.peer, tls: PeerTLS(server: server, client: client)))
}

/// What a node shows to others: as server, and as client. Nil for a fault.
func readPeerContexts(
    _ settings: FleetListenerSettings, _ preparation: inout Preparation
) throws(ProvisioningFault) -> (server: TLSServerContext, client: TLSClientContext)? {
    let key = "fleet.node.peer"
    guard let tls = settings.tls else { preconditionFailure("the settings are checked") }
    guard let server = try readContext(tls, key: key, authorityKey: "ca", &preparation) else { return nil }
    let client = try preparation.attempt { () throws(ProvisioningFault) in try readClientContext(tls, key: key) }
    return client.map { (server, $0) }
}

private func readClientContext(
    _ tls: ListenerTLSSettings, key: String
) throws(ProvisioningFault) -> TLSClientContext {
    let certificates = try contents(of: tls.certificateFile, key: "\(key).certificate")
    let privateKey = try contents(of: tls.keyFile, key: "\(key).key")
    var options = TLSClientOptions()
    do throws(ClientIdentityError) {
        options.identity = try ClientIdentity(certificates: certificates, key: privateKey, passphrase: nil)
    } catch {
        throw ProvisioningFault("\(key).certificate", "\(tls.certificateFile): \(error)")
    }
    options.versions = .tls13 ... .tls13
    options.authorities = .pem(try contents(of: tls.clientAuthorityFile ?? "", key: "\(key).ca"))
    do throws(TLSContextError) { return try TLSClientContext(options) } catch {
        throw ProvisioningFault("\(key).ca", "\(error)")
    }
}

/// Reads the certificate of this node again when one of its files has changed. Used on the control thread.
package final class PeerWatch {
    private var files: [WatchedFile]
    private var complaint: String?
    private let terms: PeerTerms
    private let loop: EventLoop
    private let repeating: RepeatingTimer
    private static let pause = Duration.seconds(2)

    package init(on loop: EventLoop, _ terms: PeerTerms) {
        self.loop = loop
        self.terms = terms
        repeating = RepeatingTimer(on: loop, every: PeerWatch.pause)
        files = (terms.listener.tls?.files ?? []).map { WatchedFile($0, pause: .zero, now: loop.now) }
    }

    package func start() { repeating.start { [unowned self] in look() } }

    package func stop() { repeating.stop() }

    private func look() {
        var hasChanged = complaint != nil
        // Each file is looked at, so that none is left with a version of long ago.
        for index in files.indices where files[index].hasChanged(at: loop.now) { hasChanged = true }
        guard hasChanged else { return }
        do throws(ProvisioningFault) {
            let (server, client) = try Preparation.throwing { [terms] preparation throws(ProvisioningFault) in
                try readPeerContexts(terms.listener, &preparation)
            }
            terms.tls.replace(server: server, client: client)
            complaint = nil
            Diagnostics.info("the certificate of this node, fleet.node.peer.certificate, was read again")
        } catch {
            guard complaint != "\(error)" else { return }
            complaint = "\(error)"
            Diagnostics.warning("\(error); what this node has shown to others before stays in use")
        }
    }
}

/// The name of this machine, as far as a node may be called so.
private func machineName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard unsafe gethostname(&name, name.count - 1) == 0 else { return "larder" }
    let text = name.prefix { $0 != 0 }.prefix(64).map { byte -> Character in
        let character = Character(UnicodeScalar(UInt8(bitPattern: byte)))
        return character.isASCII && (character.isLetter || character.isNumber || "-._".contains(character))
            ? character : "-"
    }
    return text.isEmpty ? "larder" : String(text)
}
