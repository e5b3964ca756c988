/// A version of an npm package, for its place among others (Semantic Versioning 2.0.0 §11).
struct SemanticVersion: Comparable {
    private let numbers: [[UInt8]]
    /// The identifiers of a prerelease. Empty for a release.
    private let prerelease: [[UInt8]]

    var isPrerelease: Bool { !prerelease.isEmpty }

    /// Returns nil if the text is not a version.
    init?(_ text: String) {
        let core = text.utf8.prefix { $0 != UInt8(ascii: "+") }
        let parts = core.split(separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
        numbers = parts[0].split(separator: dot, omittingEmptySubsequences: false).map { Array($0) }
        prerelease =
            parts.count < 2 ? [] : parts[1].split(separator: dot, omittingEmptySubsequences: false).map { Array($0) }
        guard numbers.count == 3, numbers.allSatisfy(isNumeric), !prerelease.contains(where: \.isEmpty) else {
            return nil
        }
    }

    static func < (a: SemanticVersion, b: SemanticVersion) -> Bool {
        for (a, b) in zip(a.numbers, b.numbers) where compare(a, b) != 0 { return compare(a, b) < 0 }
        // A release comes after its prereleases.
        if a.prerelease.isEmpty || b.prerelease.isEmpty { return a.isPrerelease && !b.isPrerelease }
        for (a, b) in zip(a.prerelease, b.prerelease) where compare(a, b) != 0 { return compare(a, b) < 0 }
        return a.prerelease.count < b.prerelease.count
    }

    static func == (a: SemanticVersion, b: SemanticVersion) -> Bool { !(a < b) && !(b < a) }

    /// Compares two identifiers: numbers by their value and before texts, texts by their bytes. Negative if `a` comes first.
    private static func compare(_ a: [UInt8], _ b: [UInt8]) -> Int {
        switch (isNumeric(a), isNumeric(b)) {
        case (true, false): return -1
        case (false, true): return 1
        case (true, true):
            let (a, b) = (a.drop { $0 == UInt8(ascii: "0") }, b.drop { $0 == UInt8(ascii: "0") })
            if a.count != b.count { return a.count - b.count }
            return a.elementsEqual(b) ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
        case (false, false): return a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
        }
    }
}

private let dot = UInt8(ascii: ".")

private func isNumeric(_ bytes: [UInt8]) -> Bool {
    !bytes.isEmpty && bytes.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
}
