/// One request of a client.
struct Question: Sendable {
    let resource: Resource
    var method = "GET"
    var minorVersion = 1
    var language: Language?
    var acceptEncoding: String?
    var ranges: [RangeWish] = []
    /// The opaque tag in `If-Range`.
    var ifRange: String?
    /// Tags in `If-None-Match`, with quotes.
    var ifNoneMatch: String?
    var ifModifiedSince: String?
    var cacheControl: String?
    /// What a personal resource makes its content of, and what a POST's body and answer are made of.
    var nonce: UInt64 = 0
    /// Who asks, where the resource has a page for each cookie.
    var cookie: UInt64 = 0
    var userAgent: String?
    /// Tells this request from all others.
    var serial: UInt64 = 0
    /// The origin by a name, in one of its spellings. Nil: by its address.
    var name: String?
    /// The path in another spelling of the same, and with what stands behind it.
    var spelling = Spelling.plain
    var upload: Upload?
    /// A field that makes the origin take the request for one of another method.
    var override: String?
    var closes = false
    /// A field that `Connection` names.
    var hasHopField = false
    /// Runs through a tunnel: the origin itself answers.
    var isDirect = false
    /// The origin resets the tunnel in the middle of its answer.
    var isReset = false
    /// `*`, of OPTIONS.
    var isAboutServer = false
    var maxForwards: Int?

    /// The body of a POST.
    enum Upload: Equatable, Sendable { case length, chunked, expecting, expectingChunked }

    enum Spelling: Sendable {
        case plain
        /// A digit of the path as `%XX`. In front of it the rules for credentials, which need the path in every reading, would not hold.
        case encoded
        /// A query with bytes beyond ASCII, as they were typed.
        case beyondASCII
    }

    /// The name of the origins, for those who do not use their address (`dns.hosts`).
    static let originName = "soak.example"
    static let names = ["soak.example", "SOAK.example", "Soak.Example.", "soak.example."]

    var cookieField: String? { resource.isByCookie ? "id=\(cookie)" : nil }

    /// Whose page a personal resource answers with.
    var owner: UInt64 { resource.isByCookie ? cookie : nonce }

    static let overrides = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"]

    var isConditional: Bool { ifNoneMatch != nil || ifModifiedSince != nil }

    /// True if an answer in gzip may come: RFC 9110 §12.5.3.
    var takesGzip: Bool {
        guard let acceptEncoding else { return true }
        return acceptEncoding.contains("gzip") && !acceptEncoding.contains("gzip;q=0") || acceptEncoding == "*"
    }

    /// Of a POST; follows from the nonce, so that the origin knows it too.
    static func uploadBody(_ nonce: UInt64) -> ArraySlice<UInt8> {
        var dice = Dice(nonce, 77)
        let start = dice.below(Noise.period)
        let length = dice.oneIn(8) ? dice.below(200_000) : dice.below(5000)
        return Noise.bytes[start..<start + length]
    }

    func head(ports: [UInt16]) -> String {
        let authority = "\(name ?? "127.0.0.1"):\(ports[resource.origin])"
        let path = isAboutServer ? "" : spelledPath
        let target = isDirect ? (isAboutServer ? "*" : path) : "http://\(authority)\(path)"
        var text =
            "\(method) \(target) HTTP/1.\(minorVersion)\r\nHost: \(authority)\r\nX-Number: \(resource.number)\r\n"
        func add(_ name: String, _ value: (some CustomStringConvertible)?) {
            if let value { text += "\(name): \(value)\r\n" }
        }
        add("Accept-Language", language?.rawValue)
        add("Accept-Encoding", acceptEncoding)
        add("If-Range", ifRange.map { "\"\($0)\"" })
        if !ranges.isEmpty { add("Range", "bytes=" + ranges.map(\.description).joined(separator: ", ")) }
        add("If-None-Match", ifNoneMatch)
        add("If-Modified-Since", ifModifiedSince)
        add("Cache-Control", cacheControl)
        add("Max-Forwards", maxForwards)
        add("User-Agent", userAgent)
        add("X-Serial", serial)
        if name != nil { add("X-Name", Self.originName) }
        add("Cookie", cookieField)
        if let override { add(override, "PATCH") }
        if resource.isPersonal && !resource.isByCookie || upload != nil { add("X-Nonce", nonce) }
        if isDirect { add("X-Direct", isReset ? "reset" : "yes") }
        switch upload {
        case .length: add("Content-Length", Self.uploadBody(nonce).count)
        case .chunked: add("Transfer-Encoding", "chunked")
        case .expecting:
            add("Content-Length", Self.uploadBody(nonce).count)
            add("Expect", "100-continue")
        case .expectingChunked:
            add("Transfer-Encoding", "chunked")
            add("Expect", "100-continue")
        case nil: break
        }
        var options: [String] = []
        if closes { options.append("close") }
        if minorVersion == 0 && !closes { options.append("keep-alive") }
        if hasHopField {
            options.append("X-Hop")
            add("X-Hop", "stays here")
            add("Proxy-Connection", "keep-alive")
        }
        if !options.isEmpty { add("Connection", options.joined(separator: ", ")) }
        return text + "\r\n"
    }

    private var spelledPath: String {
        let path = resource.path
        switch spelling {
        case .plain: return path
        case .encoded:
            return String(path.dropLast()) + "%" + String(path.utf8.last ?? 0, radix: 16)
        case .beyondASCII: return "\(path)?soak=\u{FC}"
        }
    }

    /// For messages.
    var summary: String {
        head(ports: [1, 2]).split(separator: "\r\n").joined(separator: " | ")
    }
}
