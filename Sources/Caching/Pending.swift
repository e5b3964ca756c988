package import Message

// Stand-ins until the rules of parts land.

package struct StorablePart: Sendable, Equatable {
    package var whole: CachedResponse
    package var fields: Fields
    package var range: Range<UInt64>
    package var total: UInt64
}

package enum PartStoring: Sendable { case store(StorablePart), doNotStore(NotStoredReason) }

package enum ResumeAnswer: Equatable, Sendable {
    case goesOn(Range<Int>, total: Int)
    case changed, refused
}

private func contentRange(_ fields: Fields) -> (Range<UInt64>, UInt64?)? {
    guard let value = fields.first(.contentRange), value.starts(with: "bytes ".utf8) else { return nil }
    let text = String(decoding: value.dropFirst(6), as: UTF8.self)
    let halves = text.split(separator: "/")
    guard halves.count == 2 else { return nil }
    let ends = halves[0].split(separator: "-").compactMap { UInt64($0) }
    guard ends.count == 2, ends[0] <= ends[1] else { return nil }
    return (ends[0]..<ends[1] + 1, UInt64(halves[1]))
}

private func strongValidator(_ stored: CachedResponse) -> [UInt8]? {
    if let tag = stored.eTag { return tag.isWeak ? nil : tag.wire }
    guard let modified = stored.lastModified, stored.date - modified >= Seconds(1) else { return nil }
    return stored.lastModifiedBytes
}

package func partConditions(for stored: CachedResponse, from start: Int, to end: Int?) -> [(FieldName, [UInt8])]? {
    guard let validator = strongValidator(stored), !stored.refusesRanges else { return nil }
    return [(.range, Array("bytes=\(start)-\(end.map { "\($0 - 1)" } ?? "")".utf8)), (.ifRange, validator)]
}

package func continues(
    status: UInt16, fields: Fields, stored: CachedResponse, from start: Int, to end: Int?, total: Int?
) -> ResumeAnswer {
    if status == 200 { return .changed }
    guard status == 206, let (range, length) = contentRange(fields), Int(range.lowerBound) == start, let length,
        total == nil || Int(length) == total, end == nil || Int(range.upperBound) <= end!
    else { return .refused }
    if let tag = fields.first(.eTag).flatMap({ EntityTag(parsing: $0) }), let own = stored.eTag,
        !tag.strongMatches(own)
    {
        return .changed
    }
    return .goesOn(Int(range.lowerBound)..<Int(range.upperBound), total: Int(length))
}

package func decideStoringPart(
    of request: CacheRequest, status: UInt16, fields: Fields, policy: CachePolicy, treatment: CacheTreatment,
    requestTime: WallTime, responseTime: WallTime
) -> PartStoring {
    guard status == 206, let (range, total) = contentRange(fields), let total else {
        return .doNotStore(.partialContent)
    }
    let whole = fields.dropping { $0.name == .contentRange || $0.name == .contentLength }
    switch decideStoring(
        of: request, status: 200, fields: whole, policy: policy, requestTime: requestTime, responseTime: responseTime)
    {
    case .doNotStore(let reason): return .doNotStore(reason)
    case .store(let cached):
        guard strongValidator(cached) != nil else { return .doNotStore(.partialContent) }
        return .store(StorablePart(whole: cached, fields: storedFields(of: whole), range: range, total: total))
    }
}

package func combines(part: StorablePart, with stored: CachedResponse) -> Bool {
    strongValidator(part.whole) != nil && strongValidator(part.whole) == strongValidator(stored)
}

package func selected(by notModified: Fields, among stored: [CachedResponse], received: WallTime) -> [Int] {
    stored.indices.filter { confirms(notModified, stored[$0], received: received) }
}

package func conditionalFields(forOneOf stored: [CachedResponse]) -> [(FieldName, [UInt8])] {
    let tags = stored.compactMap { $0.eTag?.wire }
    return tags.isEmpty ? [] : [(.ifNoneMatch, Array(tags.joined(separator: [0x2C, 0x20])))]
}

extension CachedResponse {
    package func outdated() -> CachedResponse { self }
    var refusesRanges: Bool { false }
}

package func reuse(of terms: ReuseTerms, for request: CacheRequest, use: CacheUse, now: WallTime) -> Reuse {
    reuse(of: terms, for: request, now: now)
}
package func mayServeStaleOnError(_ terms: ReuseTerms, for request: CacheRequest, use: CacheUse, now: WallTime) -> Bool {
    mayServeStaleOnError(terms, for: request, now: now)
}
package func decideStoring(
    of request: CacheRequest, status: UInt16, fields: Fields, policy: CachePolicy, treatment: CacheTreatment,
    requestTime: WallTime, responseTime: WallTime
) -> StoringDecision {
    decideStoring(
        of: request, status: status, fields: fields, policy: policy, requestTime: requestTime,
        responseTime: responseTime)
}
extension CachedResponse {
    package init(
        status: UInt16, fields: Fields, requestTime: WallTime, responseTime: WallTime, policy: CachePolicy,
        treatment: CacheTreatment
    ) {
        self.init(
            status: status, fields: fields, requestTime: requestTime, responseTime: responseTime, policy: policy)
    }
}
