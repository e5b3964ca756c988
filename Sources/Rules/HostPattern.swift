package import Message

/// A value of a `host` condition: `example.org`, `*.example.com`, `*`, or an address.
///
/// `*.example.com` matches the names below example.com at any depth, but not example.com itself. Case and a trailing dot do not matter. An
/// address matches itself in every spelling.
package enum HostPattern: Sendable, Hashable, CustomStringConvertible {
    case any
    case exact(String)
    /// The suffix with its leading dot, in lower case.
    case below(String)
    case address(IPAddress)

    /// Whether every host that matches `other` matches this one.
    package func covers(_ other: HostPattern) -> Bool {
        switch (self, other) {
        case (.any, _): true
        case (.below(let suffix), .exact(let name)), (.below(let suffix), .below(let name)): name.hasSuffix(suffix)
        case (.exact, _), (.address, _), (.below, _): self == other
        }
    }

    /// Returns nil if the text has none of these forms.
    package init?(_ text: String) {
        if text == "*" {
            self = .any
            return
        }
        let isBelow = text.hasPrefix("*.")
        guard let host = DestinationHost(isBelow ? Array(text.utf8.dropFirst(2)) : Array(text.utf8)) else { return nil }
        switch (host, isBelow) {
        case (.name(let name), false): self = .exact(name)
        case (.name(let name), true): self = .below("." + name)
        case (.address(let address), false): self = .address(address)
        case (.address, true): return nil
        }
    }

    package func matches(_ host: DestinationHost) -> Bool {
        switch (self, host) {
        case (.any, _): true
        case (.exact(let own), .name(let name)): own == name
        case (.below(let suffix), .name(let name)): name.utf8.count > suffix.utf8.count && name.hasSuffix(suffix)
        case (.address(let own), .address(let address)): own == address
        case (.exact, .address), (.below, .address), (.address, .name): false
        }
    }

    package var description: String {
        switch self {
        case .any: "*"
        case .exact(let name): name
        case .below(let suffix): "*" + suffix
        case .address(let address): "\(address)"
        }
    }
}
