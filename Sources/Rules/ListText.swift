/// The text of a file with values of a rule: one value on each line. `#` begins a comment, and empty lines do not count.
///
/// A list of hosts can have the form of a hosts file (hosts(5)): `0.0.0.0 name`, as lists of blocked hosts are often published. The address is one of
/// those that lead nowhere or to the machine itself, and is not part of the list.
package enum ListText {
    /// What is wrong with a line.
    package struct Fault: Error, Equatable, CustomStringConvertible {
        package let line: Int
        package let message: String

        package var description: String { "\(line): \(message)" }
    }

    package static func hosts(_ text: [UInt8]) throws(Fault) -> HostSet {
        var set = HostSet()
        set.reserve(bytes: text.count)
        try forEachLine(of: text) { words, line throws(Fault) in
            let names = words.count > 1 && isNowhere(words[0]) ? words.dropFirst() : words[...]
            guard names.count == words.count - 1 || words.count == 1 else {
                throw Fault(line: line, message: "\(shown(words)) is not one host: write one on each line")
            }
            for name in names {
                guard let pattern = HostPattern(String(decoding: name, as: UTF8.self)), pattern != .any else {
                    throw Fault(line: line, message: "\(shown([name])) is not a host name, *.name or an address")
                }
                guard set.insert(pattern) else { throw Fault(line: line, message: "the list is too long") }
            }
        }
        set.compact()
        return set
    }

    package static func addresses(_ text: [UInt8]) throws(Fault) -> AddressIndex {
        var ranges: [AddressRange] = []
        try forEachLine(of: text) { words, line throws(Fault) in
            guard words.count == 1, let range = AddressRange(String(decoding: words[0], as: UTF8.self)) else {
                throw Fault(line: line, message: "\(shown(words)) is not an address or a range such as 10.0.0.0/8")
            }
            ranges.append(range)
        }
        return AddressIndex(ranges)
    }

    /// Names of users. They may contain spaces, but not at their ends.
    package static func names(_ text: [UInt8]) throws(Fault) -> Set<String> {
        var names: Set<String> = []
        try forEachLine(of: text) { words, line throws(Fault) in
            guard let first = words.first, let last = words.last else { return }
            let name = text[first.startIndex..<last.endIndex]
            guard name.count <= 255, name.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw Fault(line: line, message: "\(shown([name])) is not the name of a user")
            }
            names.insert(String(decoding: name, as: UTF8.self))
        }
        return names
    }

    /// Calls `body` with the words of each line that has any, and its number from 1.
    private static func forEachLine(
        of text: [UInt8], _ body: ([ArraySlice<UInt8>], Int) throws(Fault) -> Void
    ) throws(Fault) {
        var line = 0
        var start = text.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0  // the mark that some editors write
        while start < text.count {
            line += 1
            let end = text[start...].firstIndex(of: 0x0A) ?? text.count
            let content = text[start..<end].prefix { $0 != UInt8(ascii: "#") }
            let words = content.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
            if !words.isEmpty { try body(words, line) }
            start = end + 1
        }
    }

    private static func isNowhere(_ word: ArraySlice<UInt8>) -> Bool {
        ["0.0.0.0", "127.0.0.1", "::", "::1"].contains { word.elementsEqual($0.utf8) }
    }

    /// The first words, with what cannot be printed as "?".
    private static func shown(_ words: [ArraySlice<UInt8>]) -> String {
        let bytes = words.prefix(4).joined(separator: [0x20]).prefix(80)
        return "\"" + String(decoding: bytes.map { $0 > 0x1F && $0 < 0x7F ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
            + "\""
    }
}
