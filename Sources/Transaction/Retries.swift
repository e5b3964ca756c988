/// Bounds the requests that are sent again, so that an origin in trouble does not get many more requests than its clients make.
///
/// Every request to an origin earns a share of a retry, and every retry costs a whole one.
package struct RetryBudget: Equatable, Sendable {
    /// What one retry costs.
    private static let price = 100
    /// What a proxy with little traffic may spend before it has earned anything, and how much is saved at most, in retries.
    private static let savingsAtFirst = 10
    private static let savingsMax = 100
    private var savings = RetryBudget.savingsAtFirst * RetryBudget.price

    package init() {}

    /// A request is sent to an origin for the first time.
    ///
    /// - Parameter percent: how many retries a hundred requests earn.
    package mutating func noteRequest(percent: Int) {
        savings = min(savings + percent, RetryBudget.savingsMax * RetryBudget.price)
    }

    /// Whether a request may be sent again. If so, it is paid for.
    package mutating func take() -> Bool {
        guard savings >= RetryBudget.price else { return false }
        savings -= RetryBudget.price
        return true
    }
}

/// How long to wait before a request is sent again: twice as long for each attempt, and a random part of that, so that requests that
/// failed together do not come back together.
///
/// - Parameters:
///   - attempt: 1 for the first repetition.
///   - random: any number; from half of the pause to all of it is waited.
package func retryPause(_ first: Duration, attempt: Int, random: UInt16) -> Duration {
    precondition(attempt >= 1, "the first repetition is number 1")
    let whole = first * (1 << min(attempt - 1, 10))
    return whole / 2 + whole / 2 * Int(random) / Int(UInt16.max)
}

extension Refusal {
    /// Whether the same request may succeed a moment later.
    package var mayPass: Bool {
        switch self {
        case .nameTimeout, .connectionRefused, .connectionTimeout, .responseTimeout, .nextProxyUnreachable: true
        case .notAProxyRequest, .hostInvalid, .accessDenied, .destinationForbidden, .tunnelPortForbidden,
            .authenticationRequired, .authenticationBusy, .authenticationUnavailable, .directoryUnavailable, .tooYoung,
            .releaseUndated,
            .loopDetected, .onlyIfCached,
            .malformedRequestBody, .lengthRequired, .requestTimeout, .misdirected, .nameNotFound, .nameServersSilent,
            .destinationUnroutable,
            .connectionTerminated, .responseIncomplete, .responseInvalid, .originAsksForProxyLogIn, .digestMismatch,
            .redirectLoop,
            .tooManyRedirects, .tlsCertificate,
            .tlsPin, .tlsProtocol, .clientCertificateRequired, .clientCertificateRefused, .originQueueFull,
            .originUnavailable, .nextProxyRefused,
            .nextProxyLogIn, .nextProxyLogInIncomplete,
            .nextProxyInvalid, .routeUnknown, .credentialRefused, .credentialUnavailable, .credentialHidden,
            .credentialLogInIncomplete, .originUnproven, .credentialMisplaced, .tooManyRequests, .tooManyTunnels,
            .transferCancelled, .internalError, .requestRateReached, .concurrencyReached, .sharedLimitReached,
            .budgetSpent, .contentTooLarge, .responseTooLarge, .overloaded:
            false
        }
    }
}
