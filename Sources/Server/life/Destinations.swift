import Access
import Message

/// A host that a request names, parsed: the form that rules match, and its text.
final class Destination {
    let host: DestinationHost
    /// A name in lower case or a canonical address, without brackets.
    let text: String

    init(_ host: DestinationHost) {
        self.host = host
        text = host.description
    }
}

private func areEqual(_ a: [UInt8], _ b: borrowing Span<UInt8>) -> Bool {
    Message.areEqual(a.span, 0..<a.count, b, 0..<b.count)
}

/// Parsed hosts of recent requests by their bytes, because successive requests name the same few.
///
/// A table of fixed size, in which a host replaces another one with the same hash. So hosts cannot fill memory.
final class Destinations {
    private struct Entry {
        var bytes: [UInt8]
        var destination: Destination
    }
    /// Who leaves the table has nothing to say about it: the unchecked access is exclusive.
    @exclusivity(unchecked) private var entries = [Entry?](repeating: nil, count: 256)
    /// The entry that was used last. Most requests name the same host as the one before.
    @exclusivity(unchecked) private var recent: Entry?

    /// Returns nil for a host that is neither a name nor an address.
    func destination(_ bytes: borrowing Span<UInt8>) -> Destination? {
        if let entry = unsafe recent, areEqual(entry.bytes, bytes) { return entry.destination }
        guard let entry = entry(for: bytes) else { return nil }
        unsafe recent = entry
        return entry.destination
    }

    private func entry(for bytes: borrowing Span<UInt8>) -> Entry? {
        var hash: UInt32 = 2_166_136_261
        for index in bytes.indices { hash = (hash ^ UInt32(bytes[index])) &* 16_777_619 }
        let index = Int((hash ^ hash >> 16) & 255)
        if let entry = unsafe entries[index], areEqual(entry.bytes, bytes) { return entry }
        let copy = unsafe bytes.withUnsafeBufferPointer { unsafe Array($0) }
        guard let host = DestinationHost(copy[...]) else { return nil }
        let entry = Entry(bytes: copy, destination: Destination(host))
        unsafe entries[index] = entry
        return entry
    }
}
