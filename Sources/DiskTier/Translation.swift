import Disk
import Storage

// The nouns of Storage and their counterparts in Disk.

extension StorageKey {
    /// The hash of the key in the index of the disk store. Valid in this process only.
    var folded: UInt64 { high ^ low }
}

extension StoredID {
    init(_ id: ObjectID) { self.init(rawValue: id.rawValue) }
}

extension ObjectID {
    init(_ id: StoredID) { self.init(rawValue: id.rawValue) }
}

extension StoredPlace {
    init(_ place: Place) {
        let form: Form =
            switch place.kind {
            case .packed: .whole
            case .large: .blocks
            }
        self.init(
            form: form, bodyBytes: Int(clamping: place.bodyLength), bytes: Int(clamping: place.recordLength),
            location: Location(place.offset, UInt64(place.segment) << 32 | UInt64(place.headLength)))
    }
}

extension Place {
    init(_ place: StoredPlace) {
        let kind: Kind =
            switch place.form {
            case .whole: .packed
            case .blocks: .large
            }
        self.init(
            kind: kind, segment: UInt32(place.location.second >> 32), offset: place.location.first,
            headLength: UInt32(truncatingIfNeeded: place.location.second), bodyLength: UInt64(place.bodyBytes))
    }
}

extension Retention {
    init(_ storageClass: StorageClass) {
        switch storageClass {
        case .permanent: self = .permanent
        case .pinned: self = .pinned
        }
    }
}

extension StorageClass {
    init(_ retention: Retention) {
        switch retention {
        case .permanent: self = .permanent
        case .pinned: self = .pinned
        }
    }
}

extension StoredAttributes {
    init(_ attributes: ObjectAttributes) {
        self.init(
            retention: Retention(attributes.storageClass), status: attributes.status, storedAt: attributes.storedAt,
            expiresAt: attributes.expiresAt, mediaType: attributes.mediaType,
            tags: attributes.tags.filter { !AddressTag.isOne($0) }, addresses: attributes.addresses)
    }
}

extension ObjectAttributes {
    init(_ attributes: StoredAttributes) {
        self.init(
            storageClass: StorageClass(attributes.retention), status: attributes.status,
            storedAt: attributes.storedAt, expiresAt: attributes.expiresAt, mediaType: attributes.mediaType,
            tags: attributes.tags + attributes.addresses.map { AddressTag.tag(of: $0) })
    }
}

extension StoredCopy {
    init(_ head: StoredHead) {
        self.init(
            id: StoredID(head.id), place: StoredPlace(head.place), keyBytes: head.key,
            attributes: StoredAttributes(head.attributes), head: head.head, checksums: head.checksums)
    }
}

extension StoringOutcome {
    init(_ outcome: DiskStore.StoreOutcome) {
        switch outcome {
        case .taken: self = .accepted
        case .busy: self = .busy
        case .off: self = .off
        case .tooLarge: self = .tooLarge
        case .pinnedQuotaFull: self = .pinnedQuotaFull
        }
    }
}

extension BackStoreRead {
    init(_ read: DiskRead) {
        switch read {
        case .done: self = .done
        case .wouldBlock: self = .wouldBlock
        case .damaged: self = .damaged
        case .failed(let code): self = .failed(errno: code)
        }
    }
}

extension BackStoreReadError {
    init(_ error: DiskReadError) {
        switch error {
        case .wouldBlock: self = .wouldBlock
        case .damaged: self = .damaged
        case .failed(let code): self = .failed(errno: code)
        }
    }
}

extension ListedResponse {
    init(_ entry: BookEntry) {
        self.init(
            id: StoredID(entry.id), keyBytes: entry.key, attributes: StoredAttributes(entry.attributes),
            bodyBytes: Int(clamping: entry.place.bodyLength), bytes: Int(clamping: entry.place.recordLength),
            isComplete: entry.isComplete)
    }
}

extension BookRange {
    init(_ range: ListingRange) {
        switch range {
        case .all: self = .all
        case .keyPrefix(let prefix): self = .keyPrefix(prefix)
        case .host(let host): self = .host(host)
        case .below(let name): self = .below(name)
        }
    }
}

extension BackStoreEvent {
    init(_ event: DiskEvent) {
        switch event.level {
        case .info: self.init(.info, event.text)
        case .warning: self.init(.warning, event.text)
        case .error: self.init(.error, event.text)
        }
    }
}

extension BackStoreStatistics {
    init(_ statistics: DiskStatistics) {
        self.init()
        sizeBytes = statistics.sizeBytes
        usedBytes = statistics.usedBytes
        liveBytes = statistics.liveBytes
        pinnedLimitBytes = statistics.pinnedLimitBytes
        pinnedBytes = statistics.pinnedBytes
        objectCount = statistics.objectCount
        largeCount = statistics.largeCount
        segmentCount = statistics.segmentCount
        bookBytes = statistics.bookBytes
        waitingBytes = statistics.waitingBytes
        storedObjects = statistics.storedObjects
        storedBytes = statistics.storedBytes
        refusedBusy = statistics.refusedBusy
        refusedPinned = statistics.refusedPinned
        droppedObjects = statistics.droppedObjects
        evictedObjects = statistics.evictedObjects
        evictedBytes = statistics.evictedBytes
        movedBytes = statistics.movedBytes
        damagedObjects = statistics.damagedObjects
        readErrors = statistics.readErrors
        writeErrors = statistics.writeErrors
        commits = statistics.commits
    }
}

extension BackStoreRefusal {
    init(_ refusal: DiskRefusal) {
        switch refusal {
        case .inUse(let path): self.init(path: path, isInUse: true, refusal.description)
        case .foreign(let path), .unknownVersion(let path, _), .notAllowed(let path, _), .openToOthers(let path, _),
            .failed(let path, _), .tooSmall(let path, _):
            self.init(path: path, isInUse: false, refusal.description)
        }
    }
}
