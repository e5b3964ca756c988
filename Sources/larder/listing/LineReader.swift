/// Finds the lines of a body that arrives in pieces.
struct LineReader {
    /// The beginning of a line whose end has not arrived.
    private var line: [UInt8] = []

    /// Calls `each` for every line that is complete now, without its line feed.
    mutating func receive(_ piece: ArraySlice<UInt8>, _ each: (ArraySlice<UInt8>) -> Void) {
        var rest = piece
        while let end = rest.firstIndex(of: 0x0A) {
            if line.isEmpty {
                each(rest[..<end])
            } else {
                line += rest[..<end]
                each(line[...])
                line.removeAll(keepingCapacity: true)
            }
            rest = rest[(end + 1)...]
        }
        line += rest
    }
}
