import Message

/// An answer as the origin composes it: conditions first, then ranges (RFC 9110 §13.2.2).
struct AnswerDraft {
    let resource: Resource
    let request: ClientRequest
    var status: UInt16
    var representation: Representation?
    var description = Description()
    var contentRange: String?
    var body: [UInt8] = []
    /// The body is longer or shorter than `contentRange` says.
    private var lies = false
    var fields: [(FieldName, String)] = []
    private let now: Int64

    init(
        _ resource: Resource, _ request: ClientRequest, coding: String? = nil, now: Int64, _ chance: inout Chance
    ) {
        self.resource = resource
        self.request = request
        self.now = now
        status = resource.status
        let representation = resource.represent(for: request, coding: coding)
        self.representation = representation
        let age = resource.ages ? Int64(chance.below(20)) : 0
        description.directives = resource.directives.text == nil ? nil : resource.directives
        description.expires = resource.expiresAfter.map { now + $0 }
        description.date = resource.tellsDate ? now - age : nil
        // What stands before it rounds, and may know of more delay than Date tells.
        description.age = age > 0 ? age + Int64(chance.below(2)) : nil
        description.eTag = resource.eTag(of: representation)
        description.lastModified = resource.tellsModified ? resource.modified : nil
        body = representation.content
    }

    mutating func fail(_ status: UInt16) {
        self.status = status
        representation = nil
        description = Description(date: description.date)
        body = Array("no".utf8)
    }

    /// What it says about caching, it says all the same.
    mutating func forbid() {
        status = 403
        representation = nil
        body = Array("no".utf8)
    }

    mutating func acknowledge(_ status: UInt16, naming others: [(FieldName, Int)]) {
        self.status = status
        fields += others.map { ($0.0, "/\($0.1)") }
        let isItself = status == 200 && others.contains { $0.0 == .contentLocation && $0.1 == request.uri }
        // A receipt is no answer to a GET, unless it says so (RFC 9110 §9.3.3).
        if !isItself || resource.status != 200 {
            representation = nil
            body = Array("done".utf8)
            fields.removeAll { $0.0 == .contentLocation && $0.1 == "/\(request.uri)" }
        }
    }

    mutating func consider(_ question: Origin.Question, _ chance: inout Chance) {
        guard status == 200 else { return }
        if let ifMatch = question.ifMatch, ifMatch != description.eTag || ifMatch.hasPrefix("W/") {
            fail(412)
        } else if isConfused(question, &chance) {
            status = 304
            body = []
        } else if isNotModified(question) {
            status = 304
            body = []
            if chance.oneIn(3) { description.directives = nil }
            if description.eTag != nil, chance.oneIn(2) { description.lastModified = nil }
        } else if request.method == .get, !question.spans.isEmpty, resource.ranges != .none {
            takeParts(question, &chance)
        }
    }

    /// Says 304 to the tag of something else, but its own tag shows it.
    private func isConfused(_ question: Origin.Question, _ chance: inout Chance) -> Bool {
        guard resource.ranges == .careless, resource.tagKind == .strong else { return false }
        return !question.ifNoneMatch.isEmpty && chance.oneIn(4)
    }

    private func isNotModified(_ question: Origin.Question) -> Bool {
        if !question.ifNoneMatch.isEmpty {
            guard let eTag = description.eTag else { return false }
            let opaque = eTag.drop { $0 != "\"" }
            return question.ifNoneMatch.contains { $0.drop { $0 != "\"" } == opaque }
        }
        guard let since = question.ifModifiedSince, let modified = description.lastModified else { return false }
        return modified <= since
    }

    private mutating func takeParts(_ question: Origin.Question, _ chance: inout Chance) {
        let isCareless = resource.ranges == .careless && chance.oneIn(2)
        if let ifRange = question.ifRange, !isCareless, !holds(ifRange) { return }
        let length = body.count
        guard question.spans.count == 1 else {
            status = 206
            fields.append((.contentType, "multipart/byteranges; boundary=x"))
            body = Array("--x parts --x--".utf8)
            representation = nil
            return
        }
        guard var range = question.spans[0].resolved(length) else {
            status = 416
            body = []
            representation = nil
            description = Description(date: description.date)
            contentRange = "bytes */\(length)"
            return
        }
        if isCareless { misplace(&range, &chance) }
        status = 206
        body = Array(body[range])
        contentRange = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
        if isCareless, chance.oneIn(6) {
            body = chance.oneIn(2) ? Array(body.dropLast(1 + chance.below(body.count))) : body + [0]
        }
        if isCareless, chance.oneIn(4) { description.eTag = nil }
        if isCareless, chance.oneIn(8) { contentRange = nil }
        lies = contentRange != nil && body.count != range.count
    }

    /// Another part than the one asked for; what it says of it is true.
    private func misplace(_ range: inout Range<Int>, _ chance: inout Chance) {
        guard range.count > 1, chance.oneIn(2) else { return }
        let middle = range.lowerBound + 1 + chance.below(range.count - 1)
        range = chance.oneIn(2) ? range.lowerBound..<middle : middle..<range.upperBound
    }

    private func holds(_ ifRange: String) -> Bool {
        if ifRange.hasSuffix("\"") { return ifRange == description.eTag && !ifRange.hasPrefix("W/") }
        guard let modified = description.lastModified, let date = description.date else { return false }
        return ifRange == httpDate(modified) && date - modified >= 1
    }

    func finished(id: Int, step: Int, cuts: Int, _ chance: inout Chance) -> OriginAnswer {
        var head = Fields()
        let tellsLength = !chance.oneIn(4)
        let hasContent = request.method != .head && status != 304 && status != 204
        let sent = hasContent ? body : []
        if let date = description.date { head.append(.date, httpDate(date)) }
        if let text = description.directives?.text { head.append(.cacheControl, text) }
        if let expires = description.expires { head.append(.expires, httpDate(expires)) }
        if let age = description.age { head.append(.age, "\(age)") }
        if let eTag = description.eTag { head.append(.eTag, eTag) }
        if let modified = description.lastModified { head.append(.lastModified, httpDate(modified)) }
        if let vary = resource.vary, representation != nil { head.append(.vary, vary) }
        if let contentRange { head.append(.contentRange, contentRange) }
        if resource.ranges == .none, resource.uri % 2 == 0 { head.append(.acceptRanges, "none") }
        if representation?.isGzip == true { head.append(.contentEncoding, "gzip") }
        for (name, value) in fields { head.append(name, value) }
        if !head.contains(.contentType), status != 304 {
            head.append(.contentType, resource.isText ? "text/plain" : "image/png")
        }
        if status == 301 || status == 302 { head.append(.location, "/\(resource.target)") }
        if tellsLength, status != 304, status != 204 { head.append(.contentLength, "\(body.count)") }
        let cut = sent.count > 1 && chance.percent(cuts) ? chance.below(sent.count) : nil
        return OriginAnswer(
            id: id, request: request, step: step, status: status, representation: representation,
            description: description, fields: head, body: sent, tellsLength: tellsLength, cut: cut, lies: lies,
            interimCount: chance.oneIn(10) ? 1 : 0)
    }
}
