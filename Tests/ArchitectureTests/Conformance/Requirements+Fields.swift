/// RFC 9111 §5 and §7.
extension Requirements {
    static let fieldsOfCaching = [
        Requirement(
            "5.1", .should, "of an Age with several members the first counts",
            "FreshnessTests: the first member counts, if it is a number",
            "FreshnessTests: §5.1: the first of several lines counts"),
        Requirement(
            "5.1", .should, "ignore an invalid Age", "FreshnessTests: the first member counts, if it is a number"),
        Requirement(
            "5.2", .must, "directives in any case, arguments as token and quoted",
            "CacheDirectivesTests: §5.2 names in any case", "CacheDirectivesTests: §5.2 a quoted argument is as good"),
        Requirement(
            "5.2", .must, "pass the directives on", "ForwardingTests: RFC 9110 §7.6",
            "StorabilityTests: all end-to-end fields are stored as they arrived, in their order"),
        Requirement(
            "5.2.1.1", .should, "max-age: nothing older", "ReuseTests: §5.2.1.1 age beyond max-age",
            "ReuseTests: §5.2.1.1 max-age=0 at age 0 is a reload"),
        Requirement("5.2.1.2", .may, "max-stale: nothing staler", "ReuseTests: §5.2.1.2 staleness up to max-stale"),
        Requirement(
            "5.2.1.3", .should, "min-fresh: fresh for so long still", "ReuseTests: §5.2.1.3 min-fresh not left"),
        Requirement("5.2.1.4", .should, "no-cache: nothing unvalidated", "ReuseTests: §5.2.1.4 request no-cache"),
        Requirement(
            "5.2.1.5", .mustNot, "no-store: store nothing of request and answer",
            "StorabilityTests: §5.2.1.5 request no-store",
            "HandlingTests: a request's no-store is the client's, and stays"),
        Requirement(
            "5.2.1.6", .mustNot, "no-transform: transform nothing", "ContentCodingTests: the request says no-transform"),
        Requirement(
            "5.2.1.7", .should, "only-if-cached: what is stored, or 504", "ReuseTests: §5.2.1.7 only-if-cached, stale",
            "CachingTests: only-if-cached gets 504 if nothing is stored"),
        Requirement(
            "5.2.2.1", .must, "max-age: stale after that",
            "FreshnessTests: at the second its lifetime ends a response is stale"),
        Requirement(
            "5.2.2.2", .mustNot, "must-revalidate: reuse stale, cut off from the origin or not",
            "ReuseTests: §5.2.2.2 must-revalidate, whatever the client takes",
            "CachingTests: must-revalidate is never served stale",
            "CacheUseTests: not against must-revalidate"),
        Requirement(
            "5.2.2.3", .should, "must-understand: ignore no-store where the status is understood",
            "StorabilityTests: §5.2.2.3 must-understand takes no-store back"),
        Requirement(
            "5.2.2.4", .mustNot, "no-cache: reuse without validation",
            "ReuseTests: §5.2.2.4 no-cache, whatever the client takes"),
        Requirement(
            "5.2.2.4", .mustNot, "no-cache with fields: reuse these without validation",
            "StorabilityTests: fields that private and no-cache name are not stored"),
        Requirement("5.2.2.5", .mustNot, "no-store: store or reuse", "StorabilityTests: §5.2.2.5 no-store"),
        Requirement(
            "5.2.2.6", .mustNot, "no-transform: transform the content", "ContentCodingTests: a text, no-transform"),
        Requirement("5.2.2.7", .mustNot, "private: store, being shared", "StorabilityTests: §5.2.2.7 private"),
        Requirement(
            "5.2.2.7", .mustNot, "private with fields: store these",
            "StorabilityTests: fields that private and no-cache name are not stored",
            "FresheningTests: §5.2.2.7 what the stored Cache-Control keeps from others is not taken",
            "CacheDirectivesTests: private for what the cache needs itself"),
        Requirement(
            "5.2.2.8", .mustNot, "proxy-revalidate: reuse stale, being shared",
            "ReuseTests: §5.2.2.8 proxy-revalidate as well"),
        Requirement("5.2.2.9", .may, "public: store what would not be", "StorabilityTests: unknown status with public"),
        Requirement(
            "5.2.2.10", .must, "s-maxage: in place of max-age and Expires; never stale",
            "FreshnessTests: s-maxage wins over all",
            "ReuseTests: §5.2.2.10 s-maxage as well"),
        Requirement(
            "5.2.3", .must, "ignore directives that are not known",
            "CacheDirectivesTests: §5.2.3 unknown ones are passed over",
            "ReuseTests: §5.2.3 unknown directives change nothing"),
        Requirement(
            "5.3", .must, "an invalid Expires, 0 above all, is in the past",
            "FreshnessTests: §5.3 Expires: 0 is in the past",
            "FreshnessTests: §5.3 an invalid Expires is in the past, not absent"),
        Requirement(
            "5.3", .must, "ignore it beside max-age or s-maxage",
            "FreshnessTests: §5.3 max-age wins over an Expires in the past"),
        Requirement(
            "5.4", .may, "Pragma: no-cache in a request without Cache-Control",
            "CacheDirectivesTests: §5.4 Pragma counts where there is no Cache-Control",
            "CacheDirectivesTests: §5.4 Pragma does not count where there is one"),
        Requirement("5.5", .may, "Warning is obsolete", decision: "never made; passed on and stored like any field"),
        Requirement(
            "7.3", .may, "Set-Cookie does not keep a response from being stored",
            decision:
                "for us it does, unless public or s-maxage says that it is for all, or a rule does: StorabilityTests, HandlingTests"
        ),
    ]
}
