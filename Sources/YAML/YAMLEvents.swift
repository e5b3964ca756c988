import CYAML

/// One event of libyaml, as a value.
struct YAMLEvent {
    enum Kind: Equatable {
        case scalar(String, isQuoted: Bool)
        case sequenceStart, sequenceEnd, mappingStart, mappingEnd
        case alias
        /// The end of the stream.
        case end
    }
    let kind: Kind
    let isAnchored: Bool
    let isTagged: Bool
    /// Counted from 1.
    let line, column: Int

    func error(_ message: String) -> YAMLError { YAMLError(line: line, column: column, message: message) }
}

/// The events of a text in order. It is the only owner of libyaml's parser, and of the text that the parser reads.
@safe
struct YAMLEvents: ~Copyable {
    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeMutableBufferPointer<UInt8>

    init(_ bytes: [UInt8]) {
        unsafe text = .allocate(capacity: max(1, bytes.count))
        _ = unsafe text.initialize(from: bytes)
        unsafe parser = .allocate(capacity: 1)
        unsafe parser.initialize(to: yaml_parser_t())
        // This fails only for lack of memory, as any other allocation would.
        precondition(unsafe yaml_parser_initialize(parser) == 1, "libyaml has memory to start")
        unsafe yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        unsafe yaml_parser_set_input_string(parser, text.baseAddress, bytes.count)
    }

    deinit {
        unsafe yaml_parser_delete(parser)
        unsafe parser.deallocate()
        unsafe text.deallocate()
    }

    /// The next event with content. Starts of stream and document are skipped. After `.end`, it returns `.end` again.
    mutating func next() throws(YAMLError) -> YAMLEvent {
        while true {
            var raw = unsafe yaml_event_t()
            guard unsafe yaml_parser_parse(parser, &raw) == 1 else { throw syntaxError() }
            defer { unsafe yaml_event_delete(&raw) }
            if let event = unsafe Self.event(raw) { return event }
        }
    }

    private static func event(_ raw: yaml_event_t) -> YAMLEvent? {
        switch unsafe raw.type {
        case YAML_SCALAR_EVENT: unsafe scalar(raw)
        case YAML_ALIAS_EVENT: unsafe make(.alias, raw)
        case YAML_SEQUENCE_START_EVENT:
            unsafe make(
                .sequenceStart, raw, anchor: raw.data.sequence_start.anchor, tag: raw.data.sequence_start.tag)
        case YAML_SEQUENCE_END_EVENT: unsafe make(.sequenceEnd, raw)
        case YAML_MAPPING_START_EVENT:
            unsafe make(.mappingStart, raw, anchor: raw.data.mapping_start.anchor, tag: raw.data.mapping_start.tag)
        case YAML_MAPPING_END_EVENT: unsafe make(.mappingEnd, raw)
        case YAML_STREAM_END_EVENT, YAML_NO_EVENT: unsafe make(.end, raw)
        default: nil
        }
    }

    private static func scalar(_ raw: yaml_event_t) -> YAMLEvent {
        let scalar = unsafe raw.data.scalar
        let bytes = unsafe UnsafeBufferPointer(start: scalar.value, count: scalar.length)
        let text = unsafe String(decoding: bytes, as: UTF8.self)
        let isQuoted = unsafe scalar.style != YAML_PLAIN_SCALAR_STYLE
        return unsafe make(.scalar(text, isQuoted: isQuoted), raw, anchor: scalar.anchor, tag: scalar.tag)
    }

    private static func make(
        _ kind: YAMLEvent.Kind, _ raw: yaml_event_t, anchor: UnsafeMutablePointer<UInt8>? = nil,
        tag: UnsafeMutablePointer<UInt8>? = nil
    ) -> YAMLEvent {
        unsafe YAMLEvent(
            kind: kind, isAnchored: anchor != nil, isTagged: tag != nil, line: raw.start_mark.line + 1,
            column: raw.start_mark.column + 1)
    }

    /// The error that libyaml reports, with its line.
    private func syntaxError() -> YAMLError {
        var message = unsafe parser.pointee.problem.map { unsafe String(cString: $0) } ?? "not YAML"
        if let context = unsafe parser.pointee.context.map({ unsafe String(cString: $0) }) {
            message += " (\(context))"
            if context.contains("alias") { message += "; text that starts with * needs quotes" }
        }
        let mark = unsafe parser.pointee.problem_mark
        return YAMLError(line: mark.line + 1, column: mark.column + 1, message: message)
    }
}
