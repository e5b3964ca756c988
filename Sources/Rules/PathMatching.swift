/// Whether the tokens match the whole path.
///
/// Patterns of literals and asterisks are matched from left to right, each literal at its first occurrence. Others are matched
/// by the set of places that each part can end at. Neither goes back, so the time is bounded by the length of the path times that of the
/// pattern.
func pathMatches(_ tokens: [PathToken], _ path: ArraySlice<UInt8>) -> Bool {
    if case .literal(let first)? = tokens.first, !path.starts(with: first) { return false }
    if case .literal(let last)? = tokens.last, !path.suffix(last.count).elementsEqual(last) { return false }
    guard tokens.contains(where: \.isPlaceholder) else { return holds(tokens, in: path) }
    guard hasShape(tokens, path) else { return false }
    guard let settled = withRepetitions(tokens, in: path) else { return true }
    return hasShape(settled, path)
}

/// The tokens with what they repeat in this path. Nil if they repeat nothing.
private func withRepetitions(_ tokens: [PathToken], in path: ArraySlice<UInt8>) -> [PathToken]? {
    var settled: [PathToken]?
    for (index, token) in tokens.enumerated() {
        guard case .same(let earlier) = token, let part = pathPart(earlier, of: tokens, in: path) else { continue }
        settled = settled ?? tokens
        settled?[index] = .literal(Array(part))
    }
    return settled
}

/// Whether the tokens match the whole path, if what they repeat may be anything.
private func hasShape(_ tokens: [PathToken], _ path: ArraySlice<UInt8>) -> Bool {
    var ends = PathPlaces(path.count, only: 0)
    for token in tokens {
        ends = places(after: token, from: ends, in: path)
        if ends.isEmpty { return false }
    }
    return ends.contains(path.count)
}

/// Whether the path has the literals in this order, the first and the last one at its ends, with anything in place of the other tokens.
///
/// Holds for each path that `pathMatches`, and for others. Each literal takes its first occurrence.
func pathMayMatch(_ tokens: [PathToken], _ path: borrowing Span<UInt8>) -> Bool {
    var place = 0
    var isAnchored = true
    for index in tokens.indices {
        guard case .literal(let text) = tokens[index] else {
            isAnchored = false
            continue
        }
        let last = path.count - text.count
        if isAnchored || index == tokens.count - 1 {
            // At the beginning, behind another literal, or at the end.
            let start = isAnchored ? place : last
            guard start >= place, start <= last, hasText(text, at: start, in: path) else { return false }
            place = start + text.count
        } else {
            while place <= last, !hasText(text, at: place, in: path) { place += 1 }
            guard place <= last else { return false }
            place += text.count
        }
        isAnchored = true
    }
    return !isAnchored || place == path.count
}

private func hasText(_ text: [UInt8], at place: Int, in path: borrowing Span<UInt8>) -> Bool {
    for index in text.indices where path[place + index] != text[index] { return false }
    return true
}

/// The bytes that one token takes if the tokens match the whole path. Of several ways to match, it is the one in which the parts behind
/// the token take as little as they can, the last part first. Returns nil if they do not match.
func pathPart(_ index: Int, of tokens: [PathToken], in path: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    var all = [PathPlaces(path.count, only: 0)]
    for token in tokens { all.append(places(after: token, from: all[all.count - 1], in: path)) }
    guard all[tokens.count].contains(path.count) else { return nil }
    var end = path.count
    for step in tokens.indices.reversed() {
        guard let start = lastStart(of: tokens[step], endingAt: end, among: all[step], in: path) else { return nil }
        if step == index { return path[(path.startIndex + start)..<(path.startIndex + end)] }
        end = start
    }
    return nil
}

/// The last of the places at which the token can begin if it ends at `end`.
private func lastStart(
    of token: PathToken, endingAt end: Int, among starts: PathPlaces, in path: ArraySlice<UInt8>
) -> Int? {
    func start(of text: [UInt8]) -> Int? {
        let start = end - text.count
        guard start >= 0, starts.contains(start), path[(path.startIndex + start)...].starts(with: text) else {
            return nil
        }
        return start
    }
    switch token {
    case .anything: return (0...end).last(where: starts.contains)
    case .literal(let text): return start(of: text)
    case .oneOf(let texts): return texts.compactMap(start).max()
    case .same: return lastStart(of: .run(.segment, count: nil), endingAt: end, among: starts, in: path)
    case .run(let kind, let count):
        var start = end
        while start > 0, kind.contains(path[path.startIndex + start - 1]), count.map({ end - start < $0 }) ?? true {
            start -= 1
            if starts.contains(start), count.map({ end - start == $0 }) ?? true { return start }
        }
        return nil
    }
}

/// Places between the bytes of a path, from 0 to its length.
private struct PathPlaces {
    private var flags: [Bool]
    private(set) var isEmpty = true

    init(_ length: Int, only place: Int? = nil) {
        flags = [Bool](repeating: false, count: length + 1)
        if let place { insert(place) }
    }

    func contains(_ place: Int) -> Bool { flags[place] }

    mutating func insert(_ place: Int) {
        flags[place] = true
        isEmpty = false
    }
}

/// Where a part can end that begins at one of the places.
private func places(after token: PathToken, from starts: PathPlaces, in path: ArraySlice<UInt8>) -> PathPlaces {
    let length = path.count
    var ends = PathPlaces(length)
    switch token {
    case .anything:
        guard let first = (0...length).first(where: starts.contains) else { return ends }
        for place in first...length { ends.insert(place) }
    case .literal(let text): insertEnds(of: text, from: starts, in: path, &ends)
    case .oneOf(let texts): for text in texts { insertEnds(of: text, from: starts, in: path, &ends) }
    case .same: ends = places(after: .run(.segment, count: nil), from: starts, in: path)
    case .run(let kind, count: let count?):
        var run = 0
        for place in 0..<length {
            run = kind.contains(path[path.startIndex + place]) ? run + 1 : 0
            if run >= count, starts.contains(place + 1 - count) { ends.insert(place + 1) }
        }
    case .run(let kind, count: nil):
        var hasBegun = false
        for place in 0..<length {
            hasBegun = kind.contains(path[path.startIndex + place]) && (hasBegun || starts.contains(place))
            if hasBegun { ends.insert(place + 1) }
        }
    }
    return ends
}

private func insertEnds(
    of text: [UInt8], from starts: PathPlaces, in path: ArraySlice<UInt8>, _ ends: inout PathPlaces
) {
    guard text.count <= path.count else { return }
    for place in 0...(path.count - text.count) where starts.contains(place) {
        if path[(path.startIndex + place)...].starts(with: text) { ends.insert(place + text.count) }
    }
}

/// Whether the path has the literals in this order, with anything where an asterisk stands. The first and the last token have been compared.
private func holds(_ tokens: [PathToken], in path: ArraySlice<UInt8>) -> Bool {
    var rest = path
    var isAnchored = true
    for (index, token) in tokens.enumerated() {
        guard case .literal(let piece) = token else {
            isAnchored = false
            continue
        }
        if index == tokens.count - 1 {
            return isAnchored ? rest.count == piece.count : rest.count >= piece.count
        }
        let end = isAnchored ? rest.startIndex + piece.count : endOfFirst(piece, in: rest)
        guard let end else { return false }
        rest = rest[end...]
        isAnchored = true
    }
    return !isAnchored || rest.isEmpty
}

private func endOfFirst(_ piece: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
    guard let head = piece.first else { return bytes.startIndex }
    var index = bytes.startIndex
    while bytes.endIndex - index >= piece.count {
        if bytes[index] == head, bytes[index...].starts(with: piece) { return index + piece.count }
        index += 1
    }
    return nil
}
