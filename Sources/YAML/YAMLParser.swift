/// The most that one text can make the parser hold.
package struct YAMLBounds: Sendable {
    package var textBytesMax = 4 << 20
    /// How deep sequences and mappings can be nested.
    package var depthMax = 32
    package var nodeCountMax = 200_000
    package init() {}
}

/// Parses a YAML text in UTF-8. Returns nil for a document without content.
package func parseYAML(_ text: [UInt8], bounds: YAMLBounds = YAMLBounds()) throws(YAMLError) -> YAMLNode? {
    guard text.count <= bounds.textBytesMax else {
        throw YAMLError(line: 0, column: 0, message: "longer than \(bounds.textBytesMax) bytes")
    }
    // libyaml would accept UTF-16 as well, but a person who edits the file would not notice it.
    guard String(validating: text, as: UTF8.self) != nil else {
        let line = lineOfFirstInvalidByte(text)
        throw YAMLError(line: line, column: 1, message: "not UTF-8 text")
    }
    var events = YAMLEvents(text)
    var builder = YAMLTreeBuilder(bounds: bounds)
    return try builder.document(&events)
}

private func lineOfFirstInvalidByte(_ text: [UInt8]) -> Int {
    let lines = text.split(separator: 0x0A, omittingEmptySubsequences: false)
    return 1 + (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0)
}

/// Builds the tree by recursive descent along the events. `depthMax` bounds the recursion.
private struct YAMLTreeBuilder {
    private let bounds: YAMLBounds
    private var nodeCount = 0

    init(bounds: YAMLBounds) { self.bounds = bounds }

    mutating func document(_ events: inout YAMLEvents) throws(YAMLError) -> YAMLNode? {
        let first = try events.next()
        guard first.kind != .end else { return nil }
        let root = try node(first, &events, depth: 1)
        let further = try events.next()
        guard further.kind == .end else { throw further.error("a second document; only one is supported") }
        return root
    }

    private mutating func node(_ event: YAMLEvent, _ events: inout YAMLEvents, depth: Int) throws(YAMLError) -> YAMLNode
    {
        nodeCount += 1
        guard nodeCount <= bounds.nodeCountMax else { throw event.error("more than \(bounds.nodeCountMax) values") }
        guard depth <= bounds.depthMax else { throw event.error("nested deeper than \(bounds.depthMax)") }
        guard !event.isAnchored else {
            throw event.error("anchors are not supported; write the value itself")
        }
        guard !event.isTagged else { throw event.error("tags are not supported") }
        let value: YAMLNode.Value
        switch event.kind {
        case .scalar(let text, let isQuoted): value = .scalar(text, isQuoted: isQuoted)
        case .sequenceStart: value = .sequence(try sequence(&events, depth: depth))
        case .mappingStart: value = .mapping(try mapping(&events, depth: depth))
        case .alias: throw event.error("aliases are not supported; write the value itself")
        case .sequenceEnd, .mappingEnd, .end: preconditionFailure("libyaml closes only what it has opened")
        }
        return YAMLNode(value, line: event.line, column: event.column)
    }

    private mutating func sequence(_ events: inout YAMLEvents, depth: Int) throws(YAMLError) -> [YAMLNode] {
        var elements: [YAMLNode] = []
        while true {
            let event = try events.next()
            if event.kind == .sequenceEnd { return elements }
            elements.append(try node(event, &events, depth: depth + 1))
        }
    }

    private mutating func mapping(_ events: inout YAMLEvents, depth: Int) throws(YAMLError) -> [YAMLNode.Entry] {
        var entries: [YAMLNode.Entry] = []
        var lines: [String: Int] = [:]
        while true {
            let event = try events.next()
            if event.kind == .mappingEnd { return entries }
            guard case .scalar(let key, _) = event.kind else { throw event.error("a key must be plain text") }
            if let line = lines[key] { throw event.error("the key \"\(key)\" is already in line \(line)") }
            lines[key] = event.line
            let value = try node(try events.next(), &events, depth: depth + 1)
            entries.append(YAMLNode.Entry(key: key, keyLine: event.line, value: value))
        }
    }
}
