/// The nodes that a node has found in the register within a day, this one included, whether they are there still or not. They are those of which `larder purge` must
/// be able to say whether they have applied a purge, so nobody leaves the list because the server has lost the register.
///
/// Times are nanoseconds of a clock that never goes back.
package struct KnownNodes: Sendable {
    package struct Node: Sendable {
        package fileprivate(set) var value: [UInt8]
        package fileprivate(set) var reading: RegisterEntry.Reading
        /// When the value was new here.
        package fileprivate(set) var heardAt: UInt64
        /// A node of the fleet has written under the name.
        fileprivate var isProven: Bool
        /// The runs that were there before the present one.
        fileprivate var earlierRuns: [String] = []
        /// When a run came back after another one: two nodes have the name.
        fileprivate var clashedAt: UInt64?
    }

    private var nodes: [String: Node] = [:]
    /// Since when this node can hear of the others.
    private var listeningSince: UInt64 = 0

    private static let second: UInt64 = 1_000_000_000
    /// A node that has said nothing for so long is gone, or cut off.
    package static let silenceMax = 15 * second
    /// For so long a node is known that proved to be of the fleet.
    package static let memory = 86_400 * second
    /// The same of anything else.
    private static let memoryOfUnproven = 120 * second
    private static let clashMemory = 60 * second
    package static let countMax = 256
    private static let runsMax = 4

    package init() {}

    /// There is a connection. Nodes may need a moment to come back to it.
    package mutating func listens(now: UInt64) { listeningSince = now }

    /// Takes what the register has. A name that is missing stays known.
    ///
    /// - Returns: names that may be removed from the register, because nobody has written there for long.
    package mutating func read(
        _ register: [(name: String, value: [UInt8])], hash: some FleetHash, now: UInt64
    ) -> [String] {
        for (name, value) in register where nodes[name]?.value != value { hear(name, value, hash, now) }
        let forgotten = Set(nodes.filter { now &- $0.value.heardAt > KnownNodes.memory(of: $0.value) }.keys)
        for name in forgotten { nodes[name] = nil }
        return register.map(\.name).filter { forgotten.contains($0) }
    }

    private static func memory(of node: Node) -> UInt64 { node.isProven ? memory : memoryOfUnproven }

    private mutating func hear(_ name: String, _ value: [UInt8], _ hash: some FleetHash, _ now: UInt64) {
        let reading = RegisterEntry.read(value, of: name, hash: hash)
        let isProven = if case .node = reading { true } else { false }
        guard var node = nodes[name] else {
            guard reading != .nonsense, nodes.count < KnownNodes.countMax || (isProven && dropUnproven()) else {
                return
            }
            nodes[name] = Node(value: value, reading: reading, heardAt: now, isProven: isProven)
            return
        }
        if let before = KnownNodes.run(of: node.reading), let run = KnownNodes.run(of: reading), run != before {
            if node.earlierRuns.contains(run) { node.clashedAt = now }
            node.earlierRuns = (node.earlierRuns.filter { $0 != before } + [before]).suffix(KnownNodes.runsMax)
        }
        node.value = value
        node.reading = reading
        node.heardAt = now
        node.isProven = node.isProven || isProven
        nodes[name] = node
    }

    /// Makes room. Returns false if there is nobody to forget.
    private mutating func dropUnproven() -> Bool {
        guard let name = nodes.filter({ !$0.value.isProven }).min(by: { $0.value.heardAt < $1.value.heardAt })?.key
        else { return false }
        nodes[name] = nil
        return true
    }

    private static func run(of reading: RegisterEntry.Reading) -> String? {
        switch reading {
        case .node(let entry): entry.run
        case .unproven(_, _, let run, _): run
        case .otherSecret, .nonsense: nil
        }
    }

    /// Those that have said something lately, by name.
    package func present(now: UInt64) -> [(name: String, node: Node)] {
        nodes.filter { isPresent($0.value, now) }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private func isPresent(_ node: Node, _ now: UInt64) -> Bool {
        now &- max(node.heardAt, listeningSince) <= KnownNodes.silenceMax
    }

    // MARK: purges

    /// How far a purge has come on the other nodes.
    ///
    /// - Parameters:
    ///   - purge: its position. Nil: the server has not taken it, or this node does not know whose data the server has.
    ///   - own: the name of this node, and of its run.
    ///   - members: the other nodes as `fleet.peers` has them. Those of which nothing was heard are named so.
    package func standings(
        of purge: StreamPosition?, own: (name: String, run: String), members: [String], hash: some FleetHash,
        now: UInt64
    ) -> [NodeStanding] {
        var standings = nodes.filter { $0.key != own.name }.map { name, node in
            NodeStanding(name, state(of: node, purge, hash, now))
        }
        if let namesake = nodes[own.name], hasClashed(namesake, now) || hasOther(namesake, than: own.run, now) {
            standings.append(NodeStanding(own.name, .unproven(.namesake)))
        }
        standings += unheard(of: members).map { NodeStanding($0, .silent(seconds: nil)) }
        return standings.sorted { $0.name < $1.name }
    }

    /// The members that no name in the register stands for.
    private func unheard(of members: [String]) -> ArraySlice<String> {
        var heard: Set<String> = []
        var nameless = 0
        for node in nodes.values {
            switch node.reading {
            case .node(let entry): if let peer = entry.peer { heard.insert(peer) }
            case .otherSecret(let peer): if let peer { heard.insert(peer) }
            case .unproven: nameless += 1
            case .nonsense: break
            }
        }
        return members.filter { !heard.contains($0) }.dropFirst(nameless)
    }

    /// Whether waiting may help: a node that was heard lately has not applied the purge yet.
    package func isWorthWaiting(for purge: StreamPosition, ownName: String, hash: some FleetHash, now: UInt64) -> Bool {
        nodes.contains { name, node in
            guard name != ownName, isPresent(node, now), case .node(let entry) = node.reading else { return false }
            return !entry.hasApplied(purge, hash: hash)
        }
    }

    private func state(
        of node: Node, _ purge: StreamPosition?, _ hash: some FleetHash, _ now: UInt64
    ) -> NodeStanding.State {
        if hasClashed(node, now) { return .unproven(.namesake) }
        switch node.reading {
        case .node(let entry):
            if let purge, entry.hasApplied(purge, hash: hash) { return .applied }
            return .silent(seconds: (now &- node.heardAt) / KnownNodes.second)
        case .unproven: return .unproven(.release)
        case .otherSecret, .nonsense: return .refused(.otherSecret)
        }
    }

    private func hasClashed(_ node: Node, _ now: UInt64) -> Bool {
        node.clashedAt.map { now &- $0 < KnownNodes.clashMemory } ?? false
    }

    /// Something else than this run has written under the name of this node lately.
    private func hasOther(_ node: Node, than run: String, _ now: UInt64) -> Bool {
        KnownNodes.run(of: node.reading).map { $0 != run } ?? false && isPresent(node, now)
    }
}
