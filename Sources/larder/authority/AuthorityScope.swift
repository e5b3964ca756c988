import ClientSetup
import Message
import Rules
import Settings
import TLS

/// The hosts that an authority may certify, as patterns of the configuration and of `--host`.
///
/// A name stands for itself and for all names below it: name constraints know nothing narrower.
struct AuthorityScope: Equatable {
    private(set) var names: [String] = []
    private(set) var addresses: [[UInt8]] = []
    /// `*` is among the patterns.
    private(set) var wantsEverything = false

    var isEmpty: Bool { names.isEmpty && addresses.isEmpty }

    init(_ patterns: [HostPattern]) {
        for pattern in patterns { add(pattern) }
    }

    mutating func add(_ pattern: HostPattern) {
        switch pattern {
        case .any: wantsEverything = true
        case .exact(let name): add(name)
        case .below(let suffix): add(String(suffix.dropFirst()))
        case .address(let address):
            if !addresses.contains(address.octets) { addresses.append(address.octets) }
        }
    }

    /// Keeps what an existing authority may certify.
    mutating func add(_ constraints: NameConstraints) {
        for name in constraints.usableNames {
            add(name.hasPrefix(".") ? String(name.dropFirst()) : name)
        }
        for range in constraints.usableAddresses where range.mask.allSatisfy({ $0 == 0xFF }) {
            if !addresses.contains(range.address) { addresses.append(range.address) }
        }
    }

    private mutating func add(_ name: String) {
        guard !names.contains(where: { name == $0 || name.hasSuffix(".\($0)") }) else { return }
        names.removeAll { $0.hasSuffix(".\(name)") }
        names.append(name)
    }

    var constraints: NameConstraints { NameConstraints(permitting: names.sorted(), addresses: addresses) }
}

extension IPAddress {
    /// In network byte order: 4 or 16 bytes.
    fileprivate var octets: [UInt8] {
        if let v4 { return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: v4 >> $0) } }
        return [v6.high, v6.low].flatMap { word in
            stride(from: UInt64(56), through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) }
        }
    }
}

extension AuthorityWork {
    /// The hosts of the configuration that are opened, and those of `--host`.
    func patterns() throws(UsageError) -> [HostPattern] {
        var patterns = configuration.openedHosts
        for text in arguments.all(.host) {
            guard let pattern = HostPattern(text) else {
                throw UsageError(
                    "\"\(text)\" is not a host", hint: "--host takes example.org, *.example.org or an IP address")
            }
            patterns.append(pattern)
        }
        return patterns
    }

    /// Nil without constraints.
    /// - Parameter kept: the constraints of the authority that is replaced.
    func constraints(keeping kept: NameConstraints? = nil) throws(UsageError) -> NameConstraints? {
        var scope = AuthorityScope(try patterns())
        if let kept { scope.add(kept) }
        if arguments.has(.unconstrained) {
            guard arguments.all(.host).isEmpty else {
                throw UsageError("--unconstrained and --host contradict each other")
            }
            return nil
        }
        if scope.wantsEverything {
            throw UsageError(
                "the host \"*\" needs an authority that may certify every name",
                hint: "list the hosts, or say so: larder ca create --unconstrained")
        }
        guard !scope.isEmpty else {
            throw UsageError(
                "which hosts may the authority certify?",
                hint:
                    "name them: --host '*.example.org', or in intercept.hosts of the configuration; --unconstrained permits every name"
            )
        }
        // larder doctor tests clients with it.
        scope.add(.exact(CheckOrigin.host))
        return scope.constraints
    }
}

extension Configuration {
    /// The hosts whose tunnels may be opened: those of `intercept` and of rules that open tunnels, and those of recipes.
    var openedHosts: [HostPattern] {
        intercept.hosts + access.rules.filter { $0.intercept == true }.flatMap(\.conditions.hosts)
            + recipes.flatMap(\.hosts)
    }
}
