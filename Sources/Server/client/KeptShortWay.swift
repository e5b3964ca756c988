import LimitTables
import Transaction

/// What a connection keeps of the last request that was answered from memory, where rules, users or limits look at requests.
final class KeptShortWay {
    let way: ShortWay
    /// The buckets of requests that take the way. Nil: no limit concerns them.
    let limits: RequestLimits?
    /// Checks requests that take the way, where each proves by itself who sends it. Nil elsewhere.
    let logIn: DigestLogIn?

    init(_ way: ShortWay, _ limits: RequestLimits?, _ logIn: DigestLogIn?) {
        self.way = way
        self.limits = limits
        self.logIn = logIn
    }
}
