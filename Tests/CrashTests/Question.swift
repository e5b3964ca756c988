/// A request for a resource, and what may be answered to it.
struct Question: Sendable {
    var resource: Resource
    var method = "GET"
    var language = Language.en
    var range: Wanted?
    /// Versions, whose validators go along: where there are none, nothing does.
    var ifRange: Int?
    var ifNot: Int?
    var cacheControl: String?

    init(_ resource: Resource) { self.resource = resource }

    /// Part of a body.
    enum Wanted: Sendable {
        case from(Int)
        case between(Int, through: Int)
        case last(Int)

        var text: String {
            switch self {
            case .from(let first): "bytes=\(first)-"
            case .between(let first, let last): "bytes=\(first)-\(last)"
            case .last(let count): "bytes=-\(count)"
            }
        }

        init?(text: some StringProtocol) {
            guard text.hasPrefix("bytes=") else { return nil }
            let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
            guard ends.count == 2 else { return nil }
            switch (Int(ends[0]), Int(ends[1])) {
            case (let first?, let last?): self = .between(first, through: last)
            case (let first?, nil): self = .from(first)
            case (nil, let count?): self = .last(count)
            case (nil, nil): return nil
            }
        }

        /// What it means for a body of a length; nil: nothing (RFC 9110 §14.1.2, §15.5.17).
        func resolved(_ length: Int) -> Range<Int>? {
            switch self {
            case .from(let first): first < length ? first..<length : nil
            case .between(let first, let last): first < length && first <= last ? first..<min(last + 1, length) : nil
            case .last(let count): count > 0 && length > 0 ? max(0, length - count)..<length : nil
            }
        }
    }

    /// The language of the representation that answers it.
    var variant: Language { resource.isVaried ? language : .en }

    func head(origin: UInt16) -> String {
        var text = "\(method) http://127.0.0.1:\(origin)\(resource.path) HTTP/1.1\r\nHost: 127.0.0.1:\(origin)\r\n"
        text += "Accept-Language: \(language)\r\n"
        if let range { text += "Range: \(range.text)\r\n" }
        if let ifRange, let validator = validator(ifRange) { text += "If-Range: \(validator)\r\n" }
        if let ifNot, let tag = resource.entityTag(ifNot, variant) {
            text += "If-None-Match: \(tag)\r\n"
        } else if let ifNot, let date = resource.lastModified(ifNot) {
            text += "If-Modified-Since: \(date)\r\n"
        }
        if let cacheControl { text += "Cache-Control: \(cacheControl)\r\n" }
        return text + "\r\n"
    }

    private func validator(_ version: Int) -> String? {
        resource.entityTag(version, variant) ?? resource.lastModified(version)
    }

    // MARK: judging

    /// What is wrong with an answer; nil: nothing. Of one that broke off, only what came of it is judged.
    /// - Parameter versions: those that may be served.
    func fault(in answer: Answer, versions: ClosedRange<Int>) -> String? {
        switch answer.status {
        case 200: faultInWhole(answer, versions)
        case 206: faultInPart(answer, versions)
        case 304: faultInNotModified(answer, versions)
        case 416:
            versions.contains { range?.resolved(resource.length($0, variant)) == nil }
                ? nil : "416, but the part is there"
        case 504 where cacheControl?.contains("only-if-cached") == true: nil
        default: "status \(answer.status): \(String(decoding: answer.body.prefix(200), as: UTF8.self))"
        }
    }

    /// The version that an answer claims to be.
    func version(of answer: Answer) -> Int? { answer.fields["x-version"].flatMap { Int($0) } }

    private func claimed(_ answer: Answer, _ versions: ClosedRange<Int>) -> Result<Int, Fault> {
        guard let version = version(of: answer) else { return .failure("a head of something else") }
        guard answer.entityTag == resource.entityTag(version, variant),
            answer.fields["last-modified"] == resource.lastModified(version)
        else { return .failure("a head of two representations") }
        guard versions.contains(version) else {
            return .failure("version \(version) where \(versions) may be served")
        }
        return .success(version)
    }

    private func faultInWhole(_ answer: Answer, _ versions: ClosedRange<Int>) -> String? {
        switch claimed(answer, versions) {
        case .failure(let fault): return fault.text
        case .success(let version):
            let length = resource.length(version, variant)
            if let told = answer.fields["content-length"], told != "\(length)" { return "length \(told) for \(length)" }
            if method == "HEAD" { return nil }
            if answer.isWhole && answer.body.count != length {
                return "\(answer.body.count) bytes for the whole of \(length)"
            }
            return faultInBytes(answer, version, 0..<length)
        }
    }

    private func faultInPart(_ answer: Answer, _ versions: ClosedRange<Int>) -> String? {
        switch claimed(answer, versions) {
        case .failure(let fault): return fault.text
        case .success(let version):
            let length = resource.length(version, variant)
            guard let part = range?.resolved(length) else { return "206 to who asked for nothing that is there" }
            if let ifRange, ifRange != version, validator(ifRange) != nil {
                return "206 of version \(version) in spite of If-Range: \(ifRange)"
            }
            let told = answer.fields["content-range"] ?? ""
            guard told == "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(length)" else {
                return "Content-Range \(told) for \(part) of \(length)"
            }
            if answer.isWhole && answer.body.count != part.count {
                return "\(answer.body.count) bytes for a part of \(part.count)"
            }
            return faultInBytes(answer, version, part)
        }
    }

    private func faultInNotModified(_ answer: Answer, _ versions: ClosedRange<Int>) -> String? {
        guard let ifNot, validator(ifNot) != nil else { return "304 to who did not ask for it" }
        // Not modified since is also what is older.
        let isSo = resource.entityTag(ifNot, variant) == nil ? versions.lowerBound <= ifNot : versions.contains(ifNot)
        return isSo ? nil : "304 for version \(ifNot) where \(versions) may be served"
    }

    private func length(_ version: Int) -> Int { resource.length(version, variant) }

    /// - Parameter part: of the body, whose first bytes the answer has.
    private func faultInBytes(_ answer: Answer, _ version: Int, _ part: Range<Int>) -> String? {
        guard answer.body.count <= part.count else { return "\(answer.body.count) bytes for \(part.count)" }
        let start = resource.start(version, variant) + part.lowerBound
        guard let wrong = Noise.firstDifference(answer.body[...], from: start) else { return nil }
        let sample = answer.body[wrong..<min(wrong + 16, answer.body.count)]
        let origins = Resource.origins(of: sample, among: World.resourceCountMax, versionMax: version + 3)
        // Of chance hits there are many; those of the same resource, or at the same offset of another, say most.
        let telling = origins.filter {
            $0.hasPrefix("\(resource.path) ") || $0.hasSuffix(" offset \(part.lowerBound + wrong)")
        }
        return
            "version \(version): byte \(part.lowerBound + wrong) of \(length(version)) is wrong (\(sample.map { $0 })); "
            + "it is from \(telling.isEmpty ? "elsewhere" : telling.joined(separator: "; ")) "
            + "(\(origins.count) could be: \(origins.prefix(3).joined(separator: "; ")))"
    }
}

struct Fault: Error, ExpressibleByStringInterpolation {
    var text: String
    init(stringLiteral value: String) { text = value }
}
