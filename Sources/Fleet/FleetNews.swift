/// What a node tells the others of limits and log-ins: what it has let through since it told them last, and what is under way. One entry of the stream
/// `SharedKeys.news`, a few times in a second if there is anything to tell.
///
/// The form, in little endian: version (1 byte), run, number, issuedAt (8 each), three counts (2 each), the items, and the code over all of it.
package struct FleetNews: Equatable, Sendable {
    /// Tells this run of the node from all others: 64 random bits.
    package var run: UInt64
    /// Counts the news of the run, so that none is used twice.
    package var number: UInt64
    /// In milliseconds since 1970, by the clock of the node.
    package var issuedAt: UInt64
    package var buckets: [Bucket] = []
    package var failures: [Failure] = []
    package var nonces: [Nonce] = []

    package init(run: UInt64, number: UInt64, issuedAt: UInt64) {
        self.run = run
        self.number = number
        self.issuedAt = issuedAt
    }

    /// What a node does with a bucket of a limit.
    package struct Bucket: Equatable, Sendable {
        package var name: BucketName
        /// The time that the requests take to come back which were let through since the last news: so many nanoseconds later the bucket is full.
        ///
        /// What was read is at most `debtMax`.
        package var requests: UInt64
        /// The same for bytes: so many nanoseconds later the next byte is due.
        package var bytes: UInt64
        /// Requests and tunnels that are under way now.
        package var underWay: UInt32
        /// Connections that are open now.
        package var connections: UInt32

        package init(
            name: BucketName, requests: UInt64 = 0, bytes: UInt64 = 0, underWay: UInt32 = 0, connections: UInt32 = 0
        ) {
            self.name = name
            self.requests = requests
            self.bytes = bytes
            self.underWay = underWay
            self.connections = connections
        }
    }

    /// Log-ins that failed since the last news. Names are those of `FailureCounts` in Access.
    package struct Failure: Equatable, Sendable {
        package var high: UInt64
        package var low: UInt64
        package var count: UInt16
        /// Whether it is the name of a user, and not that of an address.
        package var isOfUser: Bool

        package init(high: UInt64, low: UInt64, count: UInt16, isOfUser: Bool) {
            self.high = high
            self.low = low
            self.count = count
            self.isOfUser = isOfUser
        }
    }

    /// Counts of a nonce of Digest that were used: `highest`, and `highest - n` for each bit n.
    package struct Nonce: Equatable, Sendable {
        package var issued: UInt64
        package var number: UInt64
        package var highest: UInt32
        package var used: UInt128

        package init(issued: UInt64, number: UInt64, highest: UInt32, used: UInt128) {
            self.issued = issued
            self.number = number
            self.highest = highest
            self.used = used
        }
    }

    /// No news makes anybody wait for longer, whatever a node says: two days, in nanoseconds.
    package static let debtMax: UInt64 = 86_400_000_000_000 * 2
    /// The most items of each kind. More wait for the next news.
    package static let itemsMax = 1_024
    private static let version: UInt8 = 1
    private static let bytesMax = 128 << 10

    package var isEmpty: Bool { buckets.isEmpty && failures.isEmpty && nonces.isEmpty }

    package func encoded(hash: some FleetHash) -> [UInt8] {
        let counts = [buckets.count, failures.count, nonces.count]
        precondition(counts.allSatisfy { $0 <= FleetNews.itemsMax }, "news are short")
        var bytes: [UInt8] = [FleetNews.version]
        for word in [run, number, issuedAt] { bytes.appendLittleEndian(word) }
        for count in counts { bytes.appendLittleEndian(UInt16(count)) }
        for bucket in buckets {
            bytes += bucket.name.bytes
            bytes.appendLittleEndian(bucket.requests)
            bytes.appendLittleEndian(bucket.bytes)
            bytes.appendLittleEndian(bucket.underWay)
            bytes.appendLittleEndian(bucket.connections)
        }
        for failure in failures {
            bytes.appendLittleEndian(failure.high)
            bytes.appendLittleEndian(failure.low)
            bytes.appendLittleEndian(failure.count)
            bytes.append(failure.isOfUser ? 1 : 0)
        }
        for nonce in nonces {
            bytes.appendLittleEndian(nonce.issued)
            bytes.appendLittleEndian(nonce.number)
            bytes.appendLittleEndian(nonce.highest)
            bytes.appendLittleEndian(nonce.used)
        }
        return bytes + hash.code(for: .news, bytes)
    }

    /// Returns nil for what no node of the fleet has written, or one of a later release.
    package init?(_ bytes: [UInt8], hash: some FleetHash) {
        guard (1...FleetNews.bytesMax).contains(bytes.count), bytes.count > codeByteCount,
            areEqualCodes(
                hash.code(for: .news, bytes.dropLast(codeByteCount)), bytes.suffix(codeByteCount)),
            bytes[0] == FleetNews.version
        else { return nil }
        var scanner = RecordScanner(bytes.dropFirst().dropLast(codeByteCount))
        guard let run = scanner.number(UInt64.self), let number = scanner.number(UInt64.self),
            let issuedAt = scanner.number(UInt64.self), let buckets = scanner.number(UInt16.self),
            let failures = scanner.number(UInt16.self), let nonces = scanner.number(UInt16.self)
        else { return nil }
        self.init(run: run, number: number, issuedAt: issuedAt)
        for _ in 0..<buckets {
            guard let bucket = FleetNews.bucket(&scanner) else { return nil }
            self.buckets.append(bucket)
        }
        for _ in 0..<failures {
            guard let high = scanner.number(UInt64.self), let low = scanner.number(UInt64.self),
                let count = scanner.number(UInt16.self), let kind = scanner.number(UInt8.self), kind <= 1
            else { return nil }
            self.failures.append(Failure(high: high, low: low, count: count, isOfUser: kind == 1))
        }
        for _ in 0..<nonces {
            guard let issued = scanner.number(UInt64.self), let number = scanner.number(UInt64.self),
                let highest = scanner.number(UInt32.self), let used = scanner.number(UInt128.self)
            else { return nil }
            self.nonces.append(Nonce(issued: issued, number: number, highest: highest, used: used))
        }
        guard scanner.rest.isEmpty else { return nil }
    }

    private static func bucket(_ scanner: inout RecordScanner) -> Bucket? {
        guard let high = scanner.number(UInt64.self), let low = scanner.number(UInt64.self),
            let requests = scanner.number(UInt64.self), let bytes = scanner.number(UInt64.self),
            let underWay = scanner.number(UInt32.self), let connections = scanner.number(UInt32.self)
        else { return nil }
        return Bucket(
            name: BucketName(high: high, low: low), requests: min(requests, debtMax), bytes: min(bytes, debtMax),
            underWay: underWay,
            connections: connections)
    }
}
