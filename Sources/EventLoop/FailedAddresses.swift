/// The addresses that failed lately, so that connections try them last (RFC 8305 §2 keeps such a history).
///
/// An address counts as failed for `memory` after its last failure, unless it succeeds. A family counts as failed while its last
/// `familyFailuresMax` addresses or more did not answer at all: a refusal shows that packets arrive.
package struct FailedAddresses: Sendable {
    package struct Bounds: Sendable {
        package var memory: Duration = .seconds(30)
        /// Beyond that, the failure that is to be forgotten first makes room.
        package var entriesMax = 1_000
        package var familyFailuresMax = 3

        package init() {}
    }

    /// How an address failed.
    package enum Failure: Sendable {
        /// It refused the connection, or the connection ended.
        case refused
        /// Nothing came back, there is no way to it, or an address tried later was faster.
        case silent
    }

    private struct FamilyRecord {
        /// The addresses without an answer since the last success.
        var silent: Set<SocketAddress> = []
        var until = MonotonicTime(nanoseconds: 0)
    }

    private let bounds: Bounds
    private var failedUntil: [SocketAddress: MonotonicTime] = [:]
    private var v4 = FamilyRecord()
    private var v6 = FamilyRecord()

    package init(bounds: Bounds = Bounds()) { self.bounds = bounds }

    package var count: Int { failedUntil.count }

    package mutating func note(_ failure: Failure, of address: SocketAddress, at now: MonotonicTime) {
        let until = now.advanced(by: bounds.memory)
        if failedUntil[address] == nil, failedUntil.count >= bounds.entriesMax { makeRoom(at: now) }
        failedUntil[address] = until
        guard failure == .silent else { return changeFamily(of: address) { $0 = FamilyRecord() } }
        let enough = bounds.familyFailuresMax
        changeFamily(of: address) { record in
            if record.silent.count < enough { record.silent.insert(address) }
            record.until = until
        }
    }

    package mutating func noteSuccess(of address: SocketAddress) {
        failedUntil[address] = nil
        changeFamily(of: address) { $0 = FamilyRecord() }
    }

    /// The same addresses: first those that did not fail lately, each group in its order.
    package func ordered(_ addresses: [SocketAddress], at now: MonotonicTime) -> [SocketAddress] {
        guard addresses.count > 1, !failedUntil.isEmpty || !v4.silent.isEmpty || !v6.silent.isEmpty else {
            return addresses
        }
        return addresses.filter { !hasFailed($0, at: now) } + addresses.filter { hasFailed($0, at: now) }
    }

    private func hasFailed(_ address: SocketAddress, at now: MonotonicTime) -> Bool {
        if let until = failedUntil[address], until > now { return true }
        let record: FamilyRecord
        switch address.family {
        case .v4: record = v4
        case .v6: record = v6
        case .unix: return false
        }
        return record.silent.count >= bounds.familyFailuresMax && record.until > now
    }

    private mutating func changeFamily(of address: SocketAddress, _ change: (inout FamilyRecord) -> Void) {
        switch address.family {
        case .v4: change(&v4)
        case .v6: change(&v6)
        case .unix: break
        }
    }

    private mutating func makeRoom(at now: MonotonicTime) {
        failedUntil = failedUntil.filter { $0.value > now }
        guard failedUntil.count >= bounds.entriesMax, let oldest = failedUntil.min(by: { $0.value < $1.value })
        else { return }
        failedUntil[oldest.key] = nil
    }
}

/// The history that the connection attempts of one loop share.
package final class ConnectHistory {
    package var failed = FailedAddresses()

    package init() {}
}
