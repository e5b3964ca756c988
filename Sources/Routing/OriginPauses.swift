/// The origins that have asked not to be asked for a while (`Retry-After` with 408, 425, 429 and 503). What Larder asks on its own account,
/// such as the validation of a response that was served stale, waits until then. Requests that a client waits for do not: whether
/// to ask again is for the client to decide.
///
/// Times are those of a clock that never goes back, since any moment.
package struct OriginPauses: Sendable {
    /// No origin keeps Larder away for longer.
    package static let pauseMax: Duration = .seconds(3600)
    private let countMax: Int
    private var ends: [Endpoint: Duration] = [:]

    /// - Parameter countMax: beyond so many origins, those whose pause is over are forgotten, and no other one is added.
    package init(countMax: Int = 1024) { self.countMax = countMax }

    /// Whether the status may come with a pause that holds for other requests as well.
    package static func concerns(status: UInt16) -> Bool { [408, 425, 429, 503].contains(status) }

    package mutating func pause(_ origin: Endpoint, for pause: Duration, now: Duration) {
        guard pause > .zero else { return }
        if ends.count >= countMax { ends = ends.filter { $0.value > now } }
        guard ends.count < countMax || ends[origin] != nil else { return }
        ends[origin] = now + min(pause, OriginPauses.pauseMax)
    }

    package func isPaused(_ origin: Endpoint, now: Duration) -> Bool { ends[origin].map { now < $0 } ?? false }
}
