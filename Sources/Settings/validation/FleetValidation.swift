/// Checks the settings of a fleet that depend on each other.
func fleetErrors(_ configuration: Configuration, _ reader: ConfigurationReader) -> [ConfigurationError] {
    let section = "fleet"
    guard let line = reader.lines[section], !reader.hasErrors(in: section) else { return [] }
    let fleet = configuration.fleet
    guard let url = fleet.redis else {
        return [reader.error("fleet.redis.url", line: line, "missing", hint: "name the Redis, or remove fleet")]
    }
    var errors: [ConfigurationError] = []
    func refuse(_ key: String, _ message: String, _ hint: String? = nil) {
        errors.append(
            reader.error("\(section).\(key)", line: reader.lines["\(section).\(key)"] ?? line, message, hint: hint))
    }
    if fleet.secretFile == nil {
        refuse(
            "secret_file", "missing",
            "every node has the same secret: openssl rand -hex 32 > /etc/larder/fleet.secret")
    }
    if fleet.authorityFile != nil, !url.isSecured {
        refuse("redis.ca_file", "the URL does not use TLS", "use rediss://")
    }
    if url.user != nil, fleet.passwordFile == nil {
        refuse("redis.password_file", "missing", "a user of Redis logs in with a password")
    }
    refusePeers(fleet, refuse)
    return errors
}

private func refusePeers(_ fleet: FleetSettings, _ refuse: (_ key: String, _ message: String, _ hint: String?) -> Void)
{
    let peer = fleet.peer
    let files = [
        ("certificate", peer.certificateFile), ("key", peer.keyFile), ("ca", peer.authorityFile),
    ]
    guard let peers = fleet.peers else {
        if peer != FleetListenerSettings() {
            refuse("peers", "missing", "name all nodes, or remove fleet.node.peer")
        }
        return
    }
    guard peer.address != nil else {
        return refuse("node.peer.address", "missing", "the other nodes need an address of this one")
    }
    for (key, file) in files where file == nil {
        refuse("node.peer.\(key)", "missing", "nodes know each other by certificates: docs/fleet.md")
    }
    guard case .nodes(let nodes) = peers else { return }
    for (index, node) in nodes.enumerated() where nodes.prefix(index).contains(where: { $0.name == node.name }) {
        refuse("peers", "\(node.name) is there twice", nil)
    }
    if nodes.count > FleetSettings.nodesMax {
        refuse("peers", "found \(nodes.count) nodes, expected \(FleetSettings.nodesMax) at most", nil)
    }
}
