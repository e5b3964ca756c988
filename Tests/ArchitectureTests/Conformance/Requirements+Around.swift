/// RFC 9110 where a cache is concerned.
extension Requirements {
    static let representations = [
        Requirement(
            "8.6", .mustNot, "send a Content-Length that is wrong",
            "ResumeScenarios: without a strong validator a truncated response is neither completed nor stored"),
        Requirement(
            "8.6", .must, "prevent errors by lengths that are too large to be represented",
            "BodyLengthTests: 2⁶³ − 1", "ChunkedTests: 2^63 − 1",
            "ExtremeNumberScenarios: a response whose Content-Length is beyond every content is refused"),
        Requirement(
            "8.8.1", .mustNot, "use a weak validator where a strong one is needed",
            "PartTests: RFC 9110 §8.8.1 a weak tag"),
        Requirement(
            "8.8.2.2", .mustNot, "take a date for strong that is not a second before Date",
            "PartTests: RFC 9110 §8.8.2.2 a date of the same second is weak",
            "RangeSelectionTests: §8.8.2.2 a date of the same second as Date is weak"),
        Requirement(
            "8.8.3", .must, "one tag is not for two representations",
            "ContentCodingHeadTests: another form changes coding, length, tag and digests"),
        Requirement(
            "8.8.3.2", .must, "strong and weak comparison",
            "FieldValueTests: strong and weak comparison, as the table of §8.8.3.2 has it"),
        Requirement(
            "8.8.4", .must, "a validation sends the tag it has, and should send the date",
            "ValidationTests: every validator is sent as it was received"),
        Requirement(
            "9.3.2", .may, "a HEAD is answered from a stored GET",
            "ReuseTests: only GET and HEAD are answered from the store"),
        Requirement(
            "9.3.3", .may,
            "store the answer to a POST for later GETs, only with explicit freshness and the target as Content-Location",
            "PostStoringTests: explicit lifetime and the target as Content-Location",
            "PostStoringTests: no explicit lifetime"),
    ]

    static let negotiation = [
        Requirement("12.5.5", .must, "Vary: * matches nothing", "SecondaryKeyTests: * among others")
    ]

    static let conditions = [
        Requirement(
            "13.1.1", .must, "If-Match: strong comparison, * with anything stored",
            "ValidationTests: strong comparison, theirs"),
        Requirement(
            "13.1.1", .mustNot, "say 412 for the origin", "ValidationTests: another tag is the origin's to judge"),
        Requirement("13.1.2", .must, "If-None-Match: weak comparison", "ValidationTests: weak comparison, both"),
        Requirement(
            "13.1.2", .must, "304 to GET and HEAD where it does not hold, * where anything is stored",
            "ValidationTests: * without a tag of ours"),
        Requirement(
            "13.1.3", .must, "ignore If-Modified-Since beside If-None-Match",
            "ValidationTests: even where it can not be read"),
        Requirement("13.1.3", .must, "ignore it where it is no single date", "ValidationTests: more than one date"),
        Requirement(
            "13.1.3", .must, "ignore it with methods other than GET and HEAD",
            "ValidationTests: conditions of other methods are left to the origin"),
        Requirement(
            "13.1.4", .must, "ignore If-Unmodified-Since beside If-Match",
            "ValidationTests: §13.2.2 If-Match goes before If-Unmodified-Since"),
        Requirement(
            "13.1.4", .must, "ignore it where it is no date, or nothing says when it changed",
            "ValidationTests: §13.1.4 where we have none"),
        Requirement(
            "13.1.5", .mustNot, "send an If-Range with a weak validator",
            "ResumptionTests: §13.1.5: the rest is never requested with a weak validator"),
        Requirement(
            "13.1.5", .must, "ignore If-Range without Range",
            "RangeSelectionTests: a request without Range asks for the whole"),
        Requirement(
            "13.1.5", .must, "compare strongly, dates exactly", "RangeSelectionTests: strong comparison: both are",
            "RangeSelectionTests: an earlier one neither"),
        Requirement(
            "13.1.5", .should, "ignore Range where it does not hold",
            "RangeSelectionTests: an unsatisfiable range with a false If-Range asks for the whole"),
        Requirement(
            "13.2.1", .must, "ignore conditions where the answer is no success",
            "ValidationTests: §13.2.1: conditions are ignored if the response is not a success"),
        Requirement(
            "13.2.1", .mustNot, "evaluate what can not be answered from the store",
            "RegressionTests: a 304 to the client's own condition goes to the client"),
        Requirement(
            "13.2.2", .must, "the order of the conditions", "ValidationTests: §13.2.2 then If-None-Match",
            "ValidationTests: §13.2.2 a failure comes first"),
    ]

    static let ranges = [
        Requirement(
            "14.1.2", .must, "ignore a Range with an invalid member", "RangeSelectionTests: bytes=9-5",
            "FieldValueTests: bytes=5-4"),
        Requirement(
            "14.1.2", .must, "a last byte beyond the end, and a suffix longer than all, mean what there is",
            "RangeSelectionTests: bytes=-999"),
        Requirement(
            "14.1.2", .must, "a suffix that is not zero is satisfiable, also where there is no content",
            "RangeSelectionTests: a suffix of empty content is all of it, other ranges have nothing"),
        Requirement(
            "14.2", .must, "ignore Range with methods other than GET",
            "RangeSelectionTests: Range applies to GET and 200 only"),
        Requirement("14.2", .must, "ignore a unit that is not understood", "RangeSelectionTests: items=0-5"),
        Requirement(
            "14.2", .must, "evaluate Range after the other conditions",
            "CachingTests: 304, 206 and 416 come from the store"),
        Requirement(
            "14.2", .should, "ignore or refuse ranges that overlap or are many", "RangeSelectionTests: bytes=0-,0-",
            "FieldValueTests: a Range with too many ranges is ignored"),
        Requirement("14.2", .should, "416 where no range can be satisfied", "RangeSelectionTests: bytes=100-, 200-"),
        Requirement(
            "14.3", .should, "ask for no ranges where Accept-Ranges says none",
            "ResumptionTests: §14.3: the rest is not requested if ranges are refused or nothing is missing"),
        Requirement(
            "14.4", .mustNot, "combine what has an invalid Content-Range", "PartTests: beyond its end",
            "PartTests: two places",
            "LyingPartScenarios: a part with an invalid Content-Range is not combined with what is stored"),
        Requirement(
            "14.4", .should, "pass on a part whose unit is not understood",
            "LyingPartScenarios: a part with an invalid Content-Range is passed on as it is, and not stored"),
        Requirement(
            "14.4", .must, "read and write Content-Range",
            "FieldValueTests: Content-Range is read and written alike (§14.4)"),
        Requirement(
            "14.4", .mustNot, "take a part for the whole where the status is not 206",
            "ExtremeNumberScenarios: a 200 with it is passed on and never stored"),
        Requirement(
            "14.6", .must, "several ranges as multipart/byteranges",
            "PartScenarios: several ranges are answered as multipart, holes filled on the way"),
    ]

    static let statuses = [
        Requirement(
            "15.3.7", .mustNot, "take a part for what its range and its length do not both say",
            "PartTests: a part promises the bytes of its range (RFC 9110 §14.4)",
            "LyingPartScenarios: a contradictory part in answer to a client's range is an error"),
        Requirement(
            "15.3.7", .must, "a 206 with one part says which",
            "PartScenarios: a filled hole is reported as fwd=partial with the Content-Range of the request"),
        Requirement(
            "15.3.7", .must, "an origin's 206 says which part it has",
            decision: "it asks nothing of a proxy: a 206 that does not say so is passed on as it is and never stored"),
        Requirement(
            "15.3.7", .must, "the answer to If-Range has the tag; what else describes the whole may be left out",
            "ResumptionTests: §15.3.7 no tag though we sent one",
            "ResumptionTests: a coding left out: servers give one tag to all of them"),
        Requirement(
            "15.3.7.3", .mustNot, "combine parts without the same strong validator",
            "PartTests: parts with the same strong validator are combined"),
        Requirement(
            "15.4", .should,
            "following a redirect: leave behind what was for the connection, the proxy or the origin before",
            "RedirectedTests: what is meant for one origin stays there",
            "RedirectScenarios: credentials of the client stay with the origin that it sent them to"),
        Requirement(
            "15.4", .should, "following a redirect: change the method, and then drop the fields about content",
            "RedirectTrailTests: the method of the next request",
            "RedirectedTests: a request that becomes a GET says nothing of the content, and has no conditions"),
        Requirement(
            "15.4", .should, "intervene in cyclical redirections",
            "RedirectScenarios: a loop of one and of three ends with the request that would close it"),
        Requirement(
            "15.4.5", .must, "a 304 has the fields of the 200 that caches need",
            "ValidationTests: a 304 has the fields of a 200"),
    ]

    static let staleness = [
        Requirement(
            "3", .may, "stale-while-revalidate: within the window, not after", "ReuseTests: RFC 5861 §3 as it begins",
            "ReuseTests: RFC 5861 §3 after it"),
        Requirement(
            "3", .should, "validate behind the client's back then",
            "CachingTests: stale-while-revalidate answers at once and validates in the background"),
        Requirement(
            "4", .may, "stale-if-error: within the window, not after", "ReuseTests: RFC 5861 §4 as it begins",
            "ReuseTests: RFC 5861 §4 after it"),
    ]

    static let immutability = [
        Requirement(
            "2", .shouldNot, "immutable and fresh: validate for a reload", "ReuseTests: RFC 8246 immutable and fresh"),
        Requirement("2.1", .must, "stale it is validated as ever", "ReuseTests: RFC 8246 immutable and stale"),
    ]

    static let targeting = [
        Requirement(
            "2.1", .must, "a structured dictionary, parameters ignored",
            "TargetedFieldsTests: §2.1 parameters are ignored"),
        Requirement(
            "2.2", .must, "the first of the target list that can be read is the only one",
            "TargetedFieldsTests: §2.2 ours before the general one"),
        Requirement(
            "2.2", .must, "ignore Cache-Control and Expires beside it", "TargetedFieldsTests: §2.2 and of Expires"),
        Requirement(
            "2.2", .must, "ignore one that is empty or can not be read", "TargetedFieldsTests: §2.2 nor what is empty",
            "TargetedFieldsTests: §2.2 what can not be read is as if it was not there"),
    ]
}
