/// How long a stored response stays, compared with how long its rules want it to. Clients are told (`Cache-Status`).
package enum Tenure: UInt8, Sendable {
    /// As long as its rules say: it is on the back store or on its way there, or belongs in memory.
    case asMeant
    /// It belongs on the back store, which could not take it: a restart loses it.
    case memoryOnly
    /// It is to be pinned, and the quota of pinned responses is full: it may be evicted.
    case unpinned
    /// It was outdated by the time it had been stored, and so it was removed: it is for those who have found it alone.
    case outdated
}
