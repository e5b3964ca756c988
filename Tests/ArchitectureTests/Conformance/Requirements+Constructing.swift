/// RFC 9111 §4 and §4.1.
extension Requirements {
    static let constructing = [
        Requirement(
            "4", .mustNot, "reuse what was stored for another URI",
            "MemoryTierTests: exactly the stored records are found"),
        Requirement(
            "4", .mustNot, "reuse for a method that does not allow it",
            "ReuseTests: only GET and HEAD are answered from the store"),
        Requirement(
            "4", .mustNot, "reuse where the fields that Vary nominates do not match", "SecondaryKeyTests: another value"
        ),
        Requirement(
            "4", .mustNot, "reuse, unvalidated, what says no-cache", "ReuseTests: §5.2.2.4 no-cache"),
        Requirement(
            "4", .mustNot, "reuse what is stale, unless that is allowed or it was validated", "ReuseTests: §4.2 stale"),
        Requirement(
            "4", .must, "an answer from the store has an Age, its current age, in place of any other",
            "CachingTests: a fresh response is served without the origin, with its Age (§4, §5.1)"),
        Requirement(
            "4", .must, "write unsafe methods through to the origin, and answer only when it has",
            "RetrievalTests: POST invalidates when it succeeded",
            "RequestMachineTests: an unknown method counts as unsafe",
            "ReuseTests: only GET and HEAD are answered from the store"),
        Requirement(
            "4", .may, "answer several requests with one response on its way",
            "CachingTests: followers on both workers get the bytes before the origin is done",
            "CachingTests: if the response cannot be stored, each request asks the origin"),
        Requirement(
            "4", .must, "of several suitable responses use the most recent",
            "FresheningTests: the most recent is the one with the later Date",
            "MemoryTierTests: variants are listed newest first, and the oldest are removed"),
        Requirement(
            "4", .mustNot, "reuse without a clock", decision: "there is one: `now` is an argument of every decision"),
        Requirement(
            "4.1", .mustNot, "use a variant unless all nominated fields match, absent ones absent again",
            "SecondaryKeyTests: all nominated must match", "SecondaryKeyTests: absent then present",
            "SecondaryKeyTests: present then absent",
            "CachingTests: each variant that Vary selects is stored separately"
        ),
        Requirement(
            "4.1", .may, "normalise white space, joined lines, and what means the same by the field's syntax",
            "SecondaryKeyTests: lines joined", "SecondaryKeyTests: white space in a list",
            "SecondaryKeyTests: Accept-Encoding: order",
            "SecondaryKeyTests: Accept-Language: order of equals is heeded",
            "ContentCodingHeadTests: three browsers share one variant"),
        Requirement(
            "4.1", .mustNot, "match a Vary with * in it", "SecondaryKeyTests: * alone", "SecondaryKeyTests: * first",
            "SecondaryKeyTests: * on a later line", "StorabilityTests: §4.1 Vary: *"),
        Requirement(
            "4.1", .may, "a response without Vary suits all, also beside variants",
            "SecondaryKeyTests: a variant that does not vary suits all"),
        Requirement(
            "4.1", .may, "where no variant matches, ask with the validators of those there are",
            "SelectionTests: all tags are sent once, and no date"),
    ]
}
