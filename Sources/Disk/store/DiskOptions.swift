import EventLoop

/// What a store is opened with.
package struct DiskOptions: Sendable {
    /// The directory. It is created if it does not exist.
    package var path: String
    /// The most bytes that all files together may take.
    package var size: UInt64
    /// How many of these pinned objects may take.
    package var pinned: UInt64
    /// The time between two commits: how much a power cut may cost.
    package var syncInterval: Duration
    /// The hash that stands for a key in memory. It is never written to the disk.
    package var hash: @Sendable (_ key: [UInt8]) -> UInt64
    /// Receives the lines for the log, on any thread.
    package var log: @Sendable (DiskEvent) -> Void

    package init(
        path: String, size: UInt64, pinned: UInt64, syncInterval: Duration = .seconds(2),
        hash: @escaping @Sendable ([UInt8]) -> UInt64,
        log: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) {
        self.path = path
        self.size = size
        self.pinned = pinned
        self.syncInterval = syncInterval
        self.hash = hash
        self.log = log
    }
}

/// Something the operator should know.
package struct DiskEvent: Sendable, Equatable {
    package enum Level: Sendable { case info, warning, error }
    package var level: Level
    package var text: String

    package init(_ level: Level, _ text: String) {
        self.level = level
        self.text = text
    }
}

/// Why a directory cannot be used as a store. Nothing in it was changed. The description is for the operator.
package enum DiskRefusal: Error, Equatable, Sendable, CustomStringConvertible {
    /// It contains files, and they are not ours.
    case foreign(path: String)
    case unknownVersion(path: String, version: UInt32)
    /// Another process uses it.
    case inUse(path: String)
    case notAllowed(path: String, errno: CInt)
    /// Other users may write into it.
    case openToOthers(path: String, mode: UInt32)
    case failed(path: String, errno: CInt)
    case tooSmall(path: String, sizeMin: UInt64)

    package var description: String {
        switch self {
        case .foreign(let path): "\(path) contains other files and is not a store of Larder"
        case .unknownVersion(let path, let version): "\(path) has format \(version), which this version does not know"
        case .inUse(let path): "\(path) is in use by another process"
        case .notAllowed(let path, let code), .failed(let path, let code): "\(path): \(systemErrorText(code))"
        case .openToOthers(let path, let mode):
            "\(path) can be written by other users (mode \(String(mode, radix: 8))): run chmod go-w"
        case .tooSmall(let path, let sizeMin): "\(path): a store needs at least \(sizeMin >> 20)MiB"
        }
    }
}
