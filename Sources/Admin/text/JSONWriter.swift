import JSON

/// Writes JSON (RFC 8259) from left to right into a byte buffer.
///
/// It writes the commas; the caller must write a value behind each key. Numbers are written exactly. Text can stand in a script of an
/// HTML page: `<`, U+2028 and U+2029 are written as `\u` escapes.
package struct JSONWriter {
    package private(set) var bytes: [UInt8] = []
    private var needsComma = false

    package init() {}

    package mutating func object(_ members: (inout JSONWriter) -> Void) { nested("{", "}", members) }
    package mutating func array(_ elements: (inout JSONWriter) -> Void) { nested("[", "]", elements) }

    /// Writes the name of a member. A value must follow.
    package mutating func key(_ name: String) {
        separate()
        appendQuoted(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    package mutating func string(_ text: String) {
        separate()
        appendQuoted(text)
        needsComma = true
    }

    package mutating func integer(_ value: some BinaryInteger) { raw(String(value)) }

    /// Writes the shortest text that reads back as the same number, or null if JSON cannot express it (NaN, infinity).
    package mutating func number(_ value: Double?) {
        guard let value, value.isFinite else { return null() }
        raw(value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : value.description)
    }

    package mutating func bool(_ value: Bool) { raw(value ? "true" : "false") }
    package mutating func null() { raw("null") }

    package mutating func member(_ name: String, _ value: String) {
        key(name)
        string(value)
    }
    package mutating func member(_ name: String, _ value: some BinaryInteger) {
        key(name)
        integer(value)
    }
    package mutating func member(_ name: String, _ value: Double?) {
        key(name)
        number(value)
    }
    package mutating func member(_ name: String, _ value: Bool) {
        key(name)
        bool(value)
    }

    private mutating func nested(_ open: String, _ close: String, _ body: (inout JSONWriter) -> Void) {
        separate()
        bytes.append(contentsOf: open.utf8)
        needsComma = false
        body(&self)
        bytes.append(contentsOf: close.utf8)
        needsComma = true
    }

    private mutating func raw(_ text: String) {
        separate()
        bytes.append(contentsOf: text.utf8)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = false
    }

    private mutating func appendQuoted(_ text: String) { appendJSONString(text, to: &bytes) }
}
