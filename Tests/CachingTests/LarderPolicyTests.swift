import Caching
import Message
import Testing

@Suite("Larder-Policy")
struct LarderPolicyTests {
    static func changes(_ set: (inout HandlingChanges) -> Void) -> HandlingChanges {
        var changes = HandlingChanges()
        set(&changes)
        return changes
    }

    static let rows: [(value: String, expected: HandlingChanges?)] = [
        ("", .init()), ("cache-first", changes { $0.use = .cacheFirst }),
        (
            "cache-first, stale-on-error, ttl=60, storage=session",
            changes {
                $0.use = [.cacheFirst, .staleOnError]
                $0.ttl = Seconds(60)
                $0.storage = .session
            }
        ),
        ("revalidate-when-stale", changes { $0.use = [] }),
        ("revalidate-always", changes { $0.use = .revalidateAlways }),
        ("no-read,no-write", changes { $0.use = [.noRead, .noWrite] }), ("cache-only", changes { $0.use = .cacheOnly }),
        ("respect-cache-control=?0", changes { $0.respectsCacheControl = false }),
        ("store-cookies", changes { $0.storesCookies = true }),
        ("store-cookies=?0", changes { $0.storesCookies = false }),
        ("negative-ttl=0", changes { $0.negativeTTL = .zero }),
        ("object-size-max=1024", changes { $0.objectSizeMax = 1024 }),
        (
            "ranges=pass, compress=on-the-fly",
            changes {
                $0.ranges = .pass; $0.compression = .onTheFly
            }
        ),
        ("ttl-max=5", changes { $0.ttlMax = Seconds(5) }), ("ttl-default=6", changes { $0.ttlDefault = Seconds(6) }),
        ("immutable", changes { $0.isImmutable = true }), ("ttl-max=-5", .init()), ("immutable=1", .init()),
        ("admission=second-hit", changes { $0.admission = .secondHit }),
        ("admission=first", changes { _ in }),
        ("storage=\"pinned\"", changes { $0.storage = .pinned }),
        ("ttl=999999999999999", changes { $0.ttl = .deltaMax }), ("ttl=60;x=1", changes { $0.ttl = Seconds(60) }),
        ("ttl=1, ttl=2", changes { $0.ttl = Seconds(2) }),
        // Not known, or without sense: passed over.
        ("zone=other, key=x, unheard-of, ttl=5", changes { $0.ttl = Seconds(5) }),
        ("ttl=-1", .init()), ("ttl=1.5", .init()), ("ttl", .init()), ("ttl=\"60\"", .init()),
        ("storage=forever", .init()),
        ("cache-first=?0", .init()), ("cache-first=1", .init()), ("cache-first=(a b)", .init()), ("ranges=1", .init()),
        ("object-size-max=-1", .init()), ("respect-cache-control=no", .init()),
        // Void as a whole.
        ("cache-first,", nil), ("Cache-First", nil), ("ttl=", nil), ("ttl=60 storage=session", nil), ("é", nil),
        ("cache-only, no-read", nil), ("cache-first, revalidate-always, ttl=60", nil),
        ("no-read, stale-on-error", nil), ("revalidate-when-stale, cache-first", nil),
    ]
    @Test(arguments: rows.indices) func `the field is a dictionary, and unknown members are ignored`(_ index: Int) {
        let row = Self.rows[index]
        #expect(LarderPolicy.parse(row.value.utf8) == row.expected, "\(row.value)")
    }

    @Test(arguments: 0..<100 as Range<UInt64>) func `any bytes give a value or nil`(_ seed: UInt64) {
        var random = Seeded(seed)
        let pieces = [
            "ttl", "=", "cache-first", ",", " ", ";", "(", ")", "\"", "?0", "?1", "no-read", "9", ":", "\u{0}",
            "storage",
        ]
        for _ in 0..<50 {
            let value = (0..<Int.random(in: 0...12, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }.joined()
            if let changes = LarderPolicy.parse(value.utf8) {
                #expect(changes.ttl.map { $0 >= .zero && $0 <= .deltaMax } ?? true, "\(value)")
            }
        }
    }

    @Test func `exactly the contradicting pairs of policies are refused, in either order`() {
        let exclusive: Set<CachePolicyWord> = [.revalidateWhenStale, .revalidateAlways, .noRead]
        for one in CachePolicyWord.allCases {
            for other in CachePolicyWord.allCases where one != other {
                let pair: Set = [one, other]
                let storing = pair.intersection([.noWrite, .staleOnError])
                let contradict =
                    storing.isEmpty ? !pair.isDisjoint(with: exclusive) : pair == [.noRead, .staleOnError]
                #expect(((try? CacheUse([one, other])) == nil) == contradict, "\(one), \(other)")
            }
            #expect((try? CacheUse([one]))?.words == [one])
        }
    }
}
