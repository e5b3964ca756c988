/// One field line of a head: the offsets of its name and its value in the head's bytes.
///
/// The value has no white space at its ends (RFC 9110 §5.5). Offsets count from the first byte of the head.
///
/// `@usableFromInline` here and below: members of a package type are inlined in other modules only if the type has it as well.
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

/// The field lines of one head in the order received, as offsets into bytes that the caller holds.
///
/// A parser fills it. It is used again for the next head, so parsing allocates nothing once it has grown.
@usableFromInline
package struct FieldSection: Sendable, Equatable {
    @usableFromInline package var lines: [FieldLine]
    /// The known names among `lines`. A name that is not in the set is in no line.
    @usableFromInline package var present: FieldNameSet

    @inlinable
    package init() {
        lines = []
        present = []
    }

    @inlinable
    package mutating func removeAll() {
        lines.removeAll(keepingCapacity: true)
        present = FieldNameSet(bits: 0)
    }

    @inlinable
    package mutating func append(_ line: FieldLine) {
        lines.append(line)
        present.insert(line.name)
    }
}

/// A field section together with its bytes: order, repetition and spelling as received (RFC 9110 §5.3).
///
/// The form of heads that outlive a read buffer: in exchanges, in the store, in tests.
@usableFromInline
package struct Fields: Sendable, Equatable {
    @usableFromInline package private(set) var bytes: [UInt8]
    @usableFromInline package private(set) var section: FieldSection

    package init() {
        bytes = []
        section = FieldSection()
    }

    /// - Parameter bytes: the bytes that the offsets of `section` refer to; usually a whole head with its start line.
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

    /// The value of the first line with that name. Nil if there is none.
    @inlinable
    package func first(_ name: FieldName) -> ArraySlice<UInt8>? {
        guard contains(name) else { return nil }
        for line in section.lines where line.name == name { return bytes[line.valueRange] }
        return nil
    }

    /// The value of the first line with that name, which has no `FieldName`. Nil if there is none.
    package func value(ofSpelling spelling: [UInt8]) -> ArraySlice<UInt8>? {
        section.lines.first { $0.name == .other && equalsIgnoringCase(name(of: $0), spelling) }.map { value(of: $0) }
    }

    /// The values of all lines with that name, in order.
    package func all(_ name: FieldName) -> [ArraySlice<UInt8>] {
        guard contains(name) else { return [] }
        return section.lines.filter { $0.name == name }.map { bytes[$0.valueRange] }
    }

    /// The values of all lines with that name, joined by ", " (RFC 9110 §5.3). Nil if there is none.
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

    /// Appends a line with a name that has a `FieldName`.
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

    package func appending(_ name: FieldName, literal value: StaticString) -> Fields {
        var result = self
        result.append(name, literal: value)
        return result
    }

    package mutating func append(_ name: FieldName, literal value: StaticString) {
        precondition(name != .other, "a field that Larder does not know is appended by its spelling")
        let text = name.text
        let nameStart = bytes.count
        let nameEnd = nameStart + text.utf8CodeUnitCount
        let valueEnd = nameEnd + 2 + value.utf8CodeUnitCount
        bytes.append(addingCapacity: valueEnd + 2 - nameStart) {
            $0.append(text)
            $0.append(": ")
            $0.append(value)
            $0.append("\r\n")
        }
        section.append(
            FieldLine(
                name: name, nameStart: UInt32(nameStart), nameEnd: UInt32(nameEnd), valueStart: UInt32(nameEnd + 2),
                valueEnd: UInt32(valueEnd)))
    }

    /// Appends a line with a name in this spelling.
    package mutating func append(_ name: FieldName, spelling: some Collection<UInt8>, _ value: some Collection<UInt8>) {
        append(name, spelling: Array(spelling)[...], Array(value)[...])
    }

    /// Appends a line whose name and value are parts of another head.
    package mutating func append(_ name: FieldName, spelling: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) {
        let nameStart = bytes.count
        bytes.append(contentsOf: spelling)
        endName(name, from: nameStart)
        bytes.append(contentsOf: value)
        endValue()
    }

    /// Appends the value behind the name that was just appended.
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

    /// Appends the lines for which `isKept` is true, in order and in their own spelling.
    ///
    /// Successive lines of the received bytes are copied as one run, because most heads lose only a few lines.
    @inlinable
    package func appendLines(to out: inout OutputSpan<UInt8>, where isKept: (FieldLine) -> Bool) {
        var run: Range<Int>?
        for line in section.lines where isKept(line) {
            if let open = run, Int(line.nameStart) == open.upperBound + 2 {
                run = open.lowerBound..<Int(line.valueEnd)
                continue
            }
            if let run { appendRun(run, to: &out) }
            run = Int(line.nameStart)..<Int(line.valueEnd)
        }
        if let run { appendRun(run, to: &out) }
    }

    /// The same fields in a head that has them, so that no other bytes are kept.
    ///
    /// - Parameters:
    ///   - start: where `appendLines` began to append all lines but those of `other`.
    ///   - other: the name of the lines that are elsewhere in the head.
    ///   - place: where they are.
    ///   - added: a line that only the head has.
    package func moved(
        to head: [UInt8], from start: Int, but other: FieldName, at place: FieldLine, adding added: FieldLine? = nil
    ) -> Fields {
        var position = UInt32(start)
        var moved = FieldSection()
        moved.present = section.present
        moved.lines.append(addingCapacity: section.lines.count + (added == nil ? 0 : 1)) { lines in
            for line in section.lines {
                if line.name == other {
                    lines.append(place)
                    continue
                }
                let distance = position &- line.nameStart
                lines.append(
                    FieldLine(
                        name: line.name, nameStart: position, nameEnd: line.nameEnd &+ distance,
                        valueStart: line.valueStart &+ distance, valueEnd: line.valueEnd &+ distance))
                position = line.valueEnd &+ distance &+ 2
            }
            if let added { lines.append(added) }
        }
        if let added { moved.present.insert(added.name) }
        precondition(Int(position) <= head.count, "the head has all lines")
        return Fields(bytes: head, section: moved)
    }

    @usableFromInline
    func appendRun(_ run: Range<Int>, to out: inout OutputSpan<UInt8>) {
        out.append(bytes, run)
        out.append("\r\n")
    }

    /// The fields without the lines for which `isDropped` is true. The bytes are shared, not copied.
    @inlinable
    package func dropping(_ isDropped: (FieldLine) -> Bool) -> Fields {
        // Usually all lines are kept, and nothing is copied.
        guard let first = section.lines.firstIndex(where: isDropped) else { return self }
        var kept = FieldSection()
        var present = FieldNameSet(bits: 0)
        // Room for one more, because a line is often added.
        kept.lines.append(addingCapacity: section.lines.count + 1) { lines in
            for index in section.lines.indices where index < first || index > first && !isDropped(section.lines[index])
            {
                lines.append(section.lines[index])
                present.insert(section.lines[index].name)
            }
        }
        kept.present = present
        return Fields(bytes: bytes, section: kept)
    }
}
