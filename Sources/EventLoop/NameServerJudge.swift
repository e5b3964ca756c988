/// Decides whether name servers are asked, from what came of asking them before: so that not every look-up waits for servers that are silent.
///
/// The resolvers of all loops may share one. Each calls it on its own thread, once before and a few times after it asks servers, and not for what it
/// knows already.
package protocol NameServerJudge: AnyObject, Sendable {
    /// - Parameter servers: the set of servers that would be asked, as text. Names that the same servers are asked about have the same text.
    func permit(_ host: String, of servers: String, at now: MonotonicTime) -> NameServerPermit

    func note(_ outcome: NameServerOutcome, of host: String, by servers: String, at now: MonotonicTime)
}

package enum NameServerPermit: Sendable {
    case ask
    /// Ask, and let the look-up wait for `Resolver.Options.silence` at most.
    case attempt
    /// Do not ask.
    case refusal
}

/// What came of asking servers for a name.
package enum NameServerOutcome: Sendable {
    /// An answer, be it that the name does not exist.
    case answer
    /// An answer about one family. The other one is awaited.
    case partialAnswer
    /// A failure that came sooner than `Resolver.Options.silence`.
    case quickFailure
    /// Nothing within `Resolver.Options.silence`, when somebody had waited long enough, or a failure that took longer.
    case silence
}
