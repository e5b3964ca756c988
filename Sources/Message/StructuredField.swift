/// Structured field values (RFC 9651, which replaces RFC 8941): the data model.
package enum StructuredItem: Sendable, Equatable {
    case integer(Int64)  // at most fifteen digits (§3.3.1)
    case decimal(thousandths: Int64)  // twelve digits and three behind the point (§3.3.2)
    case string([UInt8])  // ASCII, without quotes and escapes (§3.3.3)
    case token([UInt8])  // §3.3.4
    case byteSequence([UInt8])  // decoded (§3.3.5)
    case boolean(Bool)  // §3.3.6
    case date(Int64)  // seconds since 1970 (§3.3.7)
    case displayString([UInt8])  // UTF-8, decoded (§3.3.8)
}

/// Parameters in order. A repeated key has its last value at its first place (§3.1.2).
package struct StructuredParameters: Sendable, Equatable {
    package private(set) var entries: [Entry] = []
    package struct Entry: Sendable, Equatable {
        package var key: [UInt8]
        package var value: StructuredItem
    }

    package init() {}

    package mutating func set(_ key: some Collection<UInt8>, _ value: StructuredItem) {
        if let index = entries.firstIndex(where: { $0.key.elementsEqual(key) }) {
            entries[index].value = value
        } else {
            entries.append(Entry(key: Array(key), value: value))
        }
    }

    package subscript(_ key: String) -> StructuredItem? { entries.first { $0.key.elementsEqual(key.utf8) }?.value }
}

/// A member of a list or a dictionary (§3.1, §3.2).
package struct StructuredMember: Sendable, Equatable {
    package enum Value: Sendable, Equatable {
        case item(StructuredItem)
        case innerList([StructuredParametrisedItem])
    }
    package var value: Value
    package var parameters: StructuredParameters

    package init(_ value: Value, _ parameters: StructuredParameters = .init()) {
        self.value = value
        self.parameters = parameters
    }
}

/// An item with its parameters: the third top-level type (§3.3), and a member of inner lists (§3.1.1).
package struct StructuredParametrisedItem: Sendable, Equatable {
    package var item: StructuredItem
    package var parameters: StructuredParameters

    package init(_ item: StructuredItem, _ parameters: StructuredParameters = .init()) {
        self.item = item
        self.parameters = parameters
    }
}

/// A dictionary in order. A repeated key has its last value at its first place (§3.2).
package struct StructuredDictionary: Sendable, Equatable {
    package private(set) var entries: [Entry] = []
    package struct Entry: Sendable, Equatable {
        package var key: [UInt8]
        package var member: StructuredMember
    }

    package init() {}

    package mutating func set(_ key: some Collection<UInt8>, _ member: StructuredMember) {
        if let index = entries.firstIndex(where: { $0.key.elementsEqual(key) }) {
            entries[index].member = member
        } else {
            entries.append(Entry(key: Array(key), member: member))
        }
    }

    package subscript(_ key: String) -> StructuredMember? { entries.first { $0.key.elementsEqual(key.utf8) }?.member }
}
