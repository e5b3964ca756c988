/// How often a thread takes back what others have freed of its memory (`ThreadMemory.collect`), so that each time takes about 2 ms.
///
/// That time grows with what was freed meanwhile. A purge of a million responses frees some millions of blocks a second, and a thread that looked
/// once a second would serve nobody for a quarter of each.
package struct CollectPace: Equatable, Sendable {
    /// The pause before the next time.
    package private(set) var pause = CollectPace.longest

    package static let shortest = Duration.milliseconds(10)
    package static let longest = Duration.milliseconds(250)
    static let aim = Duration.milliseconds(2)

    package init() {}

    /// - Parameter duration: how long it took this time.
    package mutating func took(_ duration: Duration) {
        let wanted = pause * min(2, CollectPace.aim / max(duration, .microseconds(1)))
        pause = min(max(wanted, CollectPace.shortest), CollectPace.longest)
    }
}
