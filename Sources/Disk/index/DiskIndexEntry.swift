/// One object in the index: 32 bytes.
///
/// It contains the whole number of the object, so that the object can be removed or moved without reading its record. The number
/// is what names an object in drop records, in the book, and to readers.
///
/// Lengths and offsets are in units of 16 bytes, because records begin and end at multiples of 16. The length of the body is exact
/// nevertheless: four bits say how much padding follows it.
struct DiskIndexEntry: Equatable {
    var hash: UInt64
    var id: ObjectID
    private var segment: UInt32
    private var offset16: UInt32
    private var recordLength16: UInt32
    /// Zero marks a free slot: every record has a head.
    private var headLength16: UInt16
    private var flags: UInt16

    static let free = DiskIndexEntry()

    private init() {
        hash = 0
        id = ObjectID(rawValue: 0)
        segment = 0
        offset16 = 0
        recordLength16 = 0
        headLength16 = 0
        flags = 0
    }

    /// Returns nil if the place exceeds what an entry can hold: a head of 1 MiB, a record or segment of 64 GiB.
    init?(hash: UInt64, id: ObjectID, place: Place, storageClass: StorageClass, isRenewed: Bool, uses: UInt8 = 0) {
        let (length, overflow) = place.bodyLength.addingReportingOverflow(UInt64(place.headLength) + 15)
        guard !overflow, let recordLength16 = UInt32(exactly: length >> 4),
            let offset16 = UInt32(exactly: place.offset >> 4),
            let headLength16 = UInt16(exactly: place.headLength >> 4), headLength16 > 0,
            place.offset & 15 == 0, place.headLength & 15 == 0
        else { return nil }
        precondition(recordLength16 >= UInt32(headLength16), "a record is at least as long as its head part")
        self.hash = hash
        self.id = id
        self.segment = place.segment
        self.offset16 = offset16
        self.recordLength16 = recordLength16
        self.headLength16 = headLength16
        let padding = UInt16((16 - place.bodyLength & 15) & 15)
        flags =
            (place.kind == .large ? Flag.large : 0) | (storageClass == .pinned ? Flag.pinned : 0)
            | (isRenewed ? Flag.renewed : 0) | padding << Flag.paddingShift
        self.uses = uses
    }

    private enum Flag {
        static let large: UInt16 = 1 << 0
        static let pinned: UInt16 = 1 << 1
        static let renewed: UInt16 = 1 << 2
        static let usesShift: UInt16 = 3
        static let usesMask: UInt16 = 3 << usesShift
        /// The length of the padding behind the body, 0 to 15.
        static let paddingShift: UInt16 = 5
        static let paddingMask: UInt16 = 15 << paddingShift
    }

    var isFree: Bool { headLength16 == 0 }

    var place: Place {
        let padding = UInt64(flags & Flag.paddingMask) >> Flag.paddingShift
        return Place(
            kind: flags & Flag.large == 0 ? .packed : .large, segment: segment, offset: UInt64(offset16) << 4,
            headLength: UInt32(headLength16) << 4,
            bodyLength: (UInt64(recordLength16) - UInt64(headLength16)) << 4 - padding)
    }

    /// Whether the object is at this place. Two objects never begin at the same place.
    func isAt(_ place: Place) -> Bool {
        segment == place.segment && UInt64(offset16) << 4 == place.offset
    }

    var storageClass: StorageClass {
        get { flags & Flag.pinned == 0 ? .permanent : .pinned }
        set { flags = newValue == .pinned ? flags | Flag.pinned : flags & ~Flag.pinned }
    }

    var isRenewed: Bool {
        get { flags & Flag.renewed != 0 }
        set { flags = newValue ? flags | Flag.renewed : flags & ~Flag.renewed }
    }

    /// How often the object was used lately, 0 to 3. More is not counted.
    var uses: UInt8 {
        get { UInt8((flags & Flag.usesMask) >> Flag.usesShift) }
        set { flags = flags & ~Flag.usesMask | UInt16(min(newValue, 3)) << Flag.usesShift }
    }
}
