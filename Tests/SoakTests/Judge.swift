/// Whether an answer is right: its bytes are those of one version of what was asked for, and its head says so.
///
/// - Parameter start: when the request was sent.
/// - Returns: what is wrong; nil if nothing is.
func faultFound(in answer: Answer, to question: Question, in world: World, since start: ContinuousClock.Instant)
    -> String?
{
    let judge = Judge(question: question, answer: answer, world: world, start: start)
    if !question.isDirect {
        let missing = mannersMissing(in: answer, to: question)
        guard missing.isEmpty else { return missing.joined(separator: "; ") }
        if let fault = faultOfReuse(answer, question, in: world) { return fault }
    }
    return judge.faultOfStatus()
}

private struct Judge {
    let question: Question
    let answer: Answer
    let world: World
    let start: ContinuousClock.Instant

    private var resource: Resource { question.resource }
    private var claims: World.Claims { world.claims(resource) }
    private var isExcused: Bool { world.isExcused(resource, since: start) }

    func faultOfStatus() -> String? {
        if answer.isFromElsewhere {
            world.count { $0.detours += 1 }
            guard resource.isFollowed else { return "redirects were followed for \(resource.path)" }
            if (answer["location"] ?? "mailto:").hasPrefix("mailto:") == false { return "a redirect came back" }
        }
        if answer.isOwn { return faultOfRefusal() }
        if question.override != nil {
            // Another method as far as the origin is concerned: nothing that is stored is an answer.
            if answer.isHit { return "a hit for \(question.override ?? "")" }
            return answer.status == 404 ? faultOfWhole() : isExcused ? nil : "\(answer.status) for another method"
        }
        if question.method == "OPTIONS" {
            return answer.status == 200 || isExcused ? nil : "\(answer.status) to OPTIONS"
        }
        switch answer.status {
        case 200: return faultOfWhole()
        case 204: return isExcused ? nil : "204"
        case 206: return faultOfPart()
        case 304: return question.isConditional ? nil : "304 for a request without conditions"
        case 416: return faultOf416()
        // The body had left when the origin wanted a log-in, and the proxy keeps none.
        case 401 where resource.isGuarded && question.upload != nil: return nil
        default: return isExcused ? faultOfWhole() : "\(answer.status) from an origin that is well"
        }
    }

    /// Larder says why it has no answer: right where the origin gave it none.
    private func faultOfRefusal() -> String? {
        if answer.status == 504, question.cacheControl == "only-if-cached" { return nil }
        guard answer.status == 502 || answer.status == 504 else { return "\(answer.status) of Larder's own" }
        return isExcused ? nil : "\(answer.status) though the origin is well: \(answer["proxy-status"] ?? "")"
    }

    private func faultOf416() -> String? {
        guard !question.ranges.isEmpty else { return "416 for a request without a range" }
        guard let text = answer["content-range"] else { return isExcused ? nil : "416 without Content-Range" }
        guard let range = ContentRange(text), range.range == nil, let total = range.total else {
            return "416 with Content-Range: \(text)"
        }
        if isExcused || claims.hasOddRanges { return nil }
        return question.ranges.allSatisfy { $0.resolved(total) == nil } ? nil : "416, but \(total) bytes hold it"
    }

    // MARK: forms

    private var isGzip: Bool { answer["content-encoding"]?.lowercased() == "gzip" }

    /// All forms that may be here, the latest version first.
    private var candidates: [Form] {
        if question.method == "POST", answer.status == 200 {
            return [Form(resource: resource, kind: .posted(question.nonce))]
        }
        if answer.status != 200 && answer.status != 206 {
            return [Form(resource: resource, kind: .page(answer.status))]
        }
        let language = resource.isVaried ? question.language ?? .en : .en
        let kinds: [Form.Kind] =
            if resource.isPersonal { [.personal(question.owner)] } else if isGzip { [.gzip, .falseGzip] } else {
                [.plain]
            }
        return (1...world.version(resource)).reversed().flatMap { version in
            kinds.map { Form(resource: resource, version: version, language: language, kind: $0) }
        }
    }

    /// The form that these bytes are of. Of a few bytes there may be several: then the one that suits the head. Returns nil if
    /// there is none.
    private func form(of bytes: ArraySlice<UInt8>, at start: Int, among candidates: [Form]) -> Form? {
        let matching = candidates.filter { $0.firstDifference(bytes, at: start) == nil }
        return matching.first { faultOfTag($0) == nil && $0.length == start + bytes.count }
            ?? matching.first { faultOfTag($0) == nil } ?? matching.first
    }

    private func strangeness(of bytes: ArraySlice<UInt8>, at start: Int) -> String {
        // The candidate that is right for longest tells most.
        let matches = candidates.map { (form: $0, count: $0.firstDifference(bytes, at: start) ?? bytes.count) }
        guard let best = matches.max(by: { $0.count < $1.count }) else { return "no form is known" }
        let place = bytes.startIndex + best.count
        var text =
            "\(bytes.count) bytes at \(start), the first \(best.count) are of \(best.form), whose length is \(best.form.length)"
        for other in candidates + [Form(resource: resource)] {
            let rest = bytes[place...].prefix(64)
            if rest.count >= 8, other.firstDifference(rest, at: start + best.count) == nil {
                text += "; then come those of \(other)"
            }
        }
        let from = max(bytes.startIndex, place - 48)
        return text
            + "; around the place:\n\(dump(bytes[from..<place]))\n      --\n\(dump(bytes[place...].prefix(240)))"
    }

    /// What the tag says must be what the bytes are: nothing mixes a head with another body.
    private func faultOfTag(_ form: Form) -> String? {
        guard answer.status == 200 || answer.status == 206, question.method != "POST" else { return nil }
        if let date = answer["last-modified"], date != httpDate(form.lastModified) {
            return "Last-Modified: \(date) on the bytes of \(form)"
        }
        guard let tag = answer["etag"] else { return nil }
        let opaque = tag.hasPrefix("W/") ? tag.dropFirst(2).dropFirst().dropLast() : tag.dropFirst().dropLast()
        guard opaque.hasPrefix("\(resource.number)-") else { return nil }
        var stated = form
        if !tag.hasPrefix("W/") || opaque == form.opaqueTag {
            return opaque == form.opaqueTag ? nil : "the tag \(tag) on the bytes of \(form)"
        }
        // In another coding than it came in the tag is that of the other, and weak (RFC 9110 §8.8.1).
        for kind in [Form.Kind.plain, .gzip] {
            stated.kind = kind
            if opaque == stated.opaqueTag { return nil }
        }
        return "the tag \(tag) on the bytes of \(form)"
    }

    // MARK: whole bodies

    private func faultOfWhole() -> String? {
        if question.method == "HEAD" { return faultOfHead() }
        if resource.isPromised, question.method == "GET", answer.status == 200 { return faultOfPromised() }
        if let form = form(of: answer.body[...], at: 0, among: candidates) {
            return faultOfWhole(form, answer.body.count)
        }
        guard isGzip, let decoded = gunzipped(answer.body, lengthMax: Noise.lengthMax) else {
            return strangeness(of: answer.body[...], at: 0)
        }
        // Compressed by Larder.
        guard let form = decodedForm(of: decoded.bytes) else { return strangeness(of: answer.body[...], at: 0) }
        world.count { $0.decoded += 1 }
        guard answer.isComplete else { return faultOfWhole(form, decoded.bytes.count) }
        guard decoded.isWhole else { return "a gzip body that does not come to its end" }
        return faultOfWhole(form, decoded.bytes.count)
    }

    private func decodedForm(of bytes: [UInt8]) -> Form? {
        guard answer.status == 200 else { return form(of: bytes[...], at: 0, among: candidates) }
        let language = resource.isVaried ? question.language ?? .en : .en
        let kind: Form.Kind = resource.isPersonal ? .personal(question.owner) : .plain
        let forms = (1...world.version(resource)).map {
            Form(resource: resource, version: $0, language: language, kind: kind)
        }
        return form(of: bytes[...], at: 0, among: forms.reversed())
    }

    private func faultOfWhole(_ form: Form, _ count: Int) -> String? {
        if answer.isComplete, count != form.length, !claims.lengths.contains(count) {
            return "\(count) bytes of \(form), whose length is \(form.length), as though they were all"
        }
        // Of nothing every form could be the beginning; and all of it, if the origin once said so.
        let saysForm = count > 0 || answer.isComplete && form.length == 0 && !claims.lengths.contains(0)
        return saysForm ? faultOfTag(form) : nil
    }

    /// Whoever gets to the end has what was promised, whatever an origin claimed. What breaks off before may be wrong where the origin was.
    private func faultOfPromised() -> String? {
        let form = Form(resource: resource)
        let isBeginning = form.firstDifference(answer.body[...], at: 0) == nil
        if answer.isComplete, !isBeginning || answer.body.count != form.length {
            return "a whole answer that is not what was promised: \(strangeness(of: answer.body[...], at: 0))"
        }
        if !isBeginning {
            return world.isForged(resource, since: start) ? nil : strangeness(of: answer.body[...], at: 0)
        }
        return answer.isComplete || !answer.body.isEmpty ? faultOfTag(form) : nil
    }

    /// A part of what is promised proves nothing: one that an origin sends is passed on, and so are several in one answer. One of a body that is being
    /// fetched is called a hit, and ends before anybody knows the digest. What is stored whole was proven, and so is a part that is all of it.
    private func mayBeForged(_ range: Range<Int>, total: Int?) -> Bool {
        let length = Form(resource: resource).length
        let isOne = answer.head.map(isMultipart) == false
        let isAll = isOne && answer.isComplete && range == 0..<length && total == length
        guard resource.isPromised, !isAll else { return false }
        guard answer.isHit else { return world.isForged(resource, since: start) }
        guard let number = answer["x-answer"].flatMap({ decimal($0) }) else { return false }
        return world.isForged(resource, since: start, from: number)
    }

    /// A HEAD says what a GET would get.
    private func faultOfHead() -> String? {
        guard answer.status == 200, !resource.isPersonal, let text = answer["content-length"] else { return nil }
        guard let length = decimal(text) else { return "Content-Length: \(text)" }
        let claims = claims
        let lengths = candidates.map(\.length) + claims.lengths + claims.totals
        return lengths.contains(length) ? nil : "HEAD says \(length) bytes, which no form of it has"
    }

    // MARK: parts

    private func faultOfPart() -> String? {
        if question.ranges.isEmpty, !claims.hasOddRanges { return "206 for a request without a range" }
        guard question.method == "GET" else { return nil }
        guard let head = answer.head else { return "no head" }
        if isMultipart(head) { return faultOfMultipart(head) }
        guard let text = head["content-range"], let part = ContentRange(text), let range = part.range else {
            // What the origin did not label no client can take for anything.
            return claims.hasOddRanges ? nil : "206 with Content-Range: \(head["content-range"] ?? "none")"
        }
        // Nobody counts with such lengths: Larder passes on what it cannot place.
        guard part.total ?? 0 < 1 << 53 else { return nil }
        if answer.isComplete, answer.body.count != range.count {
            return "\(answer.body.count) bytes, labelled \(text)"
        }
        guard answer.body.count <= range.count else { return "\(answer.body.count) bytes, labelled \(text)" }
        if !question.ranges.contains(where: { $0.resolved(part.total ?? .max) == range }), question.ranges.count == 1,
            !claims.hasOddRanges
        {
            return "asked for \(question.ranges), got \(text)"
        }
        return faultOfPart(answer.body[...], range, total: part.total)
    }

    private func faultOfPart(_ bytes: ArraySlice<UInt8>, _ range: Range<Int>, total: Int?) -> String? {
        let matching = candidates.filter { $0.firstDifference(bytes, at: range.lowerBound) == nil }
        guard let first = matching.first else {
            return mayBeForged(range, total: total) ? nil : strangeness(of: bytes, at: range.lowerBound)
        }
        // A few bytes may be those of several versions by chance.
        let form = matching.first { faultOfTag($0) == nil } ?? first
        if let total, !matching.contains(where: { $0.length == total }),
            !claims.lengths.union(claims.totals).contains(total)
        {
            return "a part of \(total) bytes, labelled \(answer["content-range"] ?? ""), but \(form) has \(form.length)"
        }
        if let ifRange = question.ifRange, ifRange != form.opaqueTag, bytes.count >= 8, !claims.hasOddRanges {
            return "If-Range \(ifRange), but the part is of \(form)"
        }
        return faultOfTag(form)
    }

    private func faultOfMultipart(_ head: Head) -> String? {
        guard answer.isComplete else { return nil }
        do throws(Violation) {
            let parts = try multipart(answer.body, type: head["content-type"] ?? "")
            world.count { $0.multiparts += 1 }
            for part in parts {
                if let fault = faultOfPart(part.bytes, part.range, total: part.total) { return fault }
            }
            return nil
        } catch {
            // The origin lied inside the parts, or about their length: Larder passes several parts on as they come.
            if claims.hasOddRanges || claims.lengths.contains(answer.body.count) { return nil }
            return "\(error)\n\(dump(answer.body.prefix(400)))"
        }
    }
}

/// One part of a `multipart/byteranges` body.
struct BodyPart {
    var range: Range<Int>
    var total: Int?
    var bytes: ArraySlice<UInt8>
}

/// Takes a `multipart/byteranges` body apart (RFC 9110 §14.6, RFC 2046 §5.1).
func multipart(_ body: [UInt8], type: String) throws(Violation) -> [BodyPart] {
    guard let equals = type.range(of: "boundary=") else { throw Violation("no boundary in \(type)") }
    let boundary = String(type[equals.upperBound...].filter { $0 != "\"" })
    let delimiter = Array("--\(boundary)".utf8)
    var parts: [BodyPart] = []
    var at = 0
    while true {
        guard
            firstPlace(of: delimiter, in: body, from: at) == at || body[at...].starts(with: [13, 10]) && parts.isEmpty
        else { throw Violation("no delimiter at \(at) of the multipart body") }
        if body[at] == 13 { at += 2 }
        at += delimiter.count
        guard at + 2 <= body.count else { throw Violation("the multipart body ends behind a delimiter") }
        if body[at] == 0x2D, body[at + 1] == 0x2D {
            guard body[(at + 2)...].allSatisfy({ $0 == 13 || $0 == 10 }) else {
                throw Violation("bytes behind the last delimiter")
            }
            guard !parts.isEmpty else { throw Violation("no parts") }
            return parts
        }
        guard let end = firstPlace(of: [13, 10, 13, 10], in: body, from: at) else {
            throw Violation("a part without a head")
        }
        let head = try Head(Array("part".utf8)[...] + body[at..<end + 4])
        guard let text = head["content-range"], let label = ContentRange(text), let range = label.range else {
            throw Violation("a part with Content-Range: \(head["content-range"] ?? "none")")
        }
        let first = end + 4
        guard first + range.count + 2 <= body.count, body[first + range.count] == 13,
            body[first + range.count + 1] == 10
        else { throw Violation("a part that is not as long as \(text)") }
        parts.append(BodyPart(range: range, total: label.total, bytes: body[first..<first + range.count]))
        at = first + range.count + 2
    }
}
