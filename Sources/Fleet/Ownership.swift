import Message

/// Which node of a fleet owns a key: rendezvous hashing (Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998).
///
/// Each node draws a number for each key, and the highest number wins. All nodes with the same members and the same secret agree, whatever the order in
/// which the members are written. When a node is added or removed, only its own keys change their owner. A node with weight N draws N numbers, so it owns
/// N times as many keys.
package struct Ownership: Sendable {
    package struct Member: Hashable, Sendable {
        /// What all nodes call it: an address with a port.
        package let name: String
        package let weight: Int

        package init(_ name: String, weight: Int = 1) {
            precondition(Ownership.weights.contains(weight), "weights are bounded")
            self.name = name
            self.weight = weight
        }
    }

    package static let weights = 1...100
    package static let membersMax = 256

    package let members: [Member]
    /// For each member as many random words as it has weight.
    private let words: [[UInt64]]

    /// - Parameter members: each name once.
    package init(_ members: [Member], hash: some FleetHash) {
        self.members = members
        words = members.map { member in
            (0..<member.weight).map { replica in
                Ownership.word(of: hash.code(for: .node, Array("\(replica) \(member.name)".utf8)))
            }
        }
    }

    /// The members in the order in which they own a key: the owner, its stand-in, and so on.
    ///
    /// - Parameters:
    ///   - zone: the name of the zone of the cache.
    ///   - key: the bytes of the cache key.
    /// - Returns: indices of `members`, at most `count`.
    package func ranking(zone: String, key: [UInt8], count: Int, hash: some FleetHash) -> [Int] {
        let word = Ownership.word(of: hash.code(for: .owner, Array(zone.utf8) + [0] + key))
        // The highest ones so far, the highest first.
        var best: [(draw: UInt64, index: Int)] = []
        for index in words.indices {
            let draw = words[index].reduce(0) { max($0, Ownership.mix($1 ^ word)) }
            // The name decides between equal numbers, so that the order of the list does not.
            let place = best.firstIndex {
                $0.draw < draw || ($0.draw == draw && members[$0.index].name < members[index].name)
            }
            guard best.count < count || place != nil else { continue }
            best.insert((draw, index), at: place ?? best.count)
            if best.count > count { best.removeLast() }
        }
        return best.map(\.index)
    }

    private static func word(of code: [UInt8]) -> UInt64 {
        code.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The finalizer of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
    private static func mix(_ word: UInt64) -> UInt64 {
        var mixed = word
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
