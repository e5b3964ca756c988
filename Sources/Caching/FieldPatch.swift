package import Message

/// Stored fields after an update (RFC 9111 §3.2).
package struct FreshenedFields: Sendable {
    package let fields: Fields
    /// The names whose value is another than before; nil: more than values may have changed.
    package let changed: FieldNameSet?
}

/// The stored fields with the values of the update, where each line of it finds its only counterpart, of the same spelling
/// and with a value of the same length: as a rule only `Date` differs. Nil: they have to be merged.
///
/// The lines are not moved, so the offsets stay what they are and all that is made is one copy of the bytes.
func patched(_ stored: Fields, of response: CachedResponse?, by update: Fields) -> FreshenedFields? {
    guard mayPatch(stored, by: update), !hasFieldLists(stored, response) else { return nil }
    var bytes = stored.bytes
    var changed: FieldNameSet = []
    var found: UInt64 = 0
    for line in update.lines where !isKept(line.name) && !isNeverStored(line.name) {
        guard let index = counterpart(of: line, update, in: stored), found & (1 << UInt64(index)) == 0 else {
            return nil
        }
        found |= 1 << UInt64(index)
        let (old, new) = (stored.lines[index].valueRange, line.valueRange)
        guard old.count == new.count else { return nil }
        if isEqual(stored, old, update, new) { continue }
        // Its lists may name fields that are stored.
        if line.name == .cacheControl { return nil }
        changed.insert(line.name)
        for offset in 0..<new.count { bytes[old.lowerBound + offset] = update.bytes[new.lowerBound + offset] }
    }
    return FreshenedFields(
        fields: changed.bits == 0 ? stored : Fields(bytes: bytes, section: stored.section), changed: changed)
}

/// Nothing is left out of either, and what is found can be remembered in one word.
private func mayPatch(_ stored: Fields, by update: Fields) -> Bool {
    stored.lines.count <= 64 && !update.contains(.connection) && (!stored.contains(.age) || update.contains(.age))
}

private func hasFieldLists(_ stored: Fields, _ response: CachedResponse?) -> Bool {
    if let response, response.hasOriginDirectives { return response.directives.hasFieldLists }
    return ResponseDirectives(stored).hasFieldLists
}

/// The one stored line of that name, spelled alike; nil: there is none, or more than one, or it is spelled otherwise.
private func counterpart(of line: FieldLine, _ update: Fields, in stored: Fields) -> Int? {
    var result: Int?
    for index in stored.lines.indices where stored.lines[index].name == line.name {
        guard isEqual(stored, stored.lines[index].nameRange, update, line.nameRange) else {
            if line.name == .other, !isSame(update, line, .other, stored.name(of: stored.lines[index])) { continue }
            return nil
        }
        guard result == nil else { return nil }
        result = index
    }
    return result
}

private func isEqual(_ a: Fields, _ first: Range<Int>, _ b: Fields, _ second: Range<Int>) -> Bool {
    areEqual(a.bytes.span, first, b.bytes.span, second)
}
