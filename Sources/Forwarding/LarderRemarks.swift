import Message

/// What Larder alone says of itself in a response: the fields whose names begin with `Larder-`, and the members of `Cache-Status` (RFC 9211) and
/// `Proxy-Status` (RFC 9209) whose names begin with `larder`. A client can trust them only if nobody else can say them.
enum LarderRemarks {
    /// The fields that may have such members.
    static let statusFields: FieldNameSet = [.cacheStatus, .proxyStatus]

    /// Whether a field without `FieldName` is one of Larder's own. `ForwardedHead` forwards none of them.
    static func isOwnField(_ name: ArraySlice<UInt8>) -> Bool {
        // Few names begin with an L.
        guard let first = name.first, first | 0x20 == 0x6C else { return false }
        return beginsWithLarder(name) && name.dropFirst(word.utf8CodeUnitCount).first == 0x2D
    }

    /// The fields without the members of others that claim to be Larder's. Other members stay, in order. A line that has the word and is no list goes as a
    /// whole: a client that reads it less strictly would find the member.
    static func withoutMembers(of fields: Fields) -> Fields {
        let isSuspect = { (line: FieldLine) in
            statusFields.contains(line.name) && mentionsLarder(fields.value(of: line))
        }
        guard fields.lines.contains(where: isSuspect) else { return fields }
        var cleaned = fields.dropping { statusFields.contains($0.name) }
        for line in fields.lines where statusFields.contains(line.name) {
            let value = fields.value(of: line)
            if !isSuspect(line) {
                cleaned.append(line.name, value)
            } else if let kept = membersOfOthers(in: value) {
                cleaned.append(line.name, kept)
            }
        }
        return cleaned
    }

    /// The list without members of Larder's. Nil if none is left, or if it is no list.
    private static func membersOfOthers(in value: ArraySlice<UInt8>) -> [UInt8]? {
        let kept = (parseStructuredList(value) ?? []).filter { member in
            switch member.value {
            case .item(.token(let name)), .item(.string(let name)): !beginsWithLarder(name[...])
            // Neither field has such members.
            case .item, .innerList: false
            }
        }
        guard !kept.isEmpty else { return nil }
        var bytes: [UInt8] = []
        appendStructuredList(kept, to: &bytes)
        return bytes
    }

    private static let word: StaticString = "larder"

    private static func beginsWithLarder(_ bytes: ArraySlice<UInt8>) -> Bool {
        equalsIgnoringCase(bytes.prefix(word.utf8CodeUnitCount), word)
    }

    private static func mentionsLarder(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.indices.contains { beginsWithLarder(bytes[$0...]) }
    }
}
