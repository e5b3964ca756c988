package import Message

/// Finds the ranges that contain an address, without a look at the others: a tree of prefixes.
///
/// Two ranges either have nothing in common, or one is in the other. So the ranges are sorted, and each knows the smallest one around it: a binary
/// search finds the smallest range that contains an address, and the way up from there has all others.
package struct AddressIndex: Sendable, Equatable {
    // IPv4 and IPv6 never match each other.
    private var v4 = PrefixTree()
    private var v6 = PrefixTree()

    package init() {}

    /// - Parameter ranges: the ranges of each rule.
    package init(_ rules: [(position: Int, ranges: [AddressRange])]) {
        v4 = PrefixTree(rules, isV4: true)
        v6 = PrefixTree(rules, isV4: false)
    }

    /// A set of ranges.
    package init(_ ranges: [AddressRange]) { self.init([(0, ranges)]) }

    package var isEmpty: Bool { v4.count + v6.count == 0 }
    /// How many different ranges there are.
    package var count: Int { v4.count + v6.count }

    package func contains(_ address: IPAddress) -> Bool { first(for: address, below: .max) { _ in true } != nil }

    /// The smallest range that contains the address.
    package func smallestRange(around address: IPAddress) -> AddressRange? {
        (address.isV4 ? v4 : v6).smallestRange(around: address)
    }

    /// The first position below `bound` whose ranges contain the address and whose rule holds.
    package func first(for address: IPAddress, below bound: Int, where holds: (Int) -> Bool) -> Int? {
        (address.isV4 ? v4 : v6).first(for: address, below: bound, where: holds)
    }
}

private struct PrefixTree: Sendable, Equatable {
    /// Sorted by the first address, then from the largest to the smallest.
    private var ranges: [AddressRange] = []
    /// The smallest range around each; -1 if there is none.
    private var parents: [Int32] = []
    private var positions = Positions()

    init() {}

    init(_ rules: [(position: Int, ranges: [AddressRange])], isV4: Bool) {
        let sorted = rules.flatMap { rule in
            rule.ranges.filter { $0.first.isV4 == isV4 }.map { (range: $0, position: rule.position) }
        }.sorted { isBefore($0.range, $1.range) || ($0.range == $1.range && $0.position < $1.position) }
        ranges.reserveCapacity(sorted.count)
        var around: [Int] = []
        for (range, position) in sorted {
            if ranges.last != range {
                while let last = around.last, !ranges[last].contains(range.first) { around.removeLast() }
                parents.append(Int32(around.last ?? -1))
                around.append(ranges.count)
                ranges.append(range)
            }
            positions.add(position, to: ranges.count - 1)
        }
    }

    var count: Int { ranges.count }

    func smallestRange(around address: IPAddress) -> AddressRange? {
        var entry = last(before: address)
        while entry >= 0, !ranges[entry].contains(address) { entry = Int(parents[entry]) }
        return entry >= 0 ? ranges[entry] : nil
    }

    func first(for address: IPAddress, below bound: Int, where holds: (Int) -> Bool) -> Int? {
        var best: Int?
        var entry = last(before: address)
        while entry >= 0 {
            if ranges[entry].contains(address) {
                best = positions.first(of: entry, below: best ?? bound, where: holds) ?? best
            }
            entry = Int(parents[entry])
        }
        return best
    }

    /// The last range that begins at the address or before it; -1 if there is none. If it does not contain the address, what does is around it.
    private func last(before address: IPAddress) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(address, ranges[middle].first) { high = middle } else { low = middle + 1 }
        }
        return low - 1
    }
}

private func isBefore(_ one: AddressRange, _ other: AddressRange) -> Bool {
    one.first == other.first ? one.prefixLength < other.prefixLength : isBefore(one.first, other.first)
}

private func isBefore(_ one: IPAddress, _ other: IPAddress) -> Bool { one.v6 < other.v6 }
