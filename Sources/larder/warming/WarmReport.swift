import Admin
import EventLoop
import Glibc

/// The output of `larder warm`: a line for each URL, or a bar on a terminal, and the sum at the end.
final class WarmReport: Sendable {
    enum Form: Sendable {
        /// One line for each URL, then the sum.
        case lines
        /// A bar on standard error, and lines for URLs that need attention.
        case bar
        /// One JSON object per line: one for each URL, then the sum.
        case json
    }

    private struct State {
        var expected = 0
        var sum = WarmSum()
        var drawn: ContinuousClock.Instant?
    }

    private let form: Form
    private let console: Console
    private let state = Locked(State())
    private let start = ContinuousClock.now

    init(_ form: Form, _ console: Console) {
        self.form = form
        self.console = console
    }

    var sum: WarmSum { state.withLock { $0.sum } }

    /// Adds to the number of expected URLs.
    func expect(_ count: Int) { state.withLock { $0.expected += count } }

    func add(_ result: WarmResult) {
        state.withLock { state in
            state.sum.add(result)
            switch form {
            case .json: console.print(result.json)
            case .lines: console.print(result.line)
            case .bar:
                let needsLook = !(result.outcome == .hit || result.outcome == .stored)
                if needsLook { clearBar(); console.print(result.line) }
                drawBar(&state, force: needsLook)
            }
        }
    }

    /// Prints the sum after the last URL.
    func finish() {
        let elapsed = ContinuousClock.now - start
        state.withLock { state in
            if form == .bar { clearBar() }
            console.print(form == .json ? state.sum.json(elapsed) : state.sum.text(elapsed))
        }
    }

    // MARK: the bar

    private static let barWidth = 24
    private static let redrawTime: Duration = .milliseconds(100)

    private func drawBar(_ state: inout State, force: Bool) {
        let now = ContinuousClock.now
        if !force, let drawn = state.drawn, now - drawn < Self.redrawTime { return }
        state.drawn = now
        write("\r\(warmBar(done: state.sum.count, of: state.expected, state.sum, width: Self.barWidth))\u{1B}[K")
    }

    private func clearBar() { write("\r\u{1B}[K") }

    private func write(_ text: String) {
        var bytes = Array(text.utf8)
        _ = writeAll(&bytes, to: STDERR_FILENO)  // if the bar cannot be drawn, warming continues without it
    }
}

/// `[######------------------] 10/40  1.5 MiB  2 failed`
func warmBar(done: Int, of expected: Int, _ sum: WarmSum, width: Int) -> String {
    let filled = expected > 0 ? width * done / expected : 0
    let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: width - filled)
    let failed = sum.failed > 0 ? "  \(sum.failed) failed" : ""
    return "[\(bar)] \(done)/\(expected)  \(binarySize(Double(sum.bytes)))\(failed)"
}
