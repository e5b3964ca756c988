/// One change of the book. Those of one batch are carried out as if in the order in which they were given: an id has one key, always.
package enum BookChange: Sendable, Equatable {
    /// Adds an object, or replaces what the book has of it (same id and key), its tags too. Where `hasRenewedHead` is false a
    /// renewed head that the book has is dropped: the record at the new place is taken to have it.
    case put(BookEntry)
    /// Takes an object out, with its tags and its renewed head. Nothing where the book does not have it.
    case remove(ObjectID, key: [UInt8])
    /// Gives an object a renewed head, and attributes to go with it. Nothing where the book does not have the object.
    case renew(ObjectID, key: [UInt8], ObjectAttributes, head: [UInt8])
    /// Records the state of a segment.
    case segment(UInt32, BookSegment)
    /// The segment's file is gone, or about to go.
    case forgetSegment(UInt32)
    /// Ids below this one may have been given out. Lower numbers than before change nothing.
    case reserveIDs(below: ObjectID)
}

/// What the book knows of a segment.
package struct BookSegment: Sendable, Equatable {
    /// Bytes of the file from its beginning of which the book knows every record.
    package var coveredEnd: UInt64
    /// Nothing will be appended any more.
    package var isClosed: Bool

    package init(coveredEnd: UInt64, isClosed: Bool) {
        self.coveredEnd = coveredEnd
        self.isClosed = isClosed
    }
}

/// What takes the place of an object's head after a 304.
package struct BookRenewal: Sendable, Equatable {
    package var attributes: ObjectAttributes
    package var head: [UInt8]

    package init(attributes: ObjectAttributes, head: [UInt8]) {
        self.attributes = attributes
        self.head = head
    }
}
