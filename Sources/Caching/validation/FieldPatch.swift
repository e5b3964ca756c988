package import Message

/// Stored fields after an update (RFC 9111 §3.2).
package struct FreshenedFields: Sendable {
    package let fields: Fields
    /// The names of the fields whose values changed. Nil if more than values may have changed.
    package let changed: FieldNameSet?
}

/// Puts the values of the update into the stored fields. This is possible if each line of the update has exactly one counterpart, of the
/// same spelling and with a value of the same length; usually only `Date` differs. Returns nil if the fields have to be merged.
///
/// The lines do not move, so their offsets stay valid, and the only allocation is one copy of the bytes.
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
        // Its lists may name stored fields.
        if line.name == .cacheControl { return nil }
        changed.insert(line.name)
        unsafe bytes.withUnsafeMutableBytes { target in
            unsafe update.bytes.withUnsafeBytes { source in
                unsafe UnsafeMutableRawBufferPointer(rebasing: target[old])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[new]))
            }
        }
    }
    return FreshenedFields(
        fields: changed.bits == 0 ? stored : Fields(bytes: bytes, section: stored.section), changed: changed)
}

/// Whether no field of either is left out, and one word can remember the lines that were found.
private func mayPatch(_ stored: Fields, by update: Fields) -> Bool {
    stored.lines.count <= 64 && !update.contains(.connection) && (!stored.contains(.age) || update.contains(.age))
}

private func hasFieldLists(_ stored: Fields, _ response: CachedResponse?) -> Bool {
    if let response, response.hasOriginDirectives { return response.directives.hasFieldLists }
    return ResponseDirectives(stored).hasFieldLists
}

/// The only stored line with the same name in the same spelling. Returns nil if there is none, or several, or another spelling.
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
