import Glibc
package import Settings
import Synchronization

/// Messages for the operator: one line each, on standard error. Any thread may write one.
package enum Diagnostics {
    private static let threshold = Atomic<Int>(level(.info))

    package static func setLevel(_ level: LogLevel) { threshold.store(self.level(level), ordering: .relaxed) }
    package static func error(_ text: @autoclosure () -> String) { write(.error, text) }
    package static func warning(_ text: @autoclosure () -> String) { write(.warning, text) }
    package static func info(_ text: @autoclosure () -> String) { write(.info, text) }
    package static func debug(_ text: @autoclosure () -> String) { write(.debug, text) }

    private static func level(_ level: LogLevel) -> Int {
        switch level {
        case .error: 0
        case .warning: 1
        case .info: 2
        case .debug: 3
        }
    }

    private static func write(_ level: LogLevel, _ text: () -> String) {
        guard self.level(level) <= threshold.load(ordering: .relaxed) else { return }
        let line = Array("larder: \(level.rawValue): \(text())\n".utf8)
        _ = unsafe line.withUnsafeBytes { unsafe Glibc.write(STDERR_FILENO, $0.baseAddress!, $0.count) }
    }
}
