/// Changes to a JSON text that leave every other byte as it was: key order, white space and the spelling of numbers stay.
package struct JSONEdit {
    /// In order, and none of them overlaps another.
    private var changes: [(range: Range<Int>, bytes: [UInt8])] = []

    package init() {}

    package var isEmpty: Bool { changes.isEmpty }

    /// Replaces a value.
    package mutating func replace(_ range: Range<Int>, by bytes: [UInt8]) { changes.append((range, bytes)) }

    /// Removes members of one object, or elements of one array, with the commas that separated them.
    ///
    /// - Parameters:
    ///   - children: where all of them lie, in order: of a member, from the first byte of its name to the last of its value.
    ///   - isRemoved: whether the child with this index is removed.
    package mutating func remove(_ children: [Range<Int>], where isRemoved: (Int) -> Bool) {
        let firstKept = children.indices.first { !isRemoved($0) }
        guard let firstKept else {
            if let first = children.first, let last = children.last {
                changes.append((first.lowerBound..<last.upperBound, []))
            }
            return
        }
        if firstKept > 0 { changes.append((children[0].lowerBound..<children[firstKept].lowerBound, [])) }
        for index in children.indices.dropFirst(firstKept + 1) where isRemoved(index) {
            changes.append((children[index - 1].upperBound..<children[index].upperBound, []))
        }
    }

    package func apply(to text: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var copied = 0
        for change in changes.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
            precondition(change.range.lowerBound >= copied, "two changes of a text overlap")
            result += text[copied..<change.range.lowerBound]
            result += change.bytes
            copied = change.range.upperBound
        }
        result += text[copied...]
        return result
    }
}
