/// One field line of a head: where its name and value stand in the head's bytes.
///
/// The value is without the white space around it (RFC 9110 §5.5); offsets count from the first byte of the head.
///
/// `@usableFromInline`, here and below: what is inlinable of a type of a package is inlined elsewhere only if the type is, too.
@usableFromInline
package struct FieldLine: Sendable, Equatable {
    @usableFromInline package var name: FieldName
    @usableFromInline package var nameStart, nameEnd, valueStart, valueEnd: UInt32

    @inlinable @inline(__always)
    package init(name: FieldName, nameStart: UInt32, nameEnd: UInt32, valueStart: UInt32, valueEnd: UInt32) {
        self.name = name
        self.nameStart = nameStart
        self.nameEnd = nameEnd
        self.valueStart = valueStart
        self.valueEnd = valueEnd
    }

    @inlinable @inline(__always)
    package var nameRange: Range<Int> { Int(nameStart)..<Int(nameEnd) }
    @inlinable @inline(__always)
    package var valueRange: Range<Int> { Int(valueStart)..<Int(valueEnd) }
}

/// The field lines of one head in the order they came, as offsets into bytes that somebody else holds.
///
/// What a parser yields. Reused from head to head, so that parsing allocates nothing once it has grown.
@usableFromInline
package struct FieldSection: Sendable, Equatable {
    @usableFromInline package var lines: [FieldLine]
    /// The known names among `lines`; a name that is not here need not be searched for.
    @usableFromInline package var present: FieldNameSet

    @inlinable
    package init() {
        lines = []
        present = []
    }

    @inlinable
    package mutating func removeAll() {
        lines.removeAll(keepingCapacity: true)
        present = []
    }

    @inlinable
    package mutating func append(_ line: FieldLine) {
        lines.append(line)
        present.insert(line.name)
    }
}

/// A field section together with its bytes: order, repetition and spelling as received (RFC 9110 §5.3).
///
/// The form in which heads live longer than a read buffer: on the way to an origin, in the store, in tests.
@usableFromInline
package struct Fields: Sendable, Equatable {
    @usableFromInline package private(set) var bytes: [UInt8]
    @usableFromInline package private(set) var section: FieldSection

    package init() {
        bytes = []
        section = FieldSection()
    }

    /// - Parameter bytes: what the offsets of `section` count into; usually a whole head, start line included.
    @inlinable
    package init(bytes: [UInt8], section: FieldSection) {
        self.bytes = bytes
        self.section = section
    }

    @inlinable
    package var lines: [FieldLine] { section.lines }
    @inlinable
    package var present: FieldNameSet { section.present }
    @inlinable
    package func contains(_ name: FieldName) -> Bool { section.present.contains(name) }
    @inlinable
    package func name(of line: FieldLine) -> ArraySlice<UInt8> { bytes[line.nameRange] }
    @inlinable
    package func value(of line: FieldLine) -> ArraySlice<UInt8> { bytes[line.valueRange] }

    /// The value of the first line of that name, or nil.
    @inlinable
    package func first(_ name: FieldName) -> ArraySlice<UInt8>? {
        guard contains(name) else { return nil }
        for line in section.lines where line.name == name { return bytes[line.valueRange] }
        return nil
    }

    /// The values of all lines of that name, in order.
    package func all(_ name: FieldName) -> [ArraySlice<UInt8>] {
        guard contains(name) else { return [] }
        return section.lines.filter { $0.name == name }.map { bytes[$0.valueRange] }
    }

    /// The values of all lines of that name as one, joined by ", " (RFC 9110 §5.3), or nil where there is none.
    package func joined(_ name: FieldName) -> [UInt8]? {
        guard contains(name) else { return nil }
        var result: [UInt8] = []
        var isFirst = true
        for line in section.lines where line.name == name {
            if !isFirst { result.append(", ") }
            isFirst = false
            result.append(contentsOf: bytes[line.valueRange])
        }
        return result
    }

    /// Appends a line with a name of ours.
    package mutating func append(_ name: FieldName, _ value: some Collection<UInt8>) {
        append(name, Array(value)[...])
    }

    package mutating func append(_ name: FieldName, _ value: ArraySlice<UInt8>) {
        precondition(name != .other, "a field that Larder does not know is appended by its spelling")
        bytes.reserveCapacity(bytes.count + name.text.utf8CodeUnitCount + value.count + 4)
        let nameStart = bytes.count
        bytes.append(name.text)
        endName(name, from: nameStart)
        bytes.append(contentsOf: value)
        endValue()
    }

    package mutating func append(_ name: FieldName, _ value: String) { append(name, Array(value.utf8)[...]) }

    package mutating func append(_ name: FieldName, literal value: StaticString) {
        precondition(name != .other, "a field that Larder does not know is appended by its spelling")
        bytes.reserveCapacity(bytes.count + name.text.utf8CodeUnitCount + value.utf8CodeUnitCount + 4)
        let nameStart = bytes.count
        bytes.append(name.text)
        endName(name, from: nameStart)
        bytes.append(value)
        endValue()
    }

    /// Appends a line in the spelling given.
    package mutating func append(_ name: FieldName, spelling: some Collection<UInt8>, _ value: some Collection<UInt8>) {
        append(name, spelling: Array(spelling)[...], Array(value)[...])
    }

    /// The same for parts of a head that is at hand: the form that messages on their way use.
    package mutating func append(_ name: FieldName, spelling: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) {
        let nameStart = bytes.count
        bytes.append(contentsOf: spelling)
        endName(name, from: nameStart)
        bytes.append(contentsOf: value)
        endValue()
    }

    /// What was just appended is the name; the value follows.
    private mutating func endName(_ name: FieldName, from nameStart: Int) {
        let nameEnd = UInt32(bytes.count)
        bytes.append(": ")
        let valueStart = UInt32(bytes.count)
        section.append(
            FieldLine(
                name: name, nameStart: UInt32(nameStart), nameEnd: nameEnd, valueStart: valueStart,
                valueEnd: valueStart))
    }

    private mutating func endValue() {
        section.lines[section.lines.count - 1].valueEnd = UInt32(bytes.count)
        bytes.append("\r\n")
    }

    /// The fields without those lines for which `isDropped` holds; the bytes are shared, not copied.
    @inlinable
    package func dropping(_ isDropped: (FieldLine) -> Bool) -> Fields {
        // Mostly all are kept: then nothing is made anew.
        guard let first = section.lines.firstIndex(where: isDropped) else { return self }
        var kept = FieldSection()
        // One more: a line is often added.
        kept.lines.reserveCapacity(section.lines.count + 1)
        for line in section.lines[..<first] { kept.append(line) }
        for line in section.lines[(first + 1)...] where !isDropped(line) { kept.append(line) }
        return Fields(bytes: bytes, section: kept)
    }
}
