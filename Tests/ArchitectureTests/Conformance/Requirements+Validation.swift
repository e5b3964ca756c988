/// RFC 9111 §4.3 and §4.4.
extension Requirements {
    static let validation = [
        Requirement(
            "4.3.1", .must, "send the entity tags of what is validated",
            "ValidationTests: every validator is sent as it was received",
            "SelectionTests: all tags are sent once, and no date"),
        Requirement(
            "4.3.1", .should, "send Last-Modified, where one response is validated as a whole",
            "ValidationTests: every validator is sent as it was received"),
        Requirement(
            "4.3.2", .must, "answer If-None-Match, which goes before If-Modified-Since, and If-Modified-Since",
            "ValidationTests: §13.1.3 If-None-Match goes before If-Modified-Since",
            "ValidationTests: If-Modified-Since, the same time"),
        Requirement(
            "4.3.2", .must,
            "without Last-Modified compare If-Modified-Since with Date, without that with the time of arrival",
            "ValidationTests: §4.3.2 our Date where we have no Last-Modified",
            "ValidationTests: §4.3.2 the time of arrival where there is no Date"),
        Requirement(
            "4.3.2", .must, "evaluate If-Range where ranges are answered",
            "RangeSelectionTests: an If-Range that is false asks for the whole"),
        Requirement(
            "4.3.2", .mustNot, "judge If-Match and If-Unmodified-Since for the origin",
            "ValidationTests: another tag is the origin's to judge"),
        Requirement(
            "4.3.2", .may, "join the client's If-None-Match with our own tags",
            decision:
                "not done: our validators take the place of the client's, whose own condition is answered from what comes of it"
        ),
        Requirement(
            "4.3.3", .must, "a full answer to a validation takes the place of what is stored",
            "CachingTests: a stale response is replaced by a 200"),
        Requirement(
            "4.3.3", .may, "on a 5xx serve what is stale, where that is allowed",
            "ReuseTests: the origin fails, nothing forbids",
            "CachingTests: a stale response is served if the origin fails"),
        Requirement(
            "4.3.4", .must, "a 304 with a strong validator updates all that have it, and else nothing",
            "SelectionTests: all with the strong validator", "SelectionTests: none with it: nothing is updated"),
        Requirement(
            "4.3.4", .must, "with a weak one the most recent that matches",
            "SelectionTests: of a weak validator the most recent"),
        Requirement(
            "4.3.4", .must, "without one the only stored response, if it has none either",
            "SelectionTests: no validator, one without", "SelectionTests: no validator, two without"),
        Requirement(
            "4.3.4", .mustNot, "use a 304 without validator for a response with one, sent for it alone",
            decision:
                "done all the same where one response was asked about: deployed origins leave the validator out (Validation.swift)"
        ),
        Requirement(
            "4.3.4", .must, "update the fields of what is identified",
            "CachingTests: a stale response is validated; 304 renews it",
            "FresheningTests: a 304 updates the stored fields"),
        Requirement(
            "4.3.5", .should, "the answer to a HEAD freshens what agrees with it, and makes stale what does not",
            "FresheningTests: a HEAD shows whether the stored response is still valid"),
        Requirement(
            "4.4", .must, "a non-error answer to an unsafe or unknown method invalidates its target",
            "InvalidationTests: unsafe and unknown methods invalidate, unless they fail",
            "CachingTests: a successful unsafe request invalidates the stored response"),
        Requirement(
            "4.4", .may, "and what Location and Content-Location name",
            "InvalidationTests: the target is invalidated, and URIs of its own origin that the response names"),
        Requirement(
            "4.4", .mustNot, "and nothing of another origin", "InvalidationTests: another host",
            "InvalidationTests: another port",
            "InvalidationTests: another scheme"),
    ]
}
