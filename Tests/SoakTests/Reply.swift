import Glibc

/// What an origin answers, before it becomes bytes.
struct Reply {
    var isHTTP10 = false
    var status = 200
    var fields: [(name: String, value: String)] = []
    var body: ArraySlice<UInt8> = []
    var framing = Framing.length
    /// No body follows, whatever the fields say.
    var isBodiless = false
    /// What `Content-Length` says, where that is not the truth.
    var announcedLength: Int?

    enum Framing { case length, chunked, untilClose }

    mutating func set(_ name: String, _ value: String?) {
        fields.removeAll { $0.name == name }
        if let value { fields.append((name, value)) }
    }

    subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

    /// No shared cache may store it.
    var forbidsStoring: Bool {
        self["Cache-Control"].map { $0.contains("no-store") || $0.contains("private") } ?? false
    }
}

/// The answers of an origin: first what is right, then what the script makes of it.
struct Answering {
    let world: World
    let resource: Resource
    let request: Head
    var script: Script
    let form: Form
    /// The bytes that the origin has for that form.
    let content: ArraySlice<UInt8>
    /// How many redirects led here.
    let detours: Int
    /// The authorities of the origins.
    let origins: [String]

    /// No dates, but sent as such.
    static let oddDates = ["yesterday", "0"]
    /// At the bounds of what programs count with, and beyond.
    static let extremeNumbers = [
        "2147483647", "4294967296", "9007199254740991", "9223372036854775807", "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616", "99999999999999999999999999",
    ]

    init(
        _ world: World, _ resource: Resource, _ request: Head, _ script: Script, detours: Int = 0,
        origins: [String] = []
    ) {
        self.detours = detours
        self.origins = origins
        self.world = world
        self.resource = resource
        self.request = request
        self.script = script
        let isGzipWanted =
            request["accept-encoding"].map { $0.contains("gzip") && !$0.contains("gzip;q=0") || $0 == "*" } ?? false
        var form = Form(resource: resource, version: world.version(resource))
        if resource.isVaried, request["accept-language"]?.hasPrefix("de") == true { form.language = .de }
        if resource.isPersonal {
            let cookie = request["cookie"].flatMap { $0.hasPrefix("id=") ? UInt64($0.dropFirst(3)) : nil }
            form.kind = .personal((resource.isByCookie ? cookie : request["x-nonce"].flatMap { UInt64($0) }) ?? .max)
        } else if resource.coding == .gzip || resource.coding == .negotiated && isGzipWanted {
            form.kind = script.has(.gzipThatIsNone) ? .falseGzip : .gzip
        }
        self.form = form
        content = script.forgery?.forged(form.bytes) ?? form.bytes
    }

    private var method: Substring { request.startLine.prefix { $0 != " " } }

    private var tag: String? {
        switch resource.validator {
        case .tag, .both: "\"\(form.opaqueTag)\""
        case .weakTag: "W/\"\(form.opaqueTag)\""
        case .date, .none: nil
        }
    }

    private var lastModified: String? {
        switch resource.validator {
        case .date, .both: httpDate(form.lastModified)
        case .tag, .weakTag, .none: nil
        }
    }

    mutating func reply() -> Reply {
        var reply = right()
        twist(&reply)
        frame(&reply)
        return reply
    }

    // MARK: what is right

    private func right() -> Reply {
        if method == "POST" {
            let nonce = request["x-nonce"].flatMap { UInt64($0) } ?? 0
            return page(200, Form(resource: resource, kind: .posted(nonce)))
        }
        if method == "OPTIONS" {
            var reply = page(200, nil)
            reply.set("Allow", "GET, HEAD, POST, OPTIONS")
            return reply
        }
        if Question.overrides.contains(where: { request[$0.lowercased()] != nil }) {
            // Whoever takes this for the answer to a GET is wrong.
            var reply = page(404, Form(resource: resource, kind: .page(404)))
            reply.set("Cache-Control", "max-age=5")
            reply.isBodiless = method == "HEAD"
            return reply
        }
        var reply = describedReply()
        reply.body = content
        if isNotModified {
            reply.status = 304
            reply.isBodiless = true
            reply.body = []
            reply.set("Content-Type", nil)
            return reply
        }
        if method == "GET", isRangeHonoured, let wishes = request["range"].flatMap({ RangeWish.list($0) }) {
            ranges(wishes, &reply)
        }
        if method == "HEAD" { reply.isBodiless = true }
        return reply
    }

    /// With the fields that tell about the representation.
    private func describedReply() -> Reply {
        var reply = Reply()
        reply.set("Date", httpDate(time(nil)))
        reply.set("Content-Type", resource.mediaType)
        reply.set("ETag", tag)
        reply.set("Last-Modified", lastModified)
        reply.set("Cache-Control", resource.cacheControl)
        if form.kind == .gzip || form.kind == .falseGzip { reply.set("Content-Encoding", "gzip") }
        var vary: [String] = []
        if resource.coding == .negotiated { vary.append("Accept-Encoding") }
        if resource.isVaried { vary.append("Accept-Language") }
        if resource.variesByCookie { vary.append("Cookie") }
        if !vary.isEmpty { reply.set("Vary", vary.joined(separator: ", ")) }
        return reply
    }

    private func page(_ status: Int, _ form: Form?) -> Reply {
        var reply = Reply()
        reply.status = status
        reply.set("Date", httpDate(time(nil)))
        reply.set("Content-Type", "text/plain")
        reply.body = form?.bytes ?? []
        return reply
    }

    private var isNotModified: Bool {
        if script.has(.neverNotModified) { return false }
        if let tags = request["if-none-match"] {
            return tag.map { tags.contains("\"\(form.opaqueTag)\"") && !$0.isEmpty } ?? false || tags == "*"
        }
        return request["if-modified-since"] != nil && request["if-modified-since"] == lastModified
    }

    private var isRangeHonoured: Bool {
        guard let condition = request["if-range"] else { return true }
        return condition == tag && resource.validator != .weakTag || condition == lastModified
    }

    private func ranges(_ wishes: [RangeWish], _ reply: inout Reply) {
        let all = reply.body
        let ranges = wishes.compactMap { $0.resolved(all.count) }
        func bytes(_ range: Range<Int>) -> ArraySlice<UInt8> {
            all[all.startIndex + range.lowerBound..<all.startIndex + range.upperBound]
        }
        if ranges.isEmpty {
            reply.status = 416
            reply.set("Content-Range", "bytes */\(all.count)")
            reply.set("ETag", nil)
            reply.set("Content-Encoding", nil)
            reply.body = []
        } else if ranges.count == 1 {
            reply.status = 206
            reply.set("Content-Range", "bytes \(ranges[0].lowerBound)-\(ranges[0].upperBound - 1)/\(all.count)")
            reply.body = bytes(ranges[0])
        } else {
            reply.status = 206
            var body: [UInt8] = []
            for range in ranges {
                let label = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(all.count)"
                body += Array(
                    "--soak-boundary\r\nContent-Type: \(resource.mediaType)\r\nContent-Range: \(label)\r\n\r\n".utf8)
                body += Array(bytes(range)) + [13, 10]
            }
            reply.body = (body + Array("--soak-boundary--\r\n".utf8))[...]
            reply.set("Content-Type", "multipart/byteranges; boundary=soak-boundary")
        }
    }

    // MARK: what the script makes of it

    private mutating func twist(_ reply: inout Reply) {
        for fault in script.faults {
            switch fault {
            case .serverError: replace(&reply, by: script.dice.pick([500, 502, 503, 504]))
            case .notFound: replace(&reply, by: script.dice.pick([404, 410]))
            case .redirect:
                replace(&reply, by: script.dice.pick([301, 302, 307]))
                // One that nobody follows, where the proxy would, or where the target would stand for what is promised.
                let leadsNowhere = resource.isFollowed || resource.isPromised
                reply.set("Location", leadsNowhere ? "mailto:nobody@a.example" : "/a/0")
            case .detour: detour(&reply)
            case .noContent:
                guard method != "OPTIONS" else { break }
                reply = page(204, nil)
                reply.isBodiless = true
                if script.dice.oneIn(2) { reply.announcedLength = script.dice.below(9) }
            case .noValidator:
                reply.set("ETag", nil)
                reply.set("Last-Modified", nil)
            case .weakTag: reply.set("ETag", tag.map { $0.hasPrefix("W/") ? $0 : "W/\($0)" })
            case .oddTag: reply.set("ETag", "\"odd-\(script.dice.below(1_000_000))\"")
            case .malformedTag:
                reply.set("ETag", script.dice.pick(["nothing quoted", "\"open", "w/\"small\"", "\"\"\""]))
            case .noStore: reply.set("Cache-Control", "no-store")
            case .shortLife where !resource.isPersonal:
                reply.set("Cache-Control", script.dice.pick(["max-age=0", "max-age=1", "no-cache", "s-maxage=0"]))
            case .oldAge:
                reply.set("Age", script.dice.pick(["7200", "1", "86400", "2147483648"] + Self.extremeNumbers))
            case .extremeLife where !resource.isPersonal:
                let number = script.dice.pick(Self.extremeNumbers)
                reply.set(
                    "Cache-Control",
                    script.dice.pick(["max-age", "s-maxage", "stale-if-error"].map { "\($0)=\(number)" }))
            case .otherVary: varyByMore(&reply)
            case .notModifiedChanges: changeByValidation(&reply)
            case .oddDate:
                let now = time(nil)
                let date = script.dice.pick([nil, httpDate(now + 86_400), httpDate(now - 86_400)] + Self.oddDates)
                reply.set("Date", date)
            case .partUnasked:
                guard reply.status == 200, method == "GET", reply.body.count > 1 else { break }
                partition(&reply, 0..<1 + script.dice.below(reply.body.count - 1), whole: content)
                world.claim(resource) { $0.hasOddRanges = true }
            case .wholeForRange:
                guard reply.status == 206 else { break }
                reply.status = 200
                reply.set("Content-Range", nil)
                reply.set("Content-Type", resource.mediaType)
                reply.body = content
            case .unsatisfiable:
                guard request["range"] != nil, method == "GET" else { break }
                replace(&reply, by: 416)
                reply.body = []
                reply.set("Content-Range", script.dice.pick([nil, "bytes */\(form.length)", "bytes */1"]))
            case .otherRange, .otherTotal, .partTooShort, .partTooLong, .unlabelledPart, .multipartForOne:
                twistPart(&reply, fault)
            default: break
            }
        }
        // Last, so that no other fault gives such an answer the tag that it lacks.
        for fault in [Fault.notModifiedWithOtherTag, .notModifiedWithoutTag] where script.has(fault) {
            notModified(&reply, fault)
        }
    }

    /// The origin names more of what selects its answers than before, or less: never less than what does.
    private mutating func varyByMore(_ reply: inout Reply) {
        let more = script.dice.pick([
            "User-Agent", "X-Nothing", "accept-language", "Cookie", "*", "User-Agent, accept-encoding",
        ])
        reply.set("Vary", [reply["Vary"], more].compactMap(\.self).joined(separator: ", "))
    }

    /// With the 304 the stored response becomes another one: for one user alone, selected by more, or with a strong tag in place of a weak one.
    private mutating func changeByValidation(_ reply: inout Reply) {
        guard reply.status == 304 else { return }
        switch script.dice.below(5) {
        case 0: reply.set("Cache-Control", "private, max-age=60")
        case 1: reply.set("Cache-Control", "no-store")
        case 2 where !resource.isPersonal: reply.set("Cache-Control", "max-age=60")
        case 3: reply.set("ETag", reply["ETag"].map { $0.hasPrefix("W/") ? String($0.dropFirst(2)) : "W/\($0)" })
        default: varyByMore(&reply)
        }
    }

    /// The answer is elsewhere: at this origin, or at the other one. The rest of a body that a client has in part is not: its origin would have
    /// changed its mind in the middle of an answer.
    private mutating func detour(_ reply: inout Reply) {
        let isForAnotherMethod = Question.overrides.contains { request[$0.lowercased()] != nil }
        guard resource.isFollowed, detours < Resource.detoursMax, method == "GET" || method == "HEAD",
            !isForAnotherMethod, !origins.isEmpty, request["if-range"] == nil,
            // Its cookie does not go to another origin.
            !resource.isByCookie
        else { return }
        replace(&reply, by: script.dice.pick([301, 302, 303, 307, 308]))
        let target = resource.detour(detours + 1)
        reply.set("Location", script.dice.oneIn(2) ? target : "http://\(script.dice.pick(origins))\(target)")
        if script.dice.oneIn(4) { reply.set("Cache-Control", "max-age=60") }
    }

    /// An error, or a redirect, in place of the answer.
    private mutating func replace(_ reply: inout Reply, by status: Int) {
        guard method == "GET" || method == "HEAD" || method == "POST" else { return }
        reply = page(status, Form(resource: resource, kind: .page(status)))
        reply.isBodiless = method == "HEAD"
        if script.dice.oneIn(3) { reply.set("Cache-Control", "max-age=2") }
    }

    private mutating func notModified(_ reply: inout Reply, _ fault: Fault) {
        guard request["if-none-match"] != nil || request["if-modified-since"] != nil else { return }
        // Without any validator nothing would tell that another variant is meant.
        if fault == .notModifiedWithoutTag, resource.isVaried || resource.coding == .negotiated || resource.isPersonal {
            return
        }
        reply = describedReply()
        reply.status = 304
        reply.isBodiless = true
        var other = form
        other.version += script.dice.oneIn(2) ? 1 : max(-1, 1 - form.version)
        if other.version == form.version { other.version += 1 }
        reply.set("ETag", fault == .notModifiedWithoutTag ? nil : "\"\(other.opaqueTag)\"")
        if fault == .notModifiedWithOtherTag { reply.set("Last-Modified", httpDate(other.lastModified)) }
    }

    private func partition(_ reply: inout Reply, _ range: Range<Int>, whole: ArraySlice<UInt8>) {
        reply.status = 206
        reply.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(whole.count)")
        reply.body = whole[whole.startIndex + range.lowerBound..<whole.startIndex + range.upperBound]
    }

    /// A 206 with one range that is not what it should be, or what it says it is.
    private mutating func twistPart(_ reply: inout Reply, _ fault: Fault) {
        guard reply.status == 206, let label = reply["Content-Range"].flatMap({ ContentRange($0) }),
            let range = label.range,
            let total = label.total
        else { return }
        let whole = content
        guard total == whole.count else { return }
        world.claim(resource) { $0.hasOddRanges = true }
        switch fault {
        case .otherRange:
            let first = script.dice.below(total)
            partition(&reply, first..<first + 1 + script.dice.below(total - first), whole: whole)
        case .otherTotal:
            let wrong =
                script.dice.oneIn(5)
                ? script.dice.pick([1 << 31, 1 << 53 - 1, Int.max])
                : max(range.upperBound, total + script.dice.pick([-1, 1, 4096]))
            world.claim(resource) {
                $0.lengths.insert(wrong)
                $0.totals.insert(wrong)
            }
            reply.set("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(wrong)")
        case .partTooShort:
            guard range.count > 1 else { return }
            reply.body = reply.body.prefix(1 + script.dice.below(range.count - 1))
        case .partTooLong:
            let more = whole[(whole.startIndex + range.upperBound)...].prefix(1 + script.dice.below(2000))
            reply.body =
                whole[(whole.startIndex + range.lowerBound)..<(whole.startIndex + range.upperBound + more.count)]
        case .unlabelledPart:
            reply.set(
                "Content-Range", script.dice.pick([nil, "bytes nonsense", "bytes \(range.lowerBound)-/\(total)"]))
        default:
            var body = Array("--soak-boundary\r\nContent-Range: \(reply["Content-Range"] ?? "")\r\n\r\n".utf8)
            body += Array(reply.body) + Array("\r\n--soak-boundary--\r\n".utf8)
            reply.body = body[...]
            reply.set("Content-Range", nil)
            reply.set("Content-Type", "multipart/byteranges; boundary=soak-boundary")
        }
    }

    // MARK: how it is framed

    private mutating func frame(_ reply: inout Reply) {
        reply.isHTTP10 = script.has(.http10)
        if script.has(.chunked) || script.has(.badChunk) || script.has(.trailers) { reply.framing = .chunked }
        if script.has(.untilClose) || reply.framing == .chunked && reply.isHTTP10 { reply.framing = .untilClose }
        guard !reply.isBodiless else { return }
        if script.has(.lengthTooShort), reply.body.count > 1 {
            reply.framing = .length
            let length = script.dice.below(reply.body.count)
            reply.announcedLength = length
            world.claim(resource) { $0.lengths.insert(length) }
        } else if script.has(.lengthTooLong) {
            reply.framing = .length
            let length =
                script.dice.oneIn(5)
                ? script.dice.pick([1 << 32, 1 << 53 - 1, Int.max]) : reply.body.count + 1 + script.dice.below(5000)
            reply.announcedLength = length
            world.claim(resource) { $0.totals.insert(length) }
        }
    }
}
