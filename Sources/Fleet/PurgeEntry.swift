import Message

/// One purge on the stream that all nodes follow.
///
/// The fields of the stream's entry are `version`, `node`, `number`, `at`, `purge` and `code`, in this order. The code covers the names and values
/// of all fields before it, whatever they are. So an entry of a later release can be told from one that somebody without the secret has added:
/// nodes that do not understand a purge of their own fleet must not pass over it.
package struct PurgeEntry: Equatable, Sendable {
    /// The name of the node that the purge was sent to.
    package let node: String
    /// Counts the purges of the node since it was started, so that the node knows its own entries.
    package let number: UInt64
    /// In seconds since 1970, by the clock of the node. It is for people: the id of the entry has the time by a clock that all nodes can read.
    package let issuedAt: Int64
    /// What is purged, in a form that the caller defines.
    package let purge: [UInt8]

    package static let nodeBytesMax = 255
    package static let purgeBytesMax = 16 << 10
    package static let version = 1
    /// What `purge` is where a node has lost purges before it could tell of them: everything is put in doubt. It is no purge that anybody can ask for; a
    /// node that does not know it cannot read it, and puts everything in doubt as well.
    package static let missed = Array(#"{"missed":true}"#.utf8)
    private static let names = ["version", "node", "number", "at", "purge"]
    private static let codeName = Array("code".utf8)
    /// Of names and values together. Longer entries are refused before their code is computed.
    private static let entryBytesMax = 32 << 10

    /// Returns nil if something is larger than its bound, or the time is before 1970.
    package init?(node: String, number: UInt64, issuedAt: Int64, purge: [UInt8]) {
        guard (1...PurgeEntry.nodeBytesMax).contains(node.utf8.count), purge.count <= PurgeEntry.purgeBytesMax,
            issuedAt >= 0
        else { return nil }
        self.node = node
        self.number = number
        self.issuedAt = issuedAt
        self.purge = purge
    }

    /// The arguments of XADD behind the id: names and values in turn.
    package func fields(hash: some FleetHash) -> [[UInt8]] {
        let fields = unsealed
        return fields + [PurgeEntry.codeName, hexadecimal(PurgeEntry.code(of: fields, hash))]
    }

    private var unsealed: [[UInt8]] {
        let values = [
            Array(String(PurgeEntry.version).utf8), Array(node.utf8), Array(String(number).utf8),
            Array(String(issuedAt).utf8), purge,
        ]
        return zip(PurgeEntry.names, values).flatMap { [Array($0.0.utf8), $0.1] }
    }

    /// - Parameter fields: names and values in turn, as XREAD returns them.
    package init(fields: [[UInt8]], hash: some FleetHash) throws(PurgeEntryError) {
        guard fields.count >= 2, fields.count.isMultiple(of: 2), fields[fields.count - 2] == PurgeEntry.codeName
        else { throw .notAPurge }
        guard fields.reduce(0, { $0 + $1.count }) <= PurgeEntry.entryBytesMax else { throw .tooLong }
        let content = Array(fields.dropLast(2))
        let code = hexadecimal(PurgeEntry.code(of: content, hash))
        guard areEqualCodes(code, fields[fields.count - 1]) else { throw .wrongCode }
        // From here on a node of the fleet has written the entry.
        guard content.count >= 2, content[0] == Array(PurgeEntry.names[0].utf8) else { throw .malformed }
        guard content[1] == Array(String(PurgeEntry.version).utf8) else { throw .unknownVersion }
        guard content.count == PurgeEntry.names.count * 2,
            let node = String(validating: content[3], as: UTF8.self), let number = parseDecimal(content[5]),
            let issuedAt = parseDecimal(content[7]).flatMap({ Int64(exactly: $0) }),
            let entry = PurgeEntry(node: node, number: number, issuedAt: issuedAt, purge: content[9]),
            entry.unsealed == content
        else { throw .malformed }
        self = entry
    }

    /// Each piece stands behind its length, so that no two lists of fields have the same bytes.
    private static func code(of fields: [[UInt8]], _ hash: some FleetHash) -> [UInt8] {
        var message: [UInt8] = []
        for field in fields {
            message.appendLittleEndian(UInt32(field.count))
            message += field
        }
        return hash.code(for: .purge, message)
    }
}

/// Why an entry of the stream is not a purge that this node can apply.
package enum PurgeEntryError: String, Error, CaseIterable, Sendable {
    /// The fields are not those of a purge, or there is no code.
    case notAPurge = "not-a-purge"
    case tooLong = "too-long"
    /// The entry was damaged, or somebody who does not have the secret added it.
    case wrongCode = "wrong-code"
    /// A node of another release added the entry.
    case unknownVersion = "unknown-version"
    /// The code and the version are right, but a field is not one that Larder writes.
    case malformed

    /// Whether a node of the fleet added the entry: it is a purge, which this node does not understand.
    package var isAuthentic: Bool {
        switch self {
        case .notAPurge, .tooLong, .wrongCode: false
        case .unknownVersion, .malformed: true
        }
    }
}
