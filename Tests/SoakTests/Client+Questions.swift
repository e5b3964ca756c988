/// What clients ask, in every way that clients ask it.
extension Client {
    /// What is promised and many want at one time: one of them fetches it, and the others join.
    var wanted: Resource { world.promised[serial.last / Self.wantedTogether % world.promised.count] }
    /// So many requests later it is something else.
    static var wantedTogether: Int { 32 }

    /// Some resources are asked for much more often than others.
    mutating func pickResource() -> Resource {
        if dice.oneIn(4) {
            let resource = wanted
            return resource.twin.flatMap { dice.oneIn(2) ? $0 : nil } ?? resource
        }
        let count = world.resourceCount
        return world.resource(dice.oneIn(3) ? dice.below(max(1, count / 8)) : dice.below(count))
    }

    mutating func question() -> Question {
        var question = Question(resource: pickResource())
        question.nonce = dice.next() % 1_000_000
        question.cookie = dice.next() % UInt64(Resource.cookieCount)
        question.userAgent = dice.pick([nil, "soak/1", "soak/2"])
        question.serial = dice.next()
        if dice.oneIn(6) { question.name = dice.pick(Question.names) }
        if dice.oneIn(20) { question.spelling = dice.pick([.encoded, .beyondASCII]) }
        if question.resource.promise == .index {
            // An index promises what is below the name that it was asked by, and nothing with a query.
            if question.name != nil { question.name = Question.originName }
            if question.spelling == .beyondASCII { question.spelling = .plain }
        }
        if dice.oneIn(2) { question.language = dice.pick([.en, .de]) }
        question.acceptEncoding = dice.pick([
            nil, nil, "gzip", "gzip, deflate, br", "identity", "gzip;q=0", "*", "br;q=1, gzip;q=0.8",
        ])
        if dice.oneIn(25) { question.minorVersion = 0 }
        if dice.oneIn(30) { question.closes = true }
        if dice.oneIn(12) { question.hasHopField = true }
        switch dice.below(100) {
        case 0...5: question.method = "HEAD"
        case 6...12: upload(&question)
        case 13, 14: options(&question)
        case 15...34: askForRanges(&question)
        default: break
        }
        guard question.method == "GET" || question.method == "HEAD" else { return question }
        if dice.oneIn(40), question.ranges.isEmpty {
            question.override = dice.pick(Question.overrides)
            return question
        }
        if dice.oneIn(10) { addConditions(&question) }
        if dice.oneIn(12) {
            question.cacheControl = dice.pick([
                "no-cache", "max-age=0", "no-store", "only-if-cached", "max-stale", "min-fresh=5",
                "\(dice.pick(["max-age", "max-stale", "min-fresh", "stale-if-error"]))=\(dice.pick(Answering.extremeNumbers))",
            ])
        }
        return question
    }

    private mutating func upload(_ question: inout Question) {
        question.method = "POST"
        question.upload = dice.pick([.length, .length, .chunked, .expecting, .expectingChunked])
        question.acceptEncoding = nil
        if question.minorVersion == 0 { question.upload = .length }
    }

    private mutating func options(_ question: inout Question) {
        question.method = "OPTIONS"
        question.isAboutServer = dice.oneIn(2)
        if dice.oneIn(2) { question.maxForwards = dice.below(2) }
    }

    private mutating func askForRanges(_ question: inout Question) {
        let resource = question.resource
        let length = max(1, resource.length(world.version(resource), question.language ?? .en))
        func wish() -> RangeWish {
            var dice = self.dice
            defer { self.dice = dice }
            let first = dice.below(length)
            switch dice.below(7) {
            case 6: return dice.pick([.from(.max), .last(.max), .span(0, .max), .span(first, 1 << 53), .from(1 << 53)])
            case 0: return .from(first)
            case 1: return .last(1 + dice.below(length))
            case 2: return .span(0, dice.below(length))
            case 3: return .span(length + dice.below(10), length + 10 + dice.below(10))
            default: return .span(first, first + dice.below(length))
            }
        }
        question.ranges = (0..<(dice.oneIn(6) ? 2 + dice.below(3) : 1)).map { _ in wish() }
        if dice.oneIn(3) { question.ifRange = world.seen(resource).tag }
    }

    private mutating func addConditions(_ question: inout Question) {
        guard question.ifRange == nil else { return }
        let seen = world.seen(question.resource)
        switch dice.below(4) {
        case 0: question.ifNoneMatch = seen.tag.map { "\"\($0)\"" }
        case 1: question.ifNoneMatch = seen.tag.map { "\"other\", W/\"\($0)\"" }
        case 2: question.ifNoneMatch = "\"no-such-tag\""
        default: question.ifModifiedSince = seen.date
        }
    }
}
