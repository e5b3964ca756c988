import Message

/// Statuses below 500 that a rule takes for a failure of the origin (`failure_statuses`), as every 5xx is one: what an origin says that has had enough
/// requests. A status that says something about the resource is none of them: who removes a release wants its 404 to be heard.
package struct FailureStatuses: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Some origins answer so to who asks too often. Others mean what they say.
    package static var forbidden: FailureStatuses { FailureStatuses(rawValue: 1 << 0) }
    package static var requestTimeout: FailureStatuses { FailureStatuses(rawValue: 1 << 1) }
    package static var tooEarly: FailureStatuses { FailureStatuses(rawValue: 1 << 2) }
    package static var tooManyRequests: FailureStatuses { FailureStatuses(rawValue: 1 << 3) }

    /// Each with its status, in the order of the statuses.
    private static var all: [(status: UInt16, member: FailureStatuses)] {
        [(403, .forbidden), (408, .requestTimeout), (425, .tooEarly), (429, .tooManyRequests)]
    }

    /// Those that a rule can name.
    package static var nameable: [UInt16] { all.map(\.status) }

    /// Returns nil for a status that no rule can name.
    package init?(status: UInt16) {
        guard let member = FailureStatuses.all.first(where: { $0.status == status })?.member else { return nil }
        self = member
    }

    package var statuses: [UInt16] { FailureStatuses.all.filter { contains($0.member) }.map(\.status) }

    package func contains(status: UInt16) -> Bool {
        guard !isEmpty, let member = FailureStatuses(status: status) else { return false }
        return contains(member)
    }
}

extension CacheHandling {
    /// Whether a response with this status is a failure of the origin, for which a stored response may stand in.
    package func countsAsFailure(_ status: UInt16) -> Bool {
        if case .serverError = StatusClass(status) { true } else { failureStatuses.contains(status: status) }
    }

    /// Whether stored responses stand in while an origin that has failed wants no requests (`Retry-After`).
    var heedsPauses: Bool { use.contains(.staleOnError) || !failureStatuses.isEmpty }
}
