/// Names the bucket of a rule of limits to the other nodes: 128 bits of a code over the rule and whose bucket it is. It tells neither to who does not
/// have the secret.
package struct BucketName: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// - Parameters:
    ///   - rule: the name of the rule. It has no NUL.
    ///   - kind: what the bucket is of, such as `user`. It has no NUL.
    ///   - name: of the user, the client or the group; empty if there is one bucket for all.
    package init(rule: String, kind: String, name: String, hash: some FleetHash) {
        let code = hash.code(for: .bucket, Array(rule.utf8) + [0] + Array(kind.utf8) + [0] + Array(name.utf8))
        high = code[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = code[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendLittleEndian(high)
        bytes.appendLittleEndian(low)
        return bytes
    }
}
