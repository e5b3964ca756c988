/// Names of hosts in one block of memory, each with a number: 0, 1, 2 and so on in the order in which they were added.
///
/// A key is a name, or a suffix with its leading dot, in lower case. Half a million names take some 17 MB, and a look-up allocates nothing.
///
/// The hash is computed from the end of a name, so one walk over the name has the hashes of all its suffixes. It begins with a number that
/// differs between processes, because lists of hosts come from others: who writes one cannot choose names that fall together.
struct HostTable: Sendable, Equatable {
    /// Each key behind a byte with its length. No key has more than 254 bytes.
    private var text: [UInt8] = []
    /// Where each key begins in `text`.
    private var offsets: [UInt32] = []
    /// 0: free. Otherwise the number of a key plus one. The count is a power of two, and at least a quarter is free.
    private var slots: [UInt32] = []
    private var hasSuffixes = false

    var isEmpty: Bool { offsets.isEmpty }
    var count: Int { offsets.count }

    mutating func reserve(bytes: Int) { text.reserveCapacity(bytes) }

    /// Gives back the memory that was kept for more keys.
    mutating func compact() {
        text = text.map(\.self)
        offsets = offsets.map(\.self)
    }

    /// The number of the key, which is added if it is not there.
    ///
    /// - Returns: also whether it is new. Nil if the table is full: it holds 4 GiB of text.
    mutating func add(_ key: some Collection<UInt8>) -> (number: Int, isNew: Bool)? {
        precondition((1...254).contains(key.count), "a key is a name of a host")
        if (offsets.count + 1) * 4 > slots.count * 3 { grow() }
        let bytes = Array(key)
        var hash = HostTable.seed
        for byte in bytes.reversed() { hash = HostTable.step(hash, byte) }
        let slot = slot(of: bytes.span, hash)
        if slots[slot] != 0 { return (Int(slots[slot]) - 1, false) }
        guard text.count + bytes.count + 1 <= Int(UInt32.max) else { return nil }
        offsets.append(UInt32(text.count))
        text.append(UInt8(bytes.count))
        text += bytes
        slots[slot] = UInt32(offsets.count)
        if bytes[0] == dot { hasSuffixes = true }
        return (offsets.count - 1, true)
    }

    /// Calls `body` with the number of each suffix of the name that is here, the shortest first, and at last with that of the name itself.
    func forEachMatch(of name: String, _ body: (Int) -> Void) {
        guard !isEmpty else { return }
        let bytes = name.utf8.span
        var hash = HostTable.seed
        for place in bytes.indices.reversed() {
            hash = HostTable.step(hash, bytes[place])
            if place == 0 || (hasSuffixes && bytes[place] == dot) {
                let number = slots[slot(of: bytes.extracting(place..<bytes.count), hash)]
                if number != 0 { body(Int(number) - 1) }
            }
        }
    }

    /// The keys that are suffixes, with their leading dots.
    var suffixes: [String] {
        hasSuffixes ? offsets.indices.filter { text[Int(offsets[$0]) + 1] == dot }.map(key) : []
    }

    func key(_ number: Int) -> String {
        let start = Int(offsets[number]) + 1
        return String(decoding: text[start..<(start + Int(text[start - 1]))], as: UTF8.self)
    }

    /// The slot of the key, or the free slot where it belongs.
    private func slot(of key: Span<UInt8>, _ hash: UInt64) -> Int {
        let mask = slots.count - 1
        var slot = Int(truncatingIfNeeded: hash ^ (hash >> 32)) & mask
        while slots[slot] != 0, !isKey(Int(slots[slot]) - 1, key) { slot = (slot + 1) & mask }
        return slot
    }

    private func isKey(_ number: Int, _ key: Span<UInt8>) -> Bool {
        let start = Int(offsets[number])
        guard Int(text[start]) == key.count else { return false }
        for place in key.indices where text[start + 1 + place] != key[place] { return false }
        return true
    }

    private mutating func grow() {
        slots = [UInt32](repeating: 0, count: max(16, slots.count * 2))
        let mask = slots.count - 1
        for number in offsets.indices {
            let start = Int(offsets[number]) + 1
            var hash = HostTable.seed
            for place in (start..<(start + Int(text[start - 1]))).reversed() {
                hash = HostTable.step(hash, text[place])
            }
            var slot = Int(truncatingIfNeeded: hash ^ (hash >> 32)) & mask
            while slots[slot] != 0 { slot = (slot + 1) & mask }
            slots[slot] = UInt32(number + 1)
        }
    }

    /// The upper half of a product depends on all bits below it, so it is mixed into the lower one.
    private static func step(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
        let product = (hash ^ UInt64(byte)).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return product.high ^ product.low &+ seed
    }

    private static let seed: UInt64 = {
        var hasher = Hasher()
        hasher.combine("hosts")
        return UInt64(truncatingIfNeeded: hasher.finalize()) | 1
    }()
}

private let dot = UInt8(ascii: ".")
