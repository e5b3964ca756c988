import EventLoop
import Glibc
import Texts

/// Shows the progress of a long task on standard error if that is a terminal; otherwise shows nothing.
///
///     [############------------]  50 %  1.5 GiB of 3.0 GiB  120.0 MiB/s  13 s left  segments
final class ProgressBar: Sendable {
    private struct State {
        var drawn: ContinuousClock.Instant?
        var isShown = false
    }

    private let isWanted: Bool
    private let start = ContinuousClock.now
    private let state = Locked(State())
    private static let redrawTime: Duration = .milliseconds(100)

    /// - Parameter isWanted: by default, whether standard error is a terminal.
    init(isWanted: Bool = isatty(STDERR_FILENO) == 1) { self.isWanted = isWanted }

    /// - Parameters:
    ///   - total: in bytes. 0 if it is not known.
    ///   - note: what is being done.
    func show(_ done: UInt64, of total: UInt64, _ note: String = "") {
        guard isWanted else { return }
        let now = ContinuousClock.now
        state.withLock { state in
            if let drawn = state.drawn, now - drawn < Self.redrawTime { return }
            state.drawn = now
            state.isShown = true
            write("\r\(lineText(progressLine(done, of: total, after: now - start, note)))\u{1B}[K")
        }
    }

    /// Removes the bar, so that a line can be printed.
    func clear() {
        state.withLock { state in
            if state.isShown { write("\r\u{1B}[K") }
            state.isShown = false
            state.drawn = nil
        }
    }

    private func write(_ text: String) {
        var bytes = Array(text.utf8)
        _ = writeAll(&bytes, to: STDERR_FILENO)  // if the bar cannot be drawn, the task continues without it
    }
}

/// The text of the bar. It shows the remaining time if a rate is known.
func progressLine(_ done: UInt64, of total: UInt64, after elapsed: Duration, _ note: String) -> String {
    let width = 24
    let share = total == 0 ? 0 : min(1, Double(done) / Double(total))
    let filled = Int(share * Double(width))
    let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
    var parts = [
        "[" + String(repeating: "#", count: filled) + String(repeating: "-", count: width - filled) + "]"
            + aligned("\(Int(share * 100)) %", 6),
        total == 0 ? binarySize(Double(done)) : "\(binarySize(Double(done))) of \(binarySize(Double(total)))",
    ]
    if seconds >= 1, done > 0 {
        let rate = Double(done) / seconds
        parts.append("\(binarySize(rate))/s")
        if done < total { parts.append("\(timeSpan(whole(Double(total - done) / rate))) left") }
    }
    return (parts + (note.isEmpty ? [] : [note])).joined(separator: "  ")
}
