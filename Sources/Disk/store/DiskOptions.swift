/// What a store is made of.
package struct DiskOptions: Sendable {
    /// The directory; made where it is not there.
    package var path: String
    /// Bytes that all its files together may take.
    package var size: UInt64
    /// Bytes that pinned objects may take of these.
    package var pinned: UInt64
    /// Between two times that what was written is put on the medium and into the book.
    package var syncInterval: Duration
    /// What identifies a key in memory: never written to the disk.
    package var hash: @Sendable (_ key: [UInt8]) -> UInt64
    /// Lines for the log. Called on any thread.
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

/// What the operator should hear of.
package struct DiskEvent: Sendable, Equatable {
    package enum Level: Sendable { case info, warning, error }
    package var level: Level
    package var text: String

    package init(_ level: Level, _ text: String) {
        self.level = level
        self.text = text
    }
}

/// Why a directory can not be used as a store. Nothing in it was touched.
package enum DiskRefusal: Error, Equatable, Sendable, CustomStringConvertible {
    /// It has files, but not ours.
    case foreign(path: String)
    case unknownVersion(path: String, version: UInt32)
    /// Another process uses it.
    case inUse(path: String)
    case notAllowed(path: String, errno: CInt)
    /// Others may write into it.
    case openToOthers(path: String, mode: UInt32)
    case failed(path: String, errno: CInt)
    case tooSmall(path: String, sizeMin: UInt64)

    package var description: String {
        switch self {
        case .foreign(let path): "\(path) is not empty and no store of Larder's"
        case .unknownVersion(let path, let version): "\(path) has format \(version), which this version does not know"
        case .inUse(let path): "\(path) is in use by another process"
        case .notAllowed(let path, let code): "\(path) can not be used: errno \(code)"
        case .openToOthers(let path, let mode):
            "\(path) may be written by others (mode \(String(mode, radix: 8))): chmod go-w"
        case .failed(let path, let code): "\(path): errno \(code)"
        case .tooSmall(let path, let sizeMin): "\(path): the store needs at least \(sizeMin) bytes"
        }
    }
}
