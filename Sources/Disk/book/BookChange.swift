/// One change of the book. The changes of a batch take effect in their order. An object number belongs to one key for ever.
package enum BookChange: Sendable, Equatable {
    /// Adds an object, or replaces its entry and its tags. If `hasRenewedHead` is false, the renewed head in the book is removed: the
    /// record at the new place contains it.
    case put(BookEntry)
    /// Removes an object with its tags and its renewed head. Does nothing if the book does not have it.
    case remove(ObjectID, key: [UInt8])
    /// Gives an object a renewed head with its attributes. Does nothing if the book does not have the object.
    case renew(ObjectID, key: [UInt8], ObjectAttributes, head: [UInt8])
    /// Notes the state of a segment.
    case segment(UInt32, BookSegment)
    /// Removes what the book knows of a file. The file must be deleted, and its directory synchronized, before.
    case forgetSegment(UInt32)
    /// Object numbers below this one may have been given out. A lower value than before changes nothing.
    case reserveIDs(below: ObjectID)
    /// Keeps a note of whoever uses the store, in place of an earlier one with the name.
    case note(name: String, [UInt8])
}

/// What the book knows of a segment.
package struct BookSegment: Sendable, Equatable {
    /// The book knows every record before this offset.
    package var coveredEnd: UInt64
    /// Nothing will be appended.
    package var isClosed: Bool
    /// Some of its records may have been copied to later segments while it still exists: reclaiming it was interrupted.
    package var isEmptied: Bool

    package init(coveredEnd: UInt64, isClosed: Bool, isEmptied: Bool = false) {
        self.coveredEnd = coveredEnd
        self.isClosed = isClosed
        self.isEmptied = isEmptied
    }
}

/// What replaces the head of an object after a 304.
package struct BookRenewal: Sendable, Equatable {
    package var attributes: ObjectAttributes
    package var head: [UInt8]

    package init(attributes: ObjectAttributes, head: [UInt8]) {
        self.attributes = attributes
        self.head = head
    }
}
