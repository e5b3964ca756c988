import Admin
import Caching
import Disk
import DiskTools
import Message
import Texts

/// The objects of an export or import: `--host` or `--prefix`, compared in the same way as by the admin server.
struct KeySelection: Sendable, Equatable {
    private enum Rule: Sendable, Equatable {
        case all
        case host(String)
        case below(String)
        case prefix([UInt8])
    }
    private let rule: Rule

    init(_ arguments: Arguments) throws(UsageError) {
        var selection = Selection()
        do throws(SelectionError) {
            if let host = arguments[.host] { try selection.set(.host, host) }
            if let prefix = arguments[.prefix] { try selection.set(.prefix, prefix) }
        } catch {
            throw UsageError(error.message)
        }
        switch (selection.host, selection.prefix) {
        case (nil, nil): rule = .all
        case (let host?, nil): rule = host.hasPrefix("*.") ? .below(String(host.dropFirst(2))) : .host(host)
        case (nil, let prefix?): rule = .prefix(Self.normalised(prefix))
        case (_?, _?): throw UsageError("--host and --prefix cannot be combined", hint: "a prefix contains its host")
        }
    }

    var range: BookRange {
        switch rule {
        case .all: .all
        case .host(let name): .host(Array(name.utf8))
        case .below(let name): .below(Array(name.utf8))
        case .prefix(let bytes): .keyPrefix(bytes)
        }
    }

    /// One line, the same for the same selection.
    var text: String {
        switch rule {
        case .all: "all"
        case .host(let name): "host \(name)"
        case .below(let name): "host *.\(name)"
        case .prefix(let bytes): "prefix \(lineText(String(decoding: bytes, as: UTF8.self)))"
        }
    }

    /// - Parameter key: of an object, or an address that it has in place of its key.
    func holds(_ key: [UInt8]) -> Bool {
        switch rule {
        case .all: true
        case .host(let name): TargetURI(key)?.host == name
        case .below(let name): TargetURI(key)?.host.hasSuffix(".\(name)") ?? false
        case .prefix(let bytes): StoredAddresses.begins(key, with: bytes)
        }
    }

    /// The prefix in the form of a key, if it is a URI.
    private static func normalised(_ prefix: String) -> [UInt8] {
        guard let uri = TargetURI(prefix.utf8) else { return Array(prefix.utf8) }
        let hasPath = prefix.utf8.dropFirst(uri.scheme == .http ? 7 : 8).contains(UInt8(ascii: "/"))
        // A prefix without a path stands for all hosts that begin like this.
        return hasPath ? uri.normalised : uri.normalised.dropLast()
    }
}
