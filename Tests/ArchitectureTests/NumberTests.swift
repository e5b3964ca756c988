import Testing

/// A number that a peer names gets its bound where it is read, so that no sum of it overflows (`octetCountMax`, `Seconds.deltaMax`). `parseDecimal` has none: whoever calls it is
/// in a table here, with the reason why its number cannot overflow.
@Suite("Architecture: numbers of peers have bounds")
struct NumberTests {
    static let callers: [String: String] = [
        "Sources/Message/Decimal.swift": "declares it, and bounds delta-seconds",
        "Sources/Message/OctetCount.swift": "bounds lengths and positions",
        "Sources/Forwarding/LocalAnswer.swift": "Max-Forwards is compared with zero",
        "Sources/Forwarding/OutgoingRequest.swift": "Max-Forwards is reduced by one where it is not zero, and bounded",
        "Sources/Caching/key/SignedAddress.swift": "sums of WallTime and Seconds saturate",
        "Sources/Caching/key/SignedLocation.swift": "times of our days alone count",
        "Sources/Cookies/CookieFile.swift": "a WallTime saturates",
        "Sources/Rules/AddressRange.swift": "has a function of that name with a bound",
        "Sources/Fleet/UsePart.swift": "generations have a bound, and sums of bytes saturate",
        "Sources/Fleet/StreamID.swift": "ids are compared",
        "Sources/Fleet/PurgeEntry.swift": "numbers are compared, and times are not before 1970",
        "Sources/Fleet/NodeReport.swift": "times have a bound, and sums of figures wrap around",
        "Sources/Fleet/RegisterEntry.swift": "a time and positions are compared",
        "Sources/Server/fleet/RedisFacts.swift": "differences of times saturate",
    ]

    @Test func `whoever parses a number without a bound says why that is safe`() {
        let found = SourceFile.all.filter { file in
            file.text.split(separator: "\n").contains {
                $0.contains("parseDecimal") && !$0.drop { $0 == " " }.hasPrefix("//")
            }
        }
        #expect(Set(found.map(\.path)) == Set(Self.callers.keys))
    }

    /// What a peer sends is clamped where it is read, by a function that says so. A clamped length would pass for a length.
    @Test(arguments: SourceFile.of(["Message", "Framing"]))
    func `a parser does not clamp with a conversion`(_ file: SourceFile) {
        let clamping = file.text.split(separator: "\n").filter { $0.contains("(clamping:") }
        #expect(clamping.isEmpty || file.path == "Sources/Message/HTTPDate.swift", "\(clamping)")
    }
}
