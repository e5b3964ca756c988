import Access
import Message

/// A host that requests name, worked out once: what the rules see, and its text.
final class Destination {
    let host: DestinationHost
    /// Lower-case name or canonical address, without brackets.
    let text: String

    init(_ host: DestinationHost) {
        self.host = host
        text = host.description
    }
}

/// Hosts that were named lately, by the bytes that named them: requests come in runs for the same few.
///
/// A table of fixed size in which a newcomer takes the place of whoever hashes alike.
struct Destinations {
    private struct Entry {
        var bytes: [UInt8]
        var destination: Destination
    }
    private var entries = [Entry?](repeating: nil, count: 256)

    /// Nil for a host that is neither a name nor an address (400).
    mutating func destination(_ bytes: ArraySlice<UInt8>) -> Destination? {
        var hash: UInt32 = 2_166_136_261
        for byte in bytes { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        let index = Int((hash ^ hash >> 16) & 255)
        if let entry = entries[index], entry.bytes.elementsEqual(bytes) { return entry.destination }
        guard let host = DestinationHost(bytes) else { return nil }
        let destination = Destination(host)
        entries[index] = Entry(bytes: Array(bytes), destination: destination)
        return destination
    }
}
