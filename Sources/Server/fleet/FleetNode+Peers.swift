import Accounts
import EventLoop
import Fleet
import Message
import Routing
import Settings

/// Finds out who is in the fleet: looks the names of `fleet.peers` up, with every beat.
extension FleetNode {
    func lookForPeers() {
        guard let desk = peers, let peersSetting else { return }
        switch peersSetting {
        case .nodes(let nodes):
            for node in nodes { lookUp(node.host) }
            publishPeers(
                nodes.map { node in
                    let own = addresses(of: node.host).contains { isOwn($0, node.port) }
                    let place = FleetPeer(Endpoint(host: node.host, port: node.port), serverName: node.host)
                    return (Ownership.Member(node.name, weight: node.weight), own ? nil : place)
                }, desk)
        case .name(let host, let port):
            lookUp(host)
            // As long as the name cannot be looked up, those of before are asked.
            guard let addresses = peerAddresses[host] else { return }
            publishPeers(
                addresses.prefix(Ownership.membersMax).map { address in
                    let endpoint = Endpoint(host: "\(address)", port: port)
                    let place = FleetPeer(endpoint, serverName: host)
                    return (Ownership.Member("\(endpoint)"), isOwn(address, port) ? nil : place)
                }, desk)
        }
    }

    /// Another configuration is in force. If it has a name whose addresses are the nodes, those of before are asked until it is looked up.
    func adopt(_ peers: FleetPeersSetting) {
        guard peersSetting != nil, peersSetting != peers else { return }
        peersSetting = peers
        // What was found out of names that are no longer there is forgotten.
        peerAddresses = peerAddresses.filter { peers.hosts.contains($0.key) }
        namesMissed.formIntersection(peers.hosts)
        lookForPeers()
    }

    private func addresses(of host: String) -> [IPAddress] {
        if let literal = IPAddress(strict: host.utf8) { return [literal] }
        return peerAddresses[host] ?? []
    }

    private func lookUp(_ host: String) {
        guard IPAddress(strict: host.utf8) == nil, !namesAsked.contains(host) else { return }
        namesAsked.insert(host)
        // What comes later is in the cache for the next beat.
        resolver.resolve(host, by: loop.now.advanced(by: RedisLink.connectTimeout)) { [unowned self] outcome in
            namesAsked.remove(host)
            switch outcome {
            case .success(let resolution):
                guard peersSetting?.hosts.contains(host) == true else { return }
                let found = resolution.addresses.compactMap { IPAddress($0) }.sorted { "\($0)" < "\($1)" }
                guard peerAddresses.updateValue(found, forKey: host) != found else { return }
                lookForPeers()
            case .failure(let error):
                guard peerAddresses[host] == nil, !namesMissed.contains(host) else { return }
                namesMissed.insert(host)
                Diagnostics.warning("fleet: \(host) of fleet.peers cannot be looked up: \(error)")
            }
        }
    }

    private func publishPeers(_ members: [(member: Ownership.Member, place: FleetPeer?)], _ desk: PeerDesk) {
        guard desk.setMembers(members, now: loop.now) else { return }
        let names = members.map(\.member.name).joined(separator: ", ")
        Diagnostics.info("fleet: the nodes that own responses are \(names)")
        if members.allSatisfy({ $0.place != nil }) {
            Diagnostics.warning(
                "fleet: none of them is this node, so it owns nothing: fleet.node.peer.address must be one of fleet.peers"
            )
        }
    }

    func publishPosition() {
        peers?.setProgress(PurgeProgress(follower, log, isMarking: isMarking))
    }
}
