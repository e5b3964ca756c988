import Message

/// What a node says in the register of the fleet (`SharedKeys.nodes`) under its name: that it is there, and up to which entry of the stream it has applied purges.
///
/// Words with a space between them: the time, the position, the run, the release, a mark of the server's data, the address by which other nodes ask it or `-`, and a code
/// over all of it and the name. Nodes of a release without marks and codes write the first four words alone, and read no more than those.
package struct RegisterEntry: Equatable, Sendable {
    /// In seconds since 1970, by the clock of the node.
    package let seenAt: Int64
    package let position: StreamID
    /// Tells runs of a node apart, and nodes that have the same name.
    package let run: String
    package let release: String
    /// Tells whose data the position is of (`RegisterEntry.mark(of:hash:)`).
    package let mark: String
    /// As in `fleet.peers`. Nil: nobody asks it.
    package let peer: String?

    package init(
        seenAt: Int64, position: StreamPosition, run: String, release: String, peer: String?, hash: some FleetHash
    ) {
        self.seenAt = seenAt
        self.position = position.id
        self.run = run
        self.release = release
        self.peer = peer
        mark = RegisterEntry.mark(of: position.epoch, hash: hash)
    }

    /// Whether a purge with this position is applied. Positions of other data say nothing.
    package func hasApplied(_ purge: StreamPosition, hash: some FleetHash) -> Bool {
        position >= purge.id && mark == RegisterEntry.mark(of: purge.epoch, hash: hash)
    }

    private static func mark(of epoch: StreamEpoch, hash: some FleetHash) -> String {
        String(decoding: hexadecimal(hash.code(for: .register, epoch.bytes).prefix(8)), as: UTF8.self)
    }

    // MARK: the value

    private static let bytesMax = 1 << 10

    /// - Parameter name: of the node.
    package func value(of name: String, hash: some FleetHash) -> [UInt8] {
        let said =
            "\(seenAt) \(String(decoding: position.text, as: UTF8.self)) \(run) \(release) \(mark) \(peer ?? "-")"
        return Array(said.utf8) + [0x20] + RegisterEntry.code(of: name, Array(said.utf8), hash)
    }

    private static func code(of name: String, _ said: [UInt8], _ hash: some FleetHash) -> [UInt8] {
        hexadecimal(hash.code(for: .register, Array(name.utf8) + [0] + said))
    }

    /// What stands under a name.
    package enum Reading: Equatable, Sendable {
        /// A node of the fleet says it.
        case node(RegisterEntry)
        /// It has the form of a release that cannot prove who says it.
        case unproven(seenAt: Int64, position: StreamID, run: String, release: String)
        /// It has a code that is not of this fleet: a node with another secret, or somebody who made it up.
        ///
        /// - peer: what it calls itself, unproven.
        case otherSecret(peer: String?)
        case nonsense
    }

    package static func read(_ value: [UInt8], of name: String, hash: some FleetHash) -> Reading {
        guard value.count <= bytesMax else { return .nonsense }
        let words = value.split(separator: 0x20, omittingEmptySubsequences: false)
        guard words.count == 4 || words.count == 7, let seenAt = parseDecimal(words[0]).map({ Int64(clamping: $0) }),
            let position = StreamID(Array(words[1])), let run = String(validating: words[2], as: UTF8.self),
            let release = String(validating: words[3], as: UTF8.self)
        else { return .nonsense }
        guard words.count == 7 else {
            return .unproven(seenAt: seenAt, position: position, run: run, release: release)
        }
        let peer = words[5].elementsEqual("-".utf8) ? nil : String(decoding: words[5], as: UTF8.self)
        guard areEqualCodes(words[6], code(of: name, Array(value.dropLast(words[6].count + 1)), hash)) else {
            return .otherSecret(peer: peer)
        }
        // From here on a node of the fleet has written it.
        return .node(
            RegisterEntry(
                seenAt: seenAt, position, run: run, release: release, mark: String(decoding: words[4], as: UTF8.self),
                peer: peer))
    }

    private init(seenAt: Int64, _ position: StreamID, run: String, release: String, mark: String, peer: String?) {
        self.seenAt = seenAt
        self.position = position
        self.run = run
        self.release = release
        self.mark = mark
        self.peer = peer
    }
}
