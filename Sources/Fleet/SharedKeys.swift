import Message

/// The names of what a fleet has in Redis. The number in them is that of the layout.
///
/// | name | what |
/// |---|---|
/// | `larder:1:r:ZONE:HASH` | the head part of a record |
/// | `larder:1:b:ZONE:ID:N` | part N of the body of the record ID, from 0 |
/// | `larder:1:purges` | the stream of purges |
/// | `larder:1:nodes` | a hash: what each node says of itself (`RegisterEntry`) |
/// | `larder:1:node:NAME` | what a node says of itself (`NodeReport`), for two minutes |
/// | `larder:1:epoch` | a random value, which disappears if the server loses its data (see `StreamState.epoch`) |
/// | `larder:1:u:HASH` | a hash: what each node has used of a budget in one window (`SharedBudget`) |
/// | `larder:1:v:HASH` | when all budgets of a rule were reset last |
/// | `larder:1:news` | a stream: what nodes tell each other of limits and log-ins (`FleetNews`) |
///
/// HASH has 128 bits of a code over zone and cache key, or over rule and subject, as 32 hexadecimal digits. So whoever reads the names learns no URL, no
/// user and no address, and whoever does not have the secret cannot tell whether one is among them.
package enum SharedKeys {
    package static let purges = Array("larder:1:purges".utf8)
    package static let nodes = Array("larder:1:nodes".utf8)
    package static let epoch = Array("larder:1:epoch".utf8)
    package static let news = Array("larder:1:news".utf8)
    /// - Parameter name: of a node.
    package static func report(of name: String) -> [UInt8] { prefix + Array("node:\(name)".utf8) }

    /// What all names begin with, for the rules of an ACL.
    package static let prefix = Array("larder:1:".utf8)

    /// - Parameters:
    ///   - zone: the name of a zone of the cache.
    ///   - key: the bytes of a cache key.
    package static func record(zone: String, key: [UInt8], hash: some FleetHash) -> [UInt8] {
        let code = hash.code(for: .key, Array(zone.utf8) + [0] + key)
        return prefix + Array("r:\(zone):".utf8) + hexadecimal(code.prefix(16))
    }

    /// - Parameter number: of the part, from 0.
    package static func part(zone: String, of id: SharedRecordID, number: Int) -> [UInt8] {
        prefix + Array("b:\(zone):".utf8) + hexadecimal(id.bytes) + Array(":\(number)".utf8)
    }

    /// - Parameters:
    ///   - windowEnd: when the window ends, in seconds since 1970.
    package static func budget(_ bucket: BucketName, windowEnd: Int64, hash: some FleetHash) -> [UInt8] {
        let code = hash.code(for: .budget, bucket.bytes + Array("\(windowEnd)".utf8))
        return prefix + Array("u:".utf8) + hexadecimal(code.prefix(16))
    }

    /// - Parameter rule: the name of a rule of limits.
    package static func resets(of rule: String, hash: some FleetHash) -> [UInt8] {
        prefix + Array("v:".utf8) + hexadecimal(hash.code(for: .resets, Array(rule.utf8)).prefix(16))
    }
}
