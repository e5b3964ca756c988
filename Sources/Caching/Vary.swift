package import Message

/// The request fields by which the origin selected a response (RFC 9110 §12.5.5).
package enum Vary: Sendable, Equatable {
    /// There is no `Vary`: the response is for every request.
    case none
    case names([VaryName])
    /// There is a `*`, or a value that cannot be parsed or is too long: no later request matches (RFC 9111 §4.1).
    case star

    /// More names than this count as `*`, because each costs a search through every later request.
    package static let namesMax = 16

    package init(_ fields: Fields) {
        guard fields.contains(.vary) else {
            self = .none
            return
        }
        var names: [VaryName] = []
        var isReadable = true
        for value in fields.all(.vary) {
            forEachListElement(value) { element in
                let name = VaryName(element)
                // "*" is a tchar, but not a field name.
                isReadable = isReadable && !element.contains(Byte.asterisk) && element.allSatisfy(isTchar)
                if !names.contains(name) { names.append(name) }
            }
        }
        if !isReadable || names.count > Self.namesMax {
            self = .star
        } else {
            self = names.isEmpty ? .none : .names(names)
        }
    }
}

/// A field name in `Vary`.
package struct VaryName: Sendable, Equatable {
    package let name: FieldName
    /// In lower case.
    package let spelling: [UInt8]

    package init(_ spelling: some Collection<UInt8>) {
        name = FieldName(spelling: spelling)
        self.spelling = spelling.map(asciiLowercased)
    }

    func names(_ line: FieldLine, _ bytes: borrowing Span<UInt8>) -> Bool {
        guard line.name == name else { return false }
        guard name == .other else { return true }
        guard line.nameRange.count == spelling.count else { return false }
        for offset in spelling.indices
        where asciiLowercased(bytes[line.nameRange.lowerBound + offset]) != spelling[offset] { return false }
        return true
    }
}
