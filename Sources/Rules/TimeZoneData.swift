/// What local time is ahead of UTC in a time zone, as a file of the time zone database says it (TZif, RFC 8536, versions 1 to 4).
package struct TimeZoneData: Sendable, Equatable {
    /// From when on another offset holds, in seconds since 1970, ascending.
    private var transitions: [Int64] = []
    /// The offset from each transition on, in seconds.
    private var offsets: [Int64] = []
    /// Before the first transition.
    private var firstOffset: Int64 = 0
    /// From the last transition on. Nil: its offset holds for ever.
    private var footer: TimeZoneRule?

    package enum Fault: Error, CustomStringConvertible {
        case noZoneFile, version, cutOff, counts, offset, order, leapSeconds, footer

        package var description: String {
            switch self {
            case .noZoneFile: "it does not begin with TZif"
            case .version: "its version is not known"
            case .cutOff: "it is cut off"
            case .counts: "its counts contradict each other"
            case .offset: "an offset is more than a day"
            case .order: "its transitions are not in order"
            case .leapSeconds: "it counts leap seconds; take the zone outside of right/"
            case .footer: "its last line is no TZ string"
            }
        }
    }

    /// The largest files of the database have 4 KiB.
    package static let bytesMax = 1 << 20

    package init(_ bytes: [UInt8]) throws(Fault) {
        var reader = ZoneReader(bytes)
        let first = try reader.header()
        if first.version == 1 {
            try readBlock(&reader, first, timeSize: 4)
            return
        }
        // The block with short times is for readers of version 1.
        try reader.skip(first.blockSize(timeSize: 4))
        let second = try reader.header()
        try readBlock(&reader, second, timeSize: 8)
        footer = try reader.footer()
    }

    /// What local time is ahead of UTC at a moment, in seconds.
    ///
    /// - Parameter seconds: since 1970-01-01 00:00 UTC.
    package func offset(at seconds: Int64) -> Int64 {
        guard let last = transitions.last else { return footer?.offset(at: seconds) ?? firstOffset }
        if seconds >= last { return footer?.offset(at: seconds) ?? offsets[offsets.count - 1] }
        // The first transition behind the moment.
        var (low, high) = (0, transitions.count)
        while low < high {
            let middle = (low + high) / 2
            if transitions[middle] > seconds { high = middle } else { low = middle + 1 }
        }
        return low == 0 ? firstOffset : offsets[low - 1]
    }

    private mutating func readBlock(
        _ reader: inout ZoneReader, _ counts: ZoneReader.Header, timeSize: Int
    ) throws(Fault) {
        guard counts.types > 0, counts.types <= 256 else { throw .counts }
        guard counts.leapSeconds == 0 else { throw .leapSeconds }
        let times = try reader.take(counts.times * timeSize)
        let indices = try reader.take(counts.times)
        let types = try reader.take(counts.types * 6)
        try reader.skip(counts.characters + counts.standardFlags + counts.utcFlags)
        var known: [Int64] = []
        for index in 0..<counts.types {
            let offset = Int64(Int32(truncatingIfNeeded: number(types.dropFirst(index * 6).prefix(4))))
            guard abs(offset) <= TimeZoneData.offsetMax else { throw .offset }
            known.append(offset)
        }
        firstOffset = known[0]
        for index in 0..<counts.times {
            let bits = number(times.dropFirst(index * timeSize).prefix(timeSize))
            let time = timeSize == 4 ? Int64(Int32(truncatingIfNeeded: bits)) : bits
            guard transitions.last.map({ $0 < time }) ?? true else { throw .order }
            let type = Int(indices[indices.startIndex + index])
            guard type < known.count else { throw .counts }
            transitions.append(time)
            offsets.append(known[type])
        }
    }

    /// RFC 8536 §3.2: from -25 hours to 26 hours.
    static let offsetMax: Int64 = 26 * 3600
}

/// The zone of a `time` condition.
package struct NamedZone: Sendable, Equatable {
    /// `Europe/Berlin`.
    package var name: String
    /// Nil until the file has been read.
    package var data: TimeZoneData?

    package init(_ name: String, _ data: TimeZoneData? = nil) {
        self.name = name
        self.data = data
    }
}

private func number(_ bytes: ArraySlice<UInt8>) -> Int64 {
    bytes.reduce(0) { Int64(truncatingIfNeeded: UInt64(bitPattern: $0) << 8 | UInt64($1)) }
}

private struct ZoneReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    struct Header {
        let version: Int
        /// In the order of the file: isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt.
        let utcFlags, standardFlags, leapSeconds, times, types, characters: Int

        func blockSize(timeSize: Int) -> Int {
            times * (timeSize + 1) + types * 6 + characters + leapSeconds * (timeSize + 4) + standardFlags + utcFlags
        }
    }

    mutating func take(_ count: Int) throws(TimeZoneData.Fault) -> ArraySlice<UInt8> {
        guard rest.count >= count else { throw .cutOff }
        let taken = rest.prefix(count)
        rest = rest.dropFirst(count)
        return taken
    }

    mutating func skip(_ count: Int) throws(TimeZoneData.Fault) { _ = try take(count) }

    /// RFC 8536 §3.1.
    mutating func header() throws(TimeZoneData.Fault) -> Header {
        guard rest.prefix(4).elementsEqual("TZif".utf8) else { throw rest.count < 4 ? .cutOff : .noZoneFile }
        let bytes = Array(try take(44))
        let version: Int
        switch bytes[4] {
        case 0: version = 1
        case UInt8(ascii: "2")...UInt8(ascii: "4"): version = Int(bytes[4] - 0x30)
        default: throw .version
        }
        var counts: [Int] = []
        for index in 0..<6 {
            let count = Int(number(bytes[(20 + index * 4)..<(24 + index * 4)]))
            guard count <= TimeZoneData.bytesMax else { throw .cutOff }
            counts.append(count)
        }
        return Header(
            version: version, utcFlags: counts[0], standardFlags: counts[1], leapSeconds: counts[2], times: counts[3],
            types: counts[4], characters: counts[5])
    }

    /// RFC 8536 §3.3: a TZ string between line feeds. Nil if it is empty.
    mutating func footer() throws(TimeZoneData.Fault) -> TimeZoneRule? {
        guard rest.first == 0x0A, let end = rest.dropFirst().firstIndex(of: 0x0A) else { throw .cutOff }
        let text = rest[(rest.startIndex + 1)..<end]
        if text.isEmpty { return nil }
        guard let rule = TimeZoneRule(text) else { throw .footer }
        return rule
    }
}
