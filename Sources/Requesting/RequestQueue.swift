/// The order in which requests of one client begin: at most so many at a time, higher priorities first, and each priority in the order of
/// its arrival.
///
/// No priority starves: after `passesMax` requests in a row that were preferred to a waiting one, the waiting one is next. So among many
/// urgent requests every 17th place belongs to the others.
package struct RequestQueue: Sendable {
    /// The number that the caller gave to a request.
    package typealias Number = UInt64

    package enum Priority: Int, CaseIterable, Sendable { case high, normal, low }

    package enum Admission: Equatable, Sendable {
        case queued
        /// `waitingMax` requests are waiting already.
        case full
    }

    /// How often in a row a waiting priority is passed over.
    package static let passesMax = 16

    private struct Line {
        var numbers: [Number] = []
        /// Those before have begun.
        var start = 0
        /// Requests that were preferred since the first of these came first.
        var passes = 0

        var count: Int { numbers.count - start }
        var isEmpty: Bool { start == numbers.count }

        mutating func take() -> Number {
            defer {
                start += 1
                // Each number is moved once on average.
                if start > 32, start * 2 > numbers.count {
                    numbers.removeFirst(start)
                    start = 0
                }
            }
            passes = 0
            return numbers[start]
        }
    }

    private let runningMax: Int
    private let waitingMax: Int
    private var lines = [Line](repeating: Line(), count: Priority.allCases.count)
    package private(set) var runningCount = 0

    /// - Parameters:
    ///   - runningMax: requests that run at the same time. At least one.
    ///   - waitingMax: requests that wait.
    package init(runningMax: Int, waitingMax: Int) {
        precondition(runningMax > 0 && waitingMax >= 0, "at least one request can run")
        self.runningMax = runningMax
        self.waitingMax = waitingMax
    }

    package var waitingCount: Int { lines.reduce(0) { $0 + $1.count } }

    /// Queues a request. Call `next` afterwards.
    package mutating func add(_ number: Number, _ priority: Priority) -> Admission {
        // A request that can run at once does not wait.
        guard runningCount < runningMax || waitingCount < waitingMax else { return .full }
        lines[priority.rawValue].numbers.append(number)
        return .queued
    }

    /// The request that begins now. Returns nil if none waits, or if as many as allowed are running.
    package mutating func next() -> Number? {
        guard runningCount < runningMax else { return nil }
        let waiting = lines.indices.filter { !lines[$0].isEmpty }
        guard let first = waiting.first else { return nil }
        let chosen = waiting.last { lines[$0].passes >= RequestQueue.passesMax } ?? first
        for index in waiting where index > chosen { lines[index].passes += 1 }
        runningCount += 1
        return lines[chosen].take()
    }

    /// A request that ran has ended. Call `next` afterwards.
    package mutating func finished() {
        precondition(runningCount > 0, "only a request that runs can end")
        runningCount -= 1
    }

    /// Removes a request that waits. Returns false if it does not wait.
    package mutating func remove(_ number: Number) -> Bool {
        for index in lines.indices {
            guard let place = lines[index].numbers[lines[index].start...].firstIndex(of: number) else { continue }
            lines[index].numbers.remove(at: place)
            return true
        }
        return false
    }
}
