import Caching
import Message
import Testing

@Suite("Caching on hostile input")
struct HostileFieldsTests {
    static let words = [
        "max-age", "s-maxage", "no-cache", "private", "=", "=\"", "\"", "\\", ",", " ", "\t", "0",
        "99999999999999999999",
        "-1", "*", "bytes=", "-", "W/\"", "GMT", "Sun, 06 Nov 1994 08:49:37 GMT", "gzip", ";q=", "Accept", "/", "%",
        "bytes 0-4/10",
        "?",
    ]
    static let names: [FieldName] = [
        .age, .authorization, .cacheControl, .connection, .date, .eTag, .expires, .ifMatch, .ifModifiedSince,
        .ifNoneMatch,
        .ifRange, .ifUnmodifiedSince, .lastModified, .location, .pragma, .range, .vary, .acceptEncoding,
        .acceptLanguage,
        .contentLength, .cdnCacheControl, .contentRange, .contentType, .acceptRanges,
    ]

    static func value(_ random: inout Seeded) -> [UInt8] {
        var result: [UInt8] = []
        for _ in 0..<Int.random(in: 0...8, using: &random) {
            if Bool.random(using: &random) {
                result += Array(words.randomElement(using: &random)!.utf8)
            } else {
                result.append(.random(in: 0...255, using: &random))
            }
        }
        return result
    }

    static func head(_ random: inout Seeded) -> Fields {
        var result = Fields()
        for _ in 0..<Int.random(in: 0...8, using: &random) {
            result.append(names.randomElement(using: &random)!, value(&random))
        }
        return result
    }

    static func handling(_ random: inout Seeded) -> CacheHandling {
        var result = CacheHandling()
        result.use = CacheUse(rawValue: .random(in: 0..<64, using: &random))
        result.ttl = Bool.random(using: &random) ? Seconds(.random(in: -5...(.max), using: &random)) : nil
        result.respectsCacheControl = .random(using: &random)
        result.heedsTargetedFields = .random(using: &random)
        return result
    }

    /// Nothing here can fail but by a trap, or by a promise that is kept for any bytes.
    @Test(arguments: 0..<60 as Range<UInt64>) func `no bytes trap, and the result is as promised`(_ seed: UInt64) throws
    {
        var random = Seeded(seed)
        let target = try #require(TargetURI("http://a.example/".utf8))
        for _ in 0..<60 {
            let (asked, answered, update) = (Self.head(&random), Self.head(&random), Self.head(&random))
            let edges: [Int64] = [.min, .min + 1, -1, 0, 784_111_777, .max]
            let times = (0..<3).map { _ in WallTime(secondsSinceEpoch: edges.randomElement(using: &random)!) }
            let request = CacheRequest(method: .get, fields: asked)
            let status = UInt16.random(in: 100...599, using: &random)
            let response = CachedResponse(
                status: status, fields: answered, requestTime: times[0], responseTime: times[1], policy: CachePolicy())
            #expect(response.lifetimeSeconds >= .zero && response.correctedInitialAge >= .zero)
            #expect(response.currentAge(times[2]) >= response.correctedInitialAge.seconds)
            #expect(response.isFresh(times[2]) == (response.remainingLifetime(times[2]) > .zero))
            if case .serve = reuse(of: response, for: request, now: times[2]) { #expect(response.isFresh(times[2])) }
            _ = mayServeStaleOnError(response, for: request, now: times[2])
            _ = storability(of: request, status: status, fields: answered, policy: CachePolicy(), now: times[2])
            _ = evaluate(asked, method: .get, against: response, now: times[2])
            _ = selects(update, response, received: times[2])
            let key = SecondaryKey(vary: answered, request: asked)
            #expect(key.matches(asked) == (response.vary != .star))
            let handling = Self.handling(&random)
            let handled = CachedResponse(
                status: status, fields: answered, requestTime: times[0], responseTime: times[1], policy: CachePolicy(),
                handling: handling)
            #expect(handled.lifetimeSeconds >= .zero)
            let decided = reuse(of: handled, for: request, use: handling.use, now: times[2])
            if handling.use.contains(.cacheOnly) || request.directives.onlyIfCached {
                switch decided {
                case .serve, .serveStale, .refuse: break
                case .serveStaleAndRevalidate, .validate, .fetch: Issue.record("the origin is asked: \(decided)")
                }
            }
            #expect(!explainFreshness(handled, for: request, use: handling.use, now: times[2]).isEmpty)
            let stored = storability(
                of: request, status: status, fields: answered, policy: CachePolicy(), handling: handling,
                now: times[2])
            if handling.use.contains(.noWrite) { #expect(stored == .doNotStore(.policy)) }
            if case .store(let part) = decideStoringPart(
                of: request, status: 206, fields: answered, policy: CachePolicy(), requestTime: times[0],
                responseTime: times[1])
            {
                #expect(part.whole.strongValidator != nil && part.range.upperBound <= part.total)
                #expect(combines(part: part, with: part.whole))
            }
            if case .goesOn(let range, let total) = continues(
                status: 206, fields: answered, stored: response, from: 0, to: nil, total: nil)
            {
                #expect(range.lowerBound == 0 && range.upperBound <= total && response.strongValidator != nil)
            }
            for index in selected(by: update, among: [response, handled], received: times[2]) {
                #expect((0...1).contains(index))
            }
            let length = UInt64.random(in: 0...50, using: &random)
            switch selectRange(asked, method: .get, stored: response, length: length, now: times[2]) {
            case .single(let range): #expect(!range.isEmpty && range.upperBound <= length)
            case .multiple(let ranges): #expect(ranges.allSatisfy { !$0.isEmpty && $0.upperBound <= length })
            case .whole, .unsatisfiable: break
            }
            let fresh = freshened(answered, by: update)
            #expect(fresh.all(.contentLength) == answered.all(.contentLength))
            #expect(
                freshened(fresh, by: update).lines.count == fresh.lines.count, "freshening twice is freshening once")
            for uri in invalidatedURIs(target: target, status: 200, fields: answered) {
                #expect(uri.host == target.host)
            }
            var bytes: [UInt8] = []
            var cacheStatus = CacheStatus(.hit)
            cacheStatus.key = Self.value(&random)
            cacheStatus.append(to: &bytes)
            #expect(bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
        }
    }
}
