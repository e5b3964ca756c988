/// Finds the rules that name a host, without a look at the others.
///
/// A host is found by one look-up of its name, and by one for each of its parent domains if any pattern is `*.name`.
package struct HostIndex: Sendable, Equatable {
    /// Positions in ascending order.
    private var exact: [DestinationHost: [Int]] = [:]
    /// By the suffix with its leading dot.
    private var below: [String: [Int]] = [:]
    /// The positions of rules for every host.
    private var any: [Int] = []

    /// - Parameter patterns: the `host` conditions of each rule.
    package init(_ patterns: [[HostPattern]]) {
        for (position, patterns) in patterns.enumerated() {
            for pattern in Set(patterns) {
                switch pattern {
                case .any: any.append(position)
                case .exact(let name): exact[.name(name), default: []].append(position)
                case .address(let address): exact[.address(address), default: []].append(position)
                case .below(let suffix): below[suffix, default: []].append(position)
                }
            }
        }
    }

    package var isEmpty: Bool { exact.isEmpty && below.isEmpty && any.isEmpty }

    /// The first position whose rule names the host and holds.
    package func first(for host: DestinationHost, where holds: (Int) -> Bool) -> Int? {
        var best = any.first(where: holds)
        func consider(_ positions: [Int]?) {
            let candidates = positions?.lazy.prefix { position in best.map { position < $0 } ?? true }
            best = candidates?.first(where: holds) ?? best
        }
        consider(exact[host])
        guard !below.isEmpty, case .name(let name) = host else { return best }
        var rest = name[...]
        while let dot = rest.firstIndex(of: ".") {
            consider(below[String(rest[dot...])])
            rest = rest[rest.index(after: dot)...]
        }
        return best
    }
}
