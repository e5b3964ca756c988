package import Message

/// The request fields a response was selected by (RFC 9110 §12.5.5).
package enum Vary: Sendable, Equatable {
    /// No `Vary`: any request will do.
    case none
    case names([VaryName])
    /// `*` in any place, or a value that can not be read or is too long: no later request matches (RFC 9111 §4.1).
    case star

    /// More names than that are taken for `*`: each costs a search through every later request.
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
                // "*" is a tchar, but no field name.
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

/// One name that `Vary` lists.
package struct VaryName: Sendable, Equatable {
    package let name: FieldName
    /// Lower case.
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
