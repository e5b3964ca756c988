// Parses structured fields (RFC 9651 §4.2). Any deviation makes the whole field invalid, and the result nil.

package func parseStructuredItem(_ value: some Collection<UInt8>) -> StructuredParametrisedItem? {
    var parser = StructuredFieldParser(value)
    guard let item = parser.parametrisedItem(), parser.finish() else { return nil }
    return item
}

package func parseStructuredList(_ value: some Collection<UInt8>) -> [StructuredMember]? {
    var parser = StructuredFieldParser(value)
    var members: [StructuredMember] = []
    if parser.isAtEnd { return members }
    repeat {
        guard let member = parser.member() else { return nil }
        members.append(member)
    } while parser.nextMember()
    return parser.finish() ? members : nil
}

package func parseStructuredDictionary(_ value: some Collection<UInt8>) -> StructuredDictionary? {
    var parser = StructuredFieldParser(value)
    var dictionary = StructuredDictionary()
    if parser.isAtEnd { return dictionary }
    repeat {
        guard let key = parser.key() else { return nil }
        if parser.take(0x3D) {
            guard let member = parser.member() else { return nil }
            dictionary.set(key, member)
        } else {
            guard let parameters = parser.parameters() else { return nil }
            dictionary.set(key, StructuredMember(.item(.boolean(true)), parameters))
        }
    } while parser.nextMember()
    return parser.finish() ? dictionary : nil
}

struct StructuredFieldParser {
    private var rest: ArraySlice<UInt8>
    /// Whether a comma was read that no member has followed yet.
    private var failed = false

    init(_ value: some Collection<UInt8>) {
        rest = Array(value)[...]
        skip { $0 == 0x20 }
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func finish() -> Bool {
        skip { $0 == 0x20 }
        return rest.isEmpty && !failed
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard rest.first == byte else { return false }
        rest = rest.dropFirst()
        return true
    }

    mutating func skip(_ isSkipped: (UInt8) -> Bool) { rest = rest.drop(while: isSkipped) }

    mutating func run(_ isMember: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let run = rest.prefix(while: isMember)
        rest = rest.dropFirst(run.count)
        return run
    }

    mutating func next() -> UInt8? { rest.popFirst() }

    /// Whether a comma is followed by another member. A comma at the end makes the field invalid (§4.2.1).
    mutating func nextMember() -> Bool {
        skip(isOWS)
        guard take(0x2C) else { return false }
        skip(isOWS)
        failed = rest.isEmpty
        return !failed
    }

    mutating func member() -> StructuredMember? {
        guard take(0x28) else { return parametrisedItem().map { StructuredMember(.item($0.item), $0.parameters) } }
        var items: [StructuredParametrisedItem] = []
        while true {
            skip { $0 == 0x20 }
            if take(0x29) { return parameters().map { StructuredMember(.innerList(items), $0) } }
            guard let item = parametrisedItem() else { return nil }
            items.append(item)
            guard rest.first == 0x20 || rest.first == 0x29 else { return nil }
        }
    }

    mutating func parametrisedItem() -> StructuredParametrisedItem? {
        guard let item = bareItem(), let parameters = parameters() else { return nil }
        return StructuredParametrisedItem(item, parameters)
    }

    mutating func parameters() -> StructuredParameters? {
        var parameters = StructuredParameters()
        while take(0x3B) {
            skip { $0 == 0x20 }
            guard let key = key() else { return nil }
            guard take(0x3D) else {
                parameters.set(key, .boolean(true))
                continue
            }
            guard let value = bareItem() else { return nil }
            parameters.set(key, value)
        }
        return parameters
    }

    /// `( lcalpha / "*" ) *( lcalpha / DIGIT / "_" / "-" / "." / "*" )` (§3.1.2).
    mutating func key() -> ArraySlice<UInt8>? {
        guard let first = rest.first, first &- 0x61 < 26 || first == 0x2A else { return nil }
        return run { $0 &- 0x61 < 26 || isDigit($0) || [0x5F, 0x2D, 0x2E, 0x2A].contains($0) }
    }

    mutating func bareItem() -> StructuredItem? {
        guard let first = rest.first else { return nil }
        switch first {
        case 0x2D, 0x30...0x39: return number()
        case 0x22: return string()
        case 0x2A, 0x41...0x5A, 0x61...0x7A: return .token(Array(run { isTchar($0) || $0 == 0x3A || $0 == 0x2F }))
        case 0x3A: return byteSequence()
        case 0x3F: return boolean()
        case 0x40: return date()
        case 0x25: return displayString()
        default: return nil
        }
    }
}
