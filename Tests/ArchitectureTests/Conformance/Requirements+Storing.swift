/// RFC 9111 §1 to §3.
extension Requirements {
    static let storing = [
        Requirement(
            "1.2.2", .must, "a delta-seconds too large to hold is 2^31 or the largest number there is",
            "CacheDirectivesTests: §1.2.2 overflow is 2^31", "CacheDirectivesTests: §1.2.2 one more is 2^31"),
        Requirement(
            "2", .must, "the cache key has the method and the target URI at least",
            "CacheKeyTests: lengths, zeros and single bits change each half of a key",
            "MemoryTierTests: exactly the stored records are found",
            "ReuseTests: only GET and HEAD are answered from the store"),
        Requirement(
            "3", .mustNot, "store the answer to a method that is not understood",
            "StorabilityTests: only responses to GET are stored"),
        Requirement("3", .mustNot, "store what is not final", "StorabilityTests: §3 interim"),
        Requirement(
            "3", .mustNot, "store a 206 or 304 without understanding it", "StorabilityTests: §3.3 partial",
            "StorabilityTests: 304 is for freshening", "PartTests: nobody asked for a part"),
        Requirement(
            "3", .mustNot, "store a must-understand response whose status is not understood",
            "StorabilityTests: §5.2.2.3 must-understand, unknown status"),
        Requirement("3", .mustNot, "store where the response says no-store", "StorabilityTests: §5.2.2.5 no-store"),
        Requirement(
            "3", .mustNot, "store, being shared, where the response says private", "StorabilityTests: §5.2.2.7 private"),
        Requirement(
            "3", .mustNot, "store, being shared, the answer to credentials unless that is allowed",
            "StorabilityTests: §3.5 Authorization"),
        Requirement(
            "3", .mustNot, "store where nothing says that it may be reused",
            "StorabilityTests: heuristics are not for 302", "StorabilityTests: nor for 500",
            "StorabilityTests: unknown status with explicit lifetime"),
        Requirement(
            "3", .may, "store any final status with explicit freshness",
            "StorabilityTests: every final status is stored with an explicit lifetime"),
        Requirement(
            "3.1", .must, "store all header fields, those we do not know included",
            "StorabilityTests: all end-to-end fields are stored as they arrived, in their order"),
        Requirement(
            "3.1", .mustNot, "store the fields of the connection and those for the proxy itself",
            "StorabilityTests: all end-to-end fields are stored as they arrived, in their order"),
        Requirement(
            "3.1", .mustNot, "combine trailer fields with header fields",
            "ForwardingTests: trailers of a chunked body are passed on",
            "RequestRegressionTests: deceptive trailers of a response do not reach the client"),
        Requirement(
            "3.2", .must, "an update adds its fields, each in place of all stored ones of its name",
            "FresheningTests: a value is replaced in its place", "FresheningTests: all lines by all lines"),
        Requirement(
            "3.2", .mustNot, "an update changes Content-Length, hop-by-hop fields, and what the stored bytes depend on",
            "FresheningTests: Content-Length stays", "FresheningTests: Content-Encoding stays",
            "FresheningTests: Content-Range is not taken", "FresheningTests: §3.1 hop-by-hop fields are not taken"),
        Requirement(
            "3.3", .must, "record an incomplete response as incomplete",
            "PartialBodyTests: present bytes stay, the rest becomes a hole, and filling it completes the body"),
        Requirement(
            "3.3", .mustNot, "answer with an incomplete response as though it was complete",
            "ResumeScenarios: without a strong validator a truncated response is neither completed nor stored"),
        Requirement(
            "3.3", .mustNot, "send a part without saying 206", "CachingTests: 304, 206 and 416 come from the store"),
        Requirement(
            "3.4", .may, "combine parts, only where they share the strong validator",
            "PartTests: parts with the same strong validator are combined",
            "PartScenarios: another representation replaces the stored parts"),
        Requirement(
            "3.5", .mustNot, "answer others with the answer to credentials, unless public, must-revalidate or s-maxage",
            "ReuseTests: §3.5 Authorization", "ReuseTests: §3.5 with must-revalidate", "ReuseTests: §3.5 with public",
            "HandlingTests: credentials stay protected"),
    ]
}
