/// RFC 9111 §4.2.
extension Requirements {
    static let freshness = [
        Requirement(
            "4.2", .should, "match dates in any case", "HTTPDateTests: sun, 06 nov 1994 08:49:37 gmt",
            "FreshnessTests: §4.2 Expires in any case"),
        Requirement(
            "4.2", .mustNot, "let a local time zone play a part", decision: "times are seconds since 1970, UTC"),
        Requirement(
            "4.2", .should, "take a date with a zone other than GMT for invalid",
            "FreshnessTests: Expires in another zone is in the past"),
        Requirement(
            "4.2.1", .must, "s-maxage, max-age, Expires less Date, in this order",
            "FreshnessTests: s-maxage wins over all", "FreshnessTests: max-age wins over Expires",
            "FreshnessTests: Expires counts from Date"),
        Requirement(
            "4.2.1", .should,
            "of several values the first counts, or the response is stale; of conflicting directives the strictest",
            "CacheDirectivesTests: the smallest max-age counts", "FreshnessTests: of several Expires the earliest",
            "StorabilityTests: private, even where public"),
        Requirement(
            "4.2.1", .should, "take invalid freshness for stale", "CacheDirectivesTests: max-age with a fraction",
            "FreshnessTests: a malformed max-age is stale, whatever Expires says"),
        Requirement(
            "4.2.2", .mustNot, "use heuristics where the expiration is explicit",
            "FreshnessTests: §4.2.2 no heuristic where it is explicit"),
        Requirement(
            "4.2.2", .mustNot, "use them but for heuristically cacheable statuses and public",
            "FreshnessTests: RFC 9110 §15.1: some statuses are cacheable by heuristics"),
        Requirement(
            "4.2.2", .should, "take no more than a fraction of the time since it changed, such as a tenth",
            "FreshnessTests: a tenth of the time since it changed, at most a day"),
        Requirement(
            "4.2.3", .must, "the age: the larger of Date and Age at arrival, and the time here",
            "FreshnessTests: corrected initial age", "FreshnessTests: the current age grows with the time in the cache",
            "FreshnessTests: an age at or beyond 2^31 outlives every lifetime"),
        Requirement(
            "4.2.4", .mustNot, "serve stale where no-cache, must-revalidate, proxy-revalidate or s-maxage forbids it",
            "ReuseTests: §5.2.2.2 must-revalidate, whatever the client takes",
            "ReuseTests: §5.2.2.8 proxy-revalidate as well",
            "ReuseTests: §5.2.2.10 s-maxage as well", "CachingTests: must-revalidate is never served stale"),
        Requirement(
            "4.2.4", .mustNot,
            "serve stale unless cut off from the origin, or the client, the origin or a contract allows it",
            "ReuseTests: §5.2.1.2 staleness beyond max-stale",
            "ReuseTests: the policy bounds how long a response is served if the origin fails",
            "CachingTests: max-stale accepts a stale response", "CacheUseTests: cache-first, must-revalidate"),
    ]
}
