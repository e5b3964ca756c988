package import Message

/// The values of the fields that `Vary` names, in the request that a response answered (RFC 9111 §4.1).
///
/// Two values match if they mean the same: lines are joined, white space around members is removed, and `normalisedValue` applies the
/// syntax of the field. A field that was absent matches only if it is absent again.
package struct SecondaryKey: Sendable, Equatable {
    private let selections: [Selection]
    private let matchesNothing: Bool

    private struct Selection: Sendable, Equatable {
        let name: VaryName
        /// The value as it was received, if it was on one line. It is compared first, because clients of one kind send the same bytes.
        let received: [UInt8]?
        /// Nil if the field was absent.
        let normalised: [UInt8]?

        static func == (a: Selection, b: Selection) -> Bool { a.name == b.name && a.normalised == b.normalised }
    }

    package init(vary responseFields: Fields, request: Fields) { self.init(Vary(responseFields), request: request) }

    package init(_ vary: Vary, request: Fields) {
        matchesNothing = vary == .star
        guard case .names(let names) = vary else {
            selections = []
            return
        }
        selections = names.map { name in
            let values = values(of: name, in: request.section, bytes: request.bytes.span)
            return Selection(
                name: name, received: values.count == 1 ? values[0] : nil,
                normalised: values.isEmpty ? nil : normalisedValue(of: name.name, values))
        }
    }

    package func write(to form: inout StoredFormWriter) {
        form.write(flags: matchesNothing)
        form.write(UInt16(selections.count))
        for selection in selections {
            form.write(selection.name.spelling)
            form.write(selection.received)
            form.write(selection.normalised)
        }
    }

    package init(from form: inout StoredFormReader) throws(StoredFormError) {
        matchesNothing = try form.readFlags()[0]
        let count = try form.read(UInt16.self)
        var selections: [Selection] = []
        for _ in 0..<count {
            let name = VaryName(try form.readBytes())
            let received = try form.readBytesIfAny()
            selections.append(Selection(name: name, received: received, normalised: try form.readBytesIfAny()))
        }
        self.selections = selections
    }

    /// `Vary` named no field, so every request matches.
    package var isEmpty: Bool { selections.isEmpty && !matchesNothing }

    package func matches(_ request: FieldSection, bytes: borrowing Span<UInt8>) -> Bool {
        guard !matchesNothing else { return false }
        for selection in selections where !isMatch(selection, request, bytes) { return false }
        return true
    }

    package func matches(_ request: Fields) -> Bool { matches(request.section, bytes: request.bytes.span) }

    private func isMatch(_ selection: Selection, _ request: FieldSection, _ bytes: borrowing Span<UInt8>) -> Bool {
        guard request.present.contains(selection.name.name) else { return selection.normalised == nil }
        if let received = selection.received, isSame(selection.name, received, request, bytes) { return true }
        let values = values(of: selection.name, in: request, bytes: bytes)
        return values.isEmpty
            ? selection.normalised == nil
            : selection.normalised == normalisedValue(of: selection.name.name, values)
    }

    /// Whether there is one line with this name and exactly these bytes. Allocates nothing.
    private func isSame(
        _ name: VaryName, _ received: [UInt8], _ request: FieldSection, _ bytes: borrowing Span<UInt8>
    ) -> Bool {
        var isFound = false
        for line in request.lines where name.names(line, bytes) {
            guard !isFound, line.valueRange.count == received.count else { return false }
            for offset in received.indices where bytes[line.valueRange.lowerBound + offset] != received[offset] {
                return false
            }
            isFound = true
        }
        return isFound
    }
}

private func values(of name: VaryName, in fields: FieldSection, bytes: borrowing Span<UInt8>) -> [[UInt8]] {
    var result: [[UInt8]] = []
    for line in fields.lines where name.names(line, bytes) {
        var value: [UInt8] = []
        value.reserveCapacity(line.valueRange.count)
        for index in line.valueRange { value.append(bytes[index]) }
        result.append(value)
    }
    return result
}
