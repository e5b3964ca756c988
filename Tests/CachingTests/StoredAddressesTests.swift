import Testing

@testable import Caching

@Suite("Addresses of a response whose key is that of a digest") struct StoredAddressesTests {
    private static func uri(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `each is there once, the oldest first`() {
        var addresses = StoredAddresses()
        #expect(addresses.isEmpty)
        for (uri, isNew) in [("http://a/1", true), ("http://b/1", true), ("http://a/1", false), ("", false)] {
            #expect(addresses.canNote(Self.uri(uri)[...]) == isNew)
            let isNoted = addresses.note(Self.uri(uri)[...])
            #expect(isNoted == isNew, "\(uri)")
        }
        #expect(addresses.list == [Self.uri("http://a/1"), Self.uri("http://b/1")])
    }

    @Test func `once there is no more room, none is noted and none leaves`() {
        let all = (0...StoredAddresses.countMax).map { Self.uri("http://a/\($0)") }
        var addresses = StoredAddresses(all)
        #expect(addresses.list == Array(all.dropLast()))
        let isNoted = addresses.note(Self.uri("http://b/")[...])
        #expect(!isNoted)
        #expect(addresses.list == Array(all.dropLast()))
    }

    @Test func `a long one is known by its beginning, and may begin with every longer prefix`() {
        let long = Self.uri("http://a/") + Array(repeating: 0x61, count: 300)
        var addresses = StoredAddresses([long])
        let kept = Array(long.prefix(StoredAddresses.addressBytesMax))
        #expect(addresses.list == [kept])
        let isNoted = addresses.note((long + [0x62])[...])
        #expect(!isNoted)
        #expect(StoredAddresses.begins(kept, with: long) && StoredAddresses.begins(kept, with: Self.uri("http://a/a")))
        #expect(!StoredAddresses.begins(kept, with: Self.uri("http://b/")))
        #expect(!StoredAddresses.begins(Self.uri("http://a/"), with: Self.uri("http://a/b")))
    }
}
