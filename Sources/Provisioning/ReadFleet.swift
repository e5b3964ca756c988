package import EventLoop
import Glibc
package import Server
package import Settings
import TLS

/// Reads the files that `fleet` names. Nil if this Larder is alone.
package func readFleet(_ configuration: Configuration) throws(ProvisioningFault) -> FleetTerms? {
    let fleet = configuration.fleet
    guard let url = fleet.redis, let secretFile = fleet.secretFile else { return nil }
    let secretKey = "fleet.secret_file"
    let secret = try firstLine(secretFile, key: secretKey)
    guard secret.count >= FleetSettings.secretBytesMin else {
        throw ProvisioningFault(
            secretKey,
            "\(secretFile): its first line has \(secret.count) bytes and not \(FleetSettings.secretBytesMin) or more",
            hint: "openssl rand -hex 32 makes one")
    }
    let passwordKey = "fleet.redis.password_file"
    let password = try fleet.passwordFile.map { path throws(ProvisioningFault) in
        let line = try firstLine(path, key: passwordKey)
        guard !line.isEmpty else { throw ProvisioningFault(passwordKey, "\(path): its first line is empty") }
        return line
    }
    var authorities = TLSClientOptions.Authorities.system
    if url.isSecured, let path = fleet.authorityFile ?? configuration.tls.caFile {
        authorities = .pem(
            try contents(of: path, key: fleet.authorityFile == nil ? "tls.ca_file" : "fleet.redis.ca_file"))
    }
    let peers = try readPeers(fleet)
    do throws(TLSContextError) {
        return try FleetTerms(
            url: url, password: password, authorities: authorities, node: fleet.node ?? machineName(), secret: secret,
            peers: peers)
    } catch {
        throw ProvisioningFault("fleet.redis.ca_file", "\(error)")
    }
}

/// What `fleet.peers` and `fleet.node.peer` name. Nil: the nodes do not ask each other.
private func readPeers(_ fleet: FleetSettings) throws(ProvisioningFault) -> PeerTerms? {
    guard let peers = fleet.peers, fleet.peer.tls != nil else { return nil }
    let (server, client) = try readPeerContexts(fleet.peer)
    return PeerTerms(peers: peers, listener: fleet.peer, tls: PeerTLS(server: server, client: client))
}

/// What a node shows to others: as server, and as client.
func readPeerContexts(
    _ settings: FleetListenerSettings
) throws(ProvisioningFault) -> (server: TLSServerContext, client: TLSClientContext) {
    let key = "fleet.node.peer"
    guard let tls = settings.tls else { preconditionFailure("the settings are checked") }
    let server = try readContext(tls, key: key, authorityKey: "ca")
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
    do throws(TLSContextError) { return (server, try TLSClientContext(options)) } catch {
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
            let (server, client) = try readPeerContexts(terms.listener)
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
