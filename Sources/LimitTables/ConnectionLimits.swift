package import Limiting

/// The places of one client connection in its buckets, until the last reference is released. A tunnel goes on to hold them.
package final class ConnectionLimits: Sendable {
    private let accounts: [LimitAccount]

    private init(_ accounts: [LimitAccount]) { self.accounts = accounts }

    deinit { for account in accounts { account.disconnect() } }

    /// - Returns: the bucket that is full. No place is taken then.
    package static func take(_ uses: [LimitUse], _ table: LimitTable, now: UInt64) -> Result<
        ConnectionLimits, ConnectionRefusal
    > {
        var taken: [LimitAccount] = []
        for use in uses {
            guard let limit = use.terms.connections else { continue }
            let account = table.account(of: use.bucket, now: now)
            guard account.connect(limit: limit) else {
                account.noteRefusedConnection()
                for earlier in taken { earlier.disconnect() }
                return .failure(ConnectionRefusal(bucket: account.bucket, limit: limit))
            }
            taken.append(account)
        }
        return .success(ConnectionLimits(taken))
    }
}

/// Why a connection is closed when it is accepted.
package struct ConnectionRefusal: Error {
    let bucket: LimitBucket
    let limit: Int
    /// `limit addresses for client 192.0.2.1: 40 connections`
    package var text: String { "limit \(bucket.rule) for \(bucket.subject.description): \(limit) connections" }
}
