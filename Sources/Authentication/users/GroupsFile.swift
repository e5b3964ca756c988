import Message

/// The groups of users, in the format of Apache's AuthGroupFile: `group: user user`. A group may have several lines. Empty lines and lines
/// that start with `#` are skipped.
package struct GroupsFile: Sendable, Equatable {
    private var groups: [String: [String]] = [:]

    package init() {}

    /// The groups of a user, sorted.
    package func groups(of user: String) -> [String] { groups[user] ?? [] }
    package var users: [String] { groups.keys.sorted() }

    /// Reads every line. The numbers are those of lines that are neither a group nor empty.
    package static func parse(_ text: [UInt8]) -> (file: GroupsFile, wrongLines: [Int]) {
        var file = GroupsFile()
        var wrongLines: [Int] = []
        for (index, line) in text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            let line = line.last == 0x0D ? line.dropLast() : line
            let content = line.drop(while: isOWS)
            if content.isEmpty || content.first == UInt8(ascii: "#") { continue }
            guard let colon = content.firstIndex(of: UInt8(ascii: ":")), colon > content.startIndex,
                let text = String(validating: content, as: UTF8.self),
                content.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
            else {
                wrongLines.append(index + 1)
                continue
            }
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let group = String(parts[0].filter { $0 != " " && $0 != "\t" })
            for user in parts[1].split(whereSeparator: { $0 == " " || $0 == "\t" }) {
                file.groups[String(user), default: []].append(group)
            }
        }
        file.groups = file.groups.mapValues { Array(Set($0)).sorted() }
        return (file, wrongLines)
    }
}
