package import Message

/// Hosts in a compact form: the content of a file that a rule names.
package struct HostSet: Sendable, Equatable {
    private var names = HostTable()
    private var addresses: Set<IPAddress> = []
    /// `*` is among them.
    private var hasAny = false

    package init() {}

    package init(_ patterns: some Sequence<HostPattern>) {
        for pattern in patterns { _ = insert(pattern) }
    }

    package var count: Int { names.count + addresses.count + (hasAny ? 1 : 0) }

    package mutating func reserve(bytes: Int) { names.reserve(bytes: bytes) }

    package mutating func compact() { names.compact() }

    /// Returns false if there is no room for it.
    package mutating func insert(_ pattern: HostPattern) -> Bool {
        switch pattern {
        case .any: hasAny = true
        case .address(let address): addresses.insert(address)
        case .exact(let name), .below(let name): return names.add(name.utf8) != nil
        }
        return true
    }

    package func contains(_ host: DestinationHost) -> Bool {
        if hasAny { return true }
        switch host {
        case .address(let address): return addresses.contains(address)
        case .name(let name):
            var isFound = false
            names.forEachMatch(of: name) { _ in isFound = true }
            return isFound
        }
    }

    /// The entries `*.name`.
    package var wildcards: [HostPattern] { names.suffixes.map { .below($0) } }

    /// Whether this very address is among them.
    package func names(_ address: IPAddress) -> Bool { addresses.contains(address) }

    /// The entry that matches the host: the longest if there are several.
    package func entry(for host: DestinationHost) -> HostPattern? {
        switch host {
        case .address(let address): if addresses.contains(address) { return .address(address) }
        case .name(let name):
            var found: Int?
            names.forEachMatch(of: name) { found = $0 }
            if let key = found.map(names.key) { return key.hasPrefix(".") ? .below(key) : .exact(key) }
        }
        return hasAny ? .any : nil
    }
}

/// A value of a rule that stands in a file: `{ file: blocked.txt }`.
package struct ListFile<Content: Sendable & Equatable>: Sendable, Equatable {
    /// The path, as written.
    package var file: String
    /// Empty until the file has been read.
    package var content: Content
    /// Which version of the file `content` is. Nil: unknown, so that the file has to be read again.
    package var stamp: FileStamp?

    package init(_ file: String, _ content: Content) {
        self.file = file
        self.content = content
    }
}

/// Tells the versions of a file from one another, without reading it.
package struct FileStamp: Sendable, Equatable {
    private let device, inode: UInt64
    private let size: Int64
    /// When the content changed, and when anything of the file did, in nanoseconds since 1970.
    private let modified, changed: Int64

    package init(device: UInt64, inode: UInt64, size: Int64, modified: Int64, changed: Int64) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
        self.changed = changed
    }
}

package typealias HostList = ListFile<HostSet>
package typealias AddressList = ListFile<AddressIndex>
package typealias NameList = ListFile<Set<String>>
