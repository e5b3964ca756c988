package import Routing
/// The origins that have asked not to be asked for a while (`Retry-After` with 408, 425, 429 and 503, or another status that a rule takes for a
/// failure). What Larder asks on its own account, such as the validation of a response that was served stale, waits until then. Requests that a client
/// waits for do not: whether to ask again is for the client to decide, unless a rule lets what is stored stand in.
///
/// Times are those of a clock that never goes back, since any moment.
package struct OriginPauses: Sendable {
    /// No origin keeps Larder away for longer.
    package static let pauseMax: Duration = .seconds(3600)
    /// What is stored stands in for no longer, because the origin may have more to say than how busy it is.
    package static let standInMax: Duration = .seconds(300)

    private struct Pause {
        let end: Duration
        let standInEnd: Duration
        let status: UInt16
    }

    private let countMax: Int
    private var pauses: [Endpoint: Pause] = [:]

    /// - Parameter countMax: beyond so many origins, those whose pause is over are forgotten, and no other one is added.
    package init(countMax: Int = 1024) { self.countMax = countMax }

    /// Whether the status may come with a pause that holds for other requests as well.
    package static func concerns(status: UInt16) -> Bool { [408, 425, 429, 503].contains(status) }

    /// - Parameter status: with which the origin has said so.
    package mutating func pause(_ origin: Endpoint, for pause: Duration, status: UInt16, now: Duration) {
        guard pause > .zero else { return }
        if pauses.count >= countMax { pauses = pauses.filter { $0.value.end > now } }
        guard pauses.count < countMax || pauses[origin] != nil else { return }
        pauses[origin] = Pause(
            end: now + min(pause, OriginPauses.pauseMax), standInEnd: now + min(pause, OriginPauses.standInMax),
            status: status)
    }

    package func isPaused(_ origin: Endpoint, now: Duration) -> Bool { pauses[origin].map { now < $0.end } ?? false }

    /// Whether what is stored stands in for the origin.
    ///
    /// - Parameter countsAsFailure: whether the request takes a status for a failure.
    package func letStandIn(for origin: Endpoint, now: Duration, countsAsFailure: (UInt16) -> Bool) -> Bool {
        guard let pause = pauses[origin], now < pause.standInEnd else { return false }
        return countsAsFailure(pause.status)
    }
}
