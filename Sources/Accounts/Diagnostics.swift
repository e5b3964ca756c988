import Glibc
import Message
public import Settings
public import Synchronization
import Texts

/// Messages for the operator: one line each, on standard error. Any thread may write one. What clients and origins have sent stays in its line and acts on
/// no terminal (`lineText`).
///
/// Nothing is written before `configure` is called: standard error belongs to the program.
@usableFromInline
package enum Diagnostics {
    private static let threshold = Atomic<Int>(-1)
    /// A bit for each category that is logged.
    @usableFromInline static let categories = Atomic<UInt32>(0)

    package static func configure(_ log: LogSettings) {
        threshold.store(level(log.level), ordering: .relaxed)
        let logged = log.level == .debug ? log.debug : []
        categories.store(logged.reduce(0) { $0 | bit($1) }, ordering: .relaxed)
    }

    package static func error(_ text: @autoclosure () -> String) { write(.error, text) }
    package static func warning(_ text: @autoclosure () -> String) { write(.warning, text) }
    package static func info(_ text: @autoclosure () -> String) { write(.info, text) }
    package static func debug(_ text: @autoclosure () -> String) { write(.debug, text) }

    /// Logs what happens to a request or a connection. Costs a load and a comparison if the category is off.
    @inlinable @inline(__always)
    package static func debug(_ category: LogCategory, _ text: @autoclosure () -> String) {
        guard logs(category) else { return }
        print(text(), of: category)
    }

    @usableFromInline
    static func print(_ text: String, of category: LogCategory) { print(.debug, "\(category.rawValue): \(text)") }

    /// Whether `debug` writes anything of the category, for what is only found out to be written.
    @inlinable @inline(__always)
    package static func logs(_ category: LogCategory) -> Bool {
        categories.load(ordering: .relaxed) & bit(category) != 0
    }

    /// The URI without its secrets.
    package static func masked(_ uri: [UInt8]) -> String { String(decoding: URIMasking.masked(uri), as: UTF8.self) }

    @inlinable @inline(__always)
    static func bit(_ category: LogCategory) -> UInt32 {
        switch category {
        case .connections: 1
        case .dns: 2
        case .requests: 4
        case .authentication: 8
        case .tls: 16
        case .routes: 32
        case .transfers: 64
        }
    }

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
        print(level, text())
    }

    private static func print(_ level: LogLevel, _ text: String) {
        let line = Array("larder: \(level.rawValue): \(lineText(text))\n".utf8)
        _ = unsafe line.withUnsafeBytes { unsafe Glibc.write(STDERR_FILENO, $0.baseAddress!, $0.count) }
    }
}
