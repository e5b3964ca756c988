import Message

/// Finds the rules that name a host, without a look at the others.
///
/// One walk over the name finds it and all its parent domains. Nothing is allocated.
package struct HostIndex: Sendable, Equatable {
    private var names = HostTable()
    private var positionsOfNames = Positions()
    private var addresses: [IPAddress: [Int]] = [:]
    /// The positions of rules for every host, in ascending order.
    private var any: [Int] = []

    package init() {}

    /// - Parameter patterns: the `host` conditions of each rule.
    package init(_ patterns: [[HostPattern]]) {
        for (position, patterns) in patterns.enumerated() { add(patterns, at: position) }
    }

    /// Adds a rule behind those that are there.
    package mutating func add(_ patterns: [HostPattern], at position: Int) {
        for pattern in patterns {
            switch pattern {
            case .any: if any.last != position { any.append(position) }
            case .exact(let name), .below(let name): add(name, position)
            case .address(let address):
                if addresses[address]?.last != position { addresses[address, default: []].append(position) }
            }
        }
    }

    private mutating func add(_ name: String, _ position: Int) {
        guard let (number, _) = names.add(name.utf8) else { preconditionFailure("a configuration has less text") }
        positionsOfNames.add(position, to: number)
    }

    package var isEmpty: Bool { names.isEmpty && addresses.isEmpty && any.isEmpty }

    /// The first position whose rule names the host and holds.
    package func first(for host: DestinationHost, where holds: (Int) -> Bool) -> Int? {
        first(for: host, below: .max, where: holds)
    }

    /// - Parameter bound: rules at this position and behind it are not asked.
    package func first(for host: DestinationHost, below bound: Int, where holds: (Int) -> Bool) -> Int? {
        var best = Rules.first(of: any, below: bound, where: holds)
        switch host {
        case .name(let name):
            names.forEachMatch(of: name) { number in
                best = positionsOfNames.first(of: number, below: best ?? bound, where: holds) ?? best
            }
        case .address(let address):
            if let positions = addresses[address] {
                best = Rules.first(of: positions, below: best ?? bound, where: holds) ?? best
            }
        }
        return best
    }
}
