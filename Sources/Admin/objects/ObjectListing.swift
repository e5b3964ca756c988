import Caching
import EventLoop
import Message
import Server
import Storage

/// Walks through the zones, one page of stored responses at a time. Holds no lock between two pages.
final class ObjectListing: Sendable {
    /// The number of records that one page looks at.
    private static let recordsPerPage = 256

    private struct Place {
        var zone = 0
        /// Records that the tier returned and that are still to be looked at.
        var records: ArraySlice<StoredRecord> = []
        /// Where the walk through memory goes on.
        var cursor: RecordCursor?
        var isMemoryDone = false
        /// Where the walk through the disk goes on.
        var listingCursor: ListingCursor?
        var isZoneDone = false
    }

    private let zones: [(name: String, tier: Tiers)]
    private let hash: @Sendable ([UInt8]) -> StorageKey
    private let matcher: SelectionMatcher
    private let now: WallTime
    private let place = Locked(Place())

    init(
        _ selection: Selection, zones: [(name: String, tier: Tiers)], now: WallTime,
        keys: (TargetURI) -> [[UInt8]] = { [$0.normalised] }, hash: @escaping @Sendable ([UInt8]) -> StorageKey
    ) {
        self.hash = hash
        matcher = SelectionMatcher(selection, now: now, keys: keys)
        self.zones = zones.filter { [matcher] in matcher.mayBe(inZone: $0.name) }
        self.now = now
    }

    /// Returns nil at the end.
    func nextPage() -> [ObjectDescription]? {
        place.withLock { place in
            while place.records.isEmpty {
                if place.isZoneDone {
                    place = Place(zone: place.zone + 1)
                    continue
                }
                guard place.zone < zones.count else { return nil }
                if place.isMemoryDone { return diskPage(&place) }
                let tier = zones[place.zone].tier
                let (records, next) = tier.memory.page(after: place.cursor)
                (place.records, place.cursor, place.isMemoryDone) = (records[...], next, next == nil)
                // From here on, responses that leave memory are found in the index of the disk.
                if place.isMemoryDone { _ = tier.backStore?.flush() }
            }
            let page = place.records.prefix(Self.recordsPerPage)
            place.records = place.records.dropFirst(page.count)
            let zone = zones[place.zone]
            return page.compactMap { record in
                guard let record = record as? StoredResponse, record.body.state != .failed, matcher.matches(record)
                else { return nil }
                return ObjectDescription(record, zone: zone.name, tier: zone.tier.memory, now: now)
            }
        }
    }

    private func diskPage(_ place: inout Place) -> [ObjectDescription] {
        let zone = zones[place.zone]
        let page =
            zone.tier.page(
                after: place.listingCursor, in: matcher.listingRange, tag: matcher.tag, limit: Self.recordsPerPage)
            ?? ListingPage([], next: nil)
        (place.listingCursor, place.isZoneDone) = (page.next, page.next == nil)
        return page.responses.filter { matcher.matches($0) && !zone.tier.isInMemory($0, hash($0.keyBytes)) }.map {
            ObjectDescription($0, zone: zone.name, now: now)
        }
    }
}

extension ObjectDescription {
    /// Responses that are on the disk and not in memory.
    init(_ entry: ListedResponse, zone: String, now: WallTime) {
        let attributes = entry.attributes
        self.init(key: entry.keyBytes, addresses: attributes.addresses)
        status = attributes.status
        bytes = entry.bodyBytes
        contentType = attributes.mediaType.isEmpty ? nil : String(decoding: attributes.mediaType, as: UTF8.self)
        ageSeconds = max(0, now.secondsSinceEpoch - attributes.storedAt)
        ttlSeconds = attributes.expiresAt - now.secondsSinceEpoch
        state = entry.isComplete ? (ttlSeconds > 0 ? .fresh : .stale) : .partial
        self.zone = zone
        storage = attributes.retention == .pinned ? .pinned : .permanent
    }

    init(_ record: StoredResponse, zone: String, tier: MemoryTier, now: WallTime) {
        self.init(key: record.keyBytes, addresses: record.addresses.list)
        status = record.cached.status
        bytes = record.body.length
        contentType = mediaType(record.fields)
        ageSeconds = record.cached.currentAge(now).count
        ttlSeconds = record.cached.remainingLifetime(now).count
        state = ObjectDescription.state(record, now)
        variants = unsafe record.keyBytes.withUnsafeBytes { unsafe tier.lookup(record.key, $0).count }
        if case .names(let names) = record.cached.vary {
            vary = names.map { String(decoding: $0.spelling, as: UTF8.self) }
        }
        hits = UInt64(record.hits)
        self.zone = zone
        storage = record.storage
    }

    private static func state(_ record: StoredResponse, _ now: WallTime) -> State {
        if record.body.state == .growing { return .growing }
        if record.body.state == .partial { return .partial }
        return record.cached.isFresh(now) && !record.cached.terms.noCache ? .fresh : .stale
    }
}
