import Caching
import DiskTier
import EventLoop
import Foundation
import Message
import Server
import Storage
import Testing

@testable import Admin

/// A store with a few responses of a shared cache, filled by hand.
private struct Larder {
    let tier: Tiers
    static let now = WallTime(secondsSinceEpoch: 1_800_000_000)

    init(_ backStore: (any BackStore)? = nil) {
        tier = Tiers(
            memory: MemoryTier(budget: 8 << 20, objectMax: 1 << 20, variantsPerKeyMax: 8), backStore: backStore,
            format: StoredResponse.format)
    }

    static func hash(_ key: [UInt8]) -> StorageKey {
        let value = UInt64(bitPattern: Int64(key.hashValue))
        return StorageKey(high: value, low: value &* 31)
    }

    /// - Parameter ago: seconds since it came.
    @discardableResult
    func store(
        _ url: String, _ lines: [(String, String)] = [], ago: Int64 = 0, isGrowing: Bool = false,
        addresses: [String] = [], request: Fields = Fields()
    ) throws -> StoredResponse {
        var fields = Fields()
        for (name, value) in [("Cache-Control", "max-age=600"), ("ETag", "\"a\"")] + lines {
            fields.append(FieldName(spelling: name.utf8), spelling: name.utf8, value.utf8)
        }
        let time = WallTime(secondsSinceEpoch: Larder.now.secondsSinceEpoch - ago)
        let cached = CachedResponse(
            status: 200, fields: fields, requestTime: time, responseTime: time, policy: CachePolicy())
        let body = try #require(tier.makeBody(expectedLength: 3))
        let key = Larder.hash(Array(url.utf8))
        let record = StoredResponse(
            key: key, keyBytes: Array(url.utf8), cached: cached, fields: fields,
            secondaryKey: cached.vary == .none ? nil : SecondaryKey(cached.vary, request: request), body: body,
            contentLength: 3, storage: tier.backStore == nil ? .session : .permanent,
            addresses: StoredAddresses(addresses.map { Array($0.utf8) }))
        try #require(tier.insert(record))
        if !isGrowing {
            let appended = unsafe Array("abc".utf8).withUnsafeBytes { unsafe body.append($0) }
            try #require(appended == .appended && body.finish())
        }
        return record
    }

    func matcher(_ change: (inout Selection) -> Void) -> SelectionMatcher {
        var selection = Selection()
        change(&selection)
        return SelectionMatcher(selection, now: Larder.now)
    }

    func lookUp(_ record: StoredResponse) -> [StoredRecord] {
        unsafe record.keyBytes.withUnsafeBytes { unsafe tier.lookup(record.key, $0) }
    }
}

@Suite("Selections")
struct SelectionTests {
    @Test(arguments: [.min, -1 << 53 - 1, -1, 0, 1 << 53, .max] as [Int64])
    func `a stored response of any time has an age`(_ time: Int64) {
        let entry = ListedResponse(
            id: StoredID(rawValue: 1), keyBytes: Array("http://example.org/".utf8),
            attributes: StoredAttributes(retention: .permanent, status: 200, storedAt: time, expiresAt: time),
            bodyBytes: 1, bytes: 1, isComplete: true)
        let larder = Larder()
        for seconds in [.min, 0, .max] as [Int64] {
            #expect(
                larder.matcher { $0.olderThan = Seconds(seconds) }.matches(entry)
                    == (seconds <= 0 && time <= 0 || seconds == .min))
        }
        let listed = ObjectDescription(entry, zone: "z", now: Larder.now)
        #expect(listed.ageSeconds >= 0 && (listed.ttlSeconds > 0) == (time > 0))
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var url = "http://example.org/a/b"
        var lines: [(String, String)] = []
        var ago: Int64 = 0
        var condition: SelectionKey
        var value: String
        var isMeant: Bool
        var testDescription: String { "\(condition.rawValue)=\(value) of \(url) \(lines) \(ago)" }
    }

    static let rows: [Row] = [
        Row(condition: .url, value: "http://example.org/a/b", isMeant: true),
        Row(condition: .url, value: "HTTP://EXAMPLE.org:80/a/b", isMeant: true),
        Row(condition: .url, value: "http://example.org/a/b/", isMeant: false),
        Row(condition: .url, value: "http://example.org/a/B", isMeant: false),
        Row(condition: .prefix, value: "http://example.org/a/", isMeant: true),
        Row(condition: .prefix, value: "http://Example.org/a", isMeant: true),
        Row(condition: .prefix, value: "http://example", isMeant: true),
        Row(condition: .prefix, value: "https://example.org/", isMeant: false),
        Row(url: "http://example.organic/", condition: .prefix, value: "http://example.org/", isMeant: false),
        Row(url: "http://example.organic/", condition: .prefix, value: "http://example.org", isMeant: true),
        Row(condition: .host, value: "Example.org", isMeant: true),
        Row(condition: .host, value: "Example.org.", isMeant: true),
        Row(condition: .host, value: "*.org.", isMeant: true),
        Row(url: "https://example.org:8443/", condition: .host, value: "example.org", isMeant: true),
        Row(url: "http://[2001:db8::1]:81/", condition: .host, value: "2001:DB8::1", isMeant: true),
        Row(url: "http://[2001:db8::1]/", condition: .host, value: "[2001:db8::1]", isMeant: true),
        Row(condition: .host, value: "example.com", isMeant: false),
        Row(condition: .host, value: "*.example.org", isMeant: false),
        Row(url: "http://a.b.example.org/", condition: .host, value: "*.example.org", isMeant: true),
        Row(url: "http://notexample.org/", condition: .host, value: "*.example.org", isMeant: false),
        Row(lines: [("Surrogate-Key", "a news b")], condition: .tag, value: "news", isMeant: true),
        Row(lines: [("Surrogate-Key", "a,news b")], condition: .tag, value: "news", isMeant: false),
        Row(lines: [("Surrogate-Key", "a"), ("surrogate-key", "news")], condition: .tag, value: "news", isMeant: true),
        Row(lines: [("Cache-Tag", "a, news,b")], condition: .tag, value: "news", isMeant: true),
        Row(lines: [("cache-tag", "a"), ("CACHE-TAG", "news")], condition: .tag, value: "news", isMeant: true),
        Row(lines: [("Cache-Tag", "newsroom, News")], condition: .tag, value: "news", isMeant: false),
        Row(lines: [("X-Tag", "news")], condition: .tag, value: "news", isMeant: false),
        Row(lines: [("Content-Type", "Text/HTML; charset=utf-8")], condition: .type, value: "text/html", isMeant: true),
        Row(lines: [("Content-Type", "text/html5")], condition: .type, value: "text/html", isMeant: false),
        Row(lines: [("Content-Type", "image/png")], condition: .type, value: "image/*", isMeant: true),
        Row(lines: [("Content-Type", "images/png")], condition: .type, value: "image/*", isMeant: false),
        Row(condition: .type, value: "text/html", isMeant: false),
        Row(condition: .storage, value: "session", isMeant: true),
        Row(condition: .storage, value: "pinned", isMeant: false),
        Row(ago: 7199, condition: .olderThan, value: "2h", isMeant: false),
        Row(ago: 7200, condition: .olderThan, value: "2h", isMeant: true),
    ]
    @Test(arguments: rows) func `a condition holds or does not`(_ row: Row) throws {
        let larder = Larder()
        let record = try larder.store(row.url, row.lines, ago: row.ago)
        var selection = Selection()
        try selection.set(row.condition, row.value)
        #expect(SelectionMatcher(selection, now: Larder.now).matches(record) == row.isMeant)
    }

    static let addressed: [(condition: SelectionKey, value: String, isMeant: Bool)] = [
        (.host, "m1.example", true), (.host, "m2.example", true), (.host, "first.example", false),
        (.host, "*.example", true), (.prefix, "http://m1.example/debian/", true),
        (.prefix, "http://m2.example/ubuntu/", true), (.prefix, "http://m2.example/debian/", false),
        (.prefix, "http://m", true), (.prefix, "http://first.example/", false),
        (.url, "http://m2.example/ubuntu/by-hash/1", true), (.url, "http://m2.example/ubuntu/by-hash/2", false),
    ]
    @Test(arguments: addressed.indices) func `what has its key by a digest is selected by its addresses`(
        _ index: Int
    ) throws {
        let row = Self.addressed[index]
        let record = try Larder().store(
            "http://first.example/sha256:1#digest",
            addresses: ["http://m1.example/debian/by-hash/1", "http://m2.example/ubuntu/by-hash/1"])
        var selection = Selection()
        try selection.set(row.condition, row.value)
        #expect(SelectionMatcher(selection, now: Larder.now).matches(record) == row.isMeant, "\(row)")
    }

    @Test func `prefix and host select it by the same address`() throws {
        let larder = Larder()
        let record = try larder.store("http://f/sha256:1#digest", addresses: ["http://a/x/1", "http://b/y/1"])
        for (prefix, host, isMeant) in [("http://a/x", "a", true), ("http://a/x", "b", false)] {
            #expect(larder.matcher { ($0.prefix, $0.host) = (prefix, host) }.matches(record) == isMeant)
        }
    }

    @Test func `all conditions must hold`() throws {
        let larder = Larder()
        let record = try larder.store("http://a/x", [("Content-Type", "text/html"), ("Cache-Tag", "t")])
        #expect(larder.matcher { _ in }.matches(record))
        let both = larder.matcher { ($0.host, $0.tag) = ("a", "t") }
        #expect(both.matches(record))
        for change in [{ $0.host = "b" }, { $0.tag = "u" }, { $0.type = "text/css" }] as [(inout Selection) -> Void] {
            #expect(
                !larder.matcher {
                    ($0.host, $0.tag, $0.type) = ("a", "t", "text/html")
                    change(&$0)
                }.matches(record))
        }
    }

    @Test func `a zone is told by its name`() {
        let larder = Larder()
        #expect(larder.matcher { _ in }.mayBe(inZone: "default"))
        #expect(larder.matcher { $0.zone = "big" }.mayBe(inZone: "big"))
        #expect(!larder.matcher { $0.zone = "big" }.mayBe(inZone: "default"))
    }
}

@Suite("Purging")
struct PurgingTests {
    private func run(
        _ larder: Larder, _ kind: PurgeRequest.Kind = .hard, dryRun: Bool = false, _ change: (inout Selection) -> Void
    ) -> Int {
        var selection = Selection()
        change(&selection)
        let request = PurgeRequest(selection, kind: kind, dryRun: dryRun)
        let result = purge(
            request, SelectionMatcher(selection, now: Larder.now), in: larder.tier, ResponseHomes([]),
            key: Larder.hash)
        #expect((result.bytes > 0) == (result.records > 0))
        return result.records
    }

    @Test func `hard takes out what is meant, all variants of it, and nothing else`() throws {
        let larder = Larder()
        var (gzip, br) = (Fields(), Fields())
        gzip.append(.acceptEncoding, "gzip")
        br.append(.acceptEncoding, "br")
        let vary = [("Vary", "Accept-Encoding")]
        try larder.store("http://a/x", vary, request: gzip)
        try larder.store("http://a/x", vary, request: br)
        let other = try larder.store("http://a/y")
        #expect(run(larder, dryRun: true) { $0.url = "http://a/x" } == 2)
        #expect(larder.tier.memory.statistics.recordCount == 3)
        #expect(run(larder) { $0.url = "http://a/x" } == 2)
        #expect(larder.tier.memory.statistics.recordCount == 1)
        #expect(larder.lookUp(other).count == 1)
    }

    private func openDisk() throws -> (DiskBackStore, path: String) {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("larder-purge-\(UUID().uuidString)")
            .path
        let settings = BackStoreSettings(path: path, size: 256 << 20, pinned: 0, key: { Larder.hash($0) })
        return (try DiskBackStore.open(settings), path)
    }

    @Test func `what is in memory and on the disk is one response`() throws {
        let (disk, path) = try openDisk()
        defer {
            disk.close()
            try? FileManager.default.removeItem(atPath: path)
        }
        let larder = Larder(disk)
        for url in ["http://a/x", "http://a/y"] { larder.tier.persist(try larder.store(url)) }
        #expect(disk.flush())
        larder.tier.clearMemory()
        let z = try larder.store("http://a/z")
        larder.tier.persist(z)
        #expect(disk.flush() && disk.statistics.objectCount == 3)
        #expect(run(larder, dryRun: true) { $0.url = "http://a/z" } == 1)
        #expect(run(larder) { $0.url = "http://a/z" } == 1)
        #expect(run(larder, dryRun: true) { $0.host = "a" } == 2)
        #expect(run(larder) { $0.host = "a" } == 2)
        #expect(run(larder) { $0.host = "a" } == 0)
        #expect(disk.statistics.objectCount == 0)
    }

    @Test func `what has its key by a digest is one response on memory and disk, found by each address`() throws {
        let (disk, path) = try openDisk()
        defer {
            disk.close()
            try? FileManager.default.removeItem(atPath: path)
        }
        let larder = Larder(disk)
        let key = "http://first.example/sha256:1#digest"
        let addresses = ["http://m1.example/d/1", "http://m2.example/d/1"]
        larder.tier.persist(try larder.store(key, addresses: addresses))
        #expect(disk.flush())
        for isInMemory in [true, false] {
            if !isInMemory { larder.tier.clearMemory() }
            for host in ["m1.example", "m2.example", "*.example"] {
                #expect(run(larder, dryRun: true) { $0.host = host } == 1, "\(host)")
                var selection = Selection()
                selection.host = host
                let listing = ObjectListing(
                    selection, zones: [("default", larder.tier)], now: Larder.now, hash: Larder.hash)
                var found: [ObjectDescription] = []
                while let page = listing.nextPage() { found += page }
                #expect(found.map(\.addresses) == [addresses], "\(host) \(isInMemory)")
            }
            #expect(run(larder, dryRun: true) { $0.host = "first.example" } == 0)
        }
        // It comes back from the disk with its addresses.
        #expect(run(larder, .soft) { $0.prefix = "http://m1.example/d/" } == 1)
        #expect(disk.flush())
        larder.tier.clearMemory()
        #expect(run(larder) { $0.prefix = "http://m2.example/" } == 1)
        #expect(disk.flush() && disk.statistics.objectCount == 0)
    }

    @Test func `a URL is found under the key that the rules make of it, and as it is`() {
        var selection = Selection()
        selection.url = "http://a/x?y"
        let matcher = SelectionMatcher(selection, now: Larder.now, keys: { _ in [Array("http://a/x".utf8)] })
        for (key, isMeant) in [
            ("http://a/x", true), ("http://a/x?y", true), ("http://a/x?z", false), ("http://a/x#signed", true),
            ("http://a/x?y#credential-1", true), ("http://a/xy#signed", false),
        ] {
            #expect(matcher.matches(uri: Array(key.utf8)) == isMeant, "\(key)")
        }
    }

    @Test func `soft leaves it there, stale from now on, with its validators and its body`() throws {
        let larder = Larder()
        let record = try larder.store("http://a/x")
        let other = try larder.store("http://a/y")
        #expect(run(larder, .soft, dryRun: true) { $0.url = "http://a/x" } == 1)
        #expect(larder.lookUp(record).first === record)
        #expect(run(larder, .soft) { $0.url = "http://a/x" } == 1)
        let marked = try #require(larder.lookUp(record).first as? StoredResponse)
        #expect(record.cached.isFresh(Larder.now) && !marked.cached.isFresh(Larder.now))
        #expect(marked.cached.eTag == record.cached.eTag && marked.body === record.body && marked.head == record.head)
        let request = CacheRequest(method: .get, fields: Fields())
        #expect(reuse(of: marked.cached, for: request, now: Larder.now) == .validate(.outdated))
        #expect(mayServeStaleOnError(marked.cached, for: request, now: Larder.now))
        #expect(larder.lookUp(other).first === other)
    }

    static let directives: [(value: String, reuse: Reuse, mayServeStale: Bool)] = [
        ("max-age=600, stale-while-revalidate=60", .validate(.outdated), true),
        ("s-maxage=600", .validate(.outdated), false), ("max-age=600, must-revalidate", .validate(.outdated), false),
        ("max-age=600, stale-if-error=0", .validate(.outdated), false),
        // It has no lifetime, so it may be for one client.
        ("public", .validate(.outdated), false), ("public, stale-if-error=60", .validate(.outdated), true),
    ]
    @Test(arguments: directives) func `after a soft purge only an origin that fails lets it be served stale`(
        _ row: (value: String, reuse: Reuse, mayServeStale: Bool)
    ) throws {
        let larder = Larder()
        var fields = Fields()
        fields.append(.cacheControl, row.value)
        fields.append(.eTag, "\"a\"")
        let cached = CachedResponse(
            status: 200, fields: fields, requestTime: Larder.now, responseTime: Larder.now, policy: CachePolicy())
        let body = try #require(larder.tier.makeBody(expectedLength: 0))
        let record = StoredResponse(
            key: StorageKey(high: 1, low: 1), keyBytes: Array("http://a/".utf8), cached: cached, fields: fields,
            secondaryKey: nil, body: body, contentLength: 0)
        let marked = record.outdated
        let request = CacheRequest(method: .get, fields: Fields())
        #expect(reuse(of: marked.cached, for: request, now: Larder.now) == row.reuse)
        #expect(mayServeStaleOnError(marked.cached, for: request, now: Larder.now) == row.mayServeStale)
    }

    @Test(arguments: [PurgeRequest.Kind.hard, .soft])
    func `what is still arriving goes, and does not come back when it is whole`(_ kind: PurgeRequest.Kind) throws {
        let larder = Larder()
        let record = try larder.store("http://a/x", isGrowing: true)
        #expect(run(larder, kind) { $0.host = "a" } == 1)
        #expect(larder.lookUp(record).isEmpty)
        let appended = unsafe Array("abc".utf8).withUnsafeBytes { unsafe record.body.append($0) }
        #expect(appended == .appended && record.body.finish())
        #expect(larder.lookUp(record).isEmpty)
    }
}

@Suite("Listing")
struct ObjectListingTests {
    private func list(_ larder: Larder, _ change: (inout Selection) -> Void = { _ in }) -> [ObjectDescription] {
        var selection = Selection()
        change(&selection)
        let listing = ObjectListing(selection, zones: [("default", larder.tier)], now: Larder.now, hash: Larder.hash)
        var result: [ObjectDescription] = []
        while let page = listing.nextPage() { result += page }
        return result.sorted { $0.url < $1.url }
    }

    @Test func `each response is told of as it is`() throws {
        let larder = Larder()
        try larder.store("http://a/1", [("Content-Type", "Text/Plain; x=y"), ("Vary", "Accept, X-Y")], ago: 100)
        try larder.store("http://a/2", ago: 700)
        try larder.store("http://a/3", isGrowing: true)
        try larder.store("http://a/4", [("Cache-Control", "no-cache")])
        let objects = list(larder)
        #expect(objects.map(\.state) == [.fresh, .stale, .growing, .stale])
        #expect(objects.map(\.ageSeconds) == [100, 700, 0, 0])
        #expect(objects.map(\.ttlSeconds) == [500, -100, 600, 600])
        #expect(objects.map(\.bytes) == [3, 3, 0, 3])
        #expect(objects.map(\.contentType) == ["text/plain", nil, nil, nil])
        #expect(objects.map(\.vary) == [["accept", "x-y"], [], [], []])
        #expect(objects.allSatisfy { $0.zone == "default" && $0.status == 200 && $0.variants == 1 })
    }

    @Test func `variants are counted`() throws {
        let larder = Larder()
        for value in ["a", "b", "c"] {
            var request = Fields()
            request.append(.accept, value)
            try larder.store("http://a/1", [("Vary", "Accept")], request: request)
        }
        #expect(list(larder).map(\.variants) == [3, 3, 3])
    }

    @Test func `many pages give each once, and only what is meant`() throws {
        let larder = Larder()
        for number in 0..<1000 { try larder.store("http://\(number % 2 == 0 ? "a" : "b")/\(number)") }
        #expect(Set(list(larder).map(\.url)).count == 1000)
        #expect(list(larder).count == 1000)
        #expect(list(larder) { $0.host = "b" }.count == 500)
        #expect(list(larder) { $0.zone = "elsewhere" }.isEmpty)
        #expect(list(Larder()).isEmpty)
    }
}
