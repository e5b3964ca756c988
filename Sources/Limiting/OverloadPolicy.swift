/// Decides when Larder sheds load: before memory or descriptors run out, what costs nobody an answer first.
///
/// ```
/// calm ◀──▶ strained: idle connections are closed, those that are idle for longest first
///              ◀──▶ overloaded: all idle ones are closed, new connections and requests are refused; bodies under way and hits go on
/// ```
///
/// A state is left at a lower level than the one at which it is entered, so that it does not change with every reading.
package struct OverloadPolicy: Equatable, Sendable {
    package enum State: Int, Comparable, CaseIterable, Sendable {
        case calm, strained, overloaded

        package static func < (a: State, b: State) -> Bool { a.rawValue < b.rawValue }
    }

    /// What is used of something, and how much there is.
    package struct Level: Equatable, Sendable {
        package let used: UInt64
        /// Nil: there is no limit, and it never runs out.
        package let limit: UInt64?

        package init(used: UInt64, limit: UInt64?) {
            self.used = used
            self.limit = limit
        }

        /// In hundredths.
        package var percent: UInt64 {
            guard let limit else { return 0 }
            guard limit > 0 else { return 100 }
            let (scaled, overflow) = used.multipliedReportingOverflow(by: 100)
            return overflow ? used / limit * 100 : scaled / limit
        }
    }

    /// The percentages from which on a state holds, and below which it ends.
    private static let strained: (from: UInt64, until: UInt64) = (85, 80)
    private static let overloaded: (from: UInt64, until: UInt64) = (95, 90)

    package private(set) var state = State.calm

    package init() {}

    /// Takes a reading. Returns the new state if it is another one.
    package mutating func note(memory: Level, descriptors: Level) -> State? {
        let next = OverloadPolicy.next(after: state, percent: max(memory.percent, descriptors.percent))
        guard next != state else { return nil }
        state = next
        return next
    }

    private static func next(after state: State, percent: UInt64) -> State {
        if percent >= overloaded.from || (state == .overloaded && percent >= overloaded.until) { return .overloaded }
        if percent >= strained.from || (state > .calm && percent >= strained.until) { return .strained }
        return .calm
    }

    /// A connection that has had an answer more recently is not idle: its client may be about to ask again, and a hit costs next to nothing.
    package static let idleMin: Duration = .seconds(1)

    /// How many of so many idle connections are closed now. Asked once a second.
    package static func idleToClose(of count: Int, in state: State) -> Int {
        switch state {
        case .calm: 0
        case .strained: (count + 3) / 4
        case .overloaded: count
        }
    }
}
