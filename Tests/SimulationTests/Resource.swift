import Message

/// One resource of the origin: how it behaves, and how it changes.
struct Resource {
    enum Varies: CaseIterable { case no, encoding, language, both, star }
    enum RangeHabit: CaseIterable { case honest, none, careless }
    /// `shared`: one strong tag for all codings, against RFC 9110 §8.8.3.3, as deployed servers do.
    enum TagKind: CaseIterable { case strong, shared, weak, none }

    let uri: Int
    private(set) var varies: Varies
    /// It has negotiated in another way before, so what was given to one form of request may be right for another.
    private(set) var hasOtherVary = false
    let ranges: RangeHabit
    let tagKind: TagKind
    let tellsModified: Bool
    let tellsDate: Bool
    let isText: Bool
    /// What users get is made for them.
    let isPersonal: Bool
    /// What clients get is made for them, by their cookie, and says so by its lifetime alone: it has none.
    let isByCookie: Bool
    /// Another cache stands before it, in which answers age.
    let ages: Bool
    /// Where it redirects while it does.
    let target: Int
    private(set) var version = 1
    /// When that version was made.
    private(set) var modified: Int64
    private(set) var status: UInt16 = 200
    private(set) var directives: OriginDirectives
    private(set) var expiresAfter: Int64?

    /// - Parameter isSimple: one representation, a strong tag, parts as they should be.
    init(uri: Int, _ chance: inout Chance, now: Int64, isSimple: Bool) {
        self.uri = uri
        varies =
            isSimple ? .no : chance.pick([.no, .no, .no, .encoding, .encoding, .language, .language, .both, .star])
        ranges = isSimple ? .honest : chance.pick([.honest, .honest, .honest, .none, .careless])
        tagKind = isSimple ? .strong : chance.pick([.strong, .strong, .strong, .shared, .weak, .none])
        tellsDate = !chance.oneIn(8)
        // An origin without a clock knows no dates of changes (RFC 9110 §8.8.2.1).
        isByCookie = !isSimple && tagKind != .none && chance.oneIn(4)
        tellsModified = tellsDate && chance.percent(70) && !isByCookie
        isText = chance.oneIn(2)
        // One date for everybody's own would make them all the same.
        isPersonal = tagKind != .none && !isByCookie && chance.oneIn(4)
        ages = tellsDate && chance.oneIn(5)
        modified = now - Int64(chance.below(100_000))
        directives = OriginDirectives.random(&chance)
        if isSimple { directives = OriginDirectives(maxAge: 300) }
        if isByCookie { directives.restrictToOne(&chance) }
        target = (uri + 1 + chance.below(World.resourceCount)) % World.resourceCount
    }

    /// Another version from now on. Now and then it is another kind of answer, too.
    mutating func edit(_ chance: inout Chance, now: Int64) {
        version += 1
        modified = now
        status = chance.percent(70) ? 200 : chance.pick([203, 204, 301, 302, 301, 302, 302, 404, 410, 403])
        if chance.oneIn(2) { adjust(&chance) }
    }

    /// The same version, under other rules for caches.
    mutating func adjust(_ chance: inout Chance) {
        directives = OriginDirectives.random(&chance)
        expiresAfter = isByCookie ? nil : chance.perhaps(25, [-10, 0, 10, 60])
        if isByCookie { directives.restrictToOne(&chance) }
        // A deployment that negotiates from now on, or no longer. Each form has a tag of its own, or a validation could not tell.
        if tagKind == .strong || tagKind == .weak, chance.oneIn(3) {
            varies = chance.pick([.no, .encoding, .language, .both, .star])
            hasOtherVary = true
        }
    }

    func represent(for request: ClientRequest, coding: String?) -> Representation {
        var result = Representation(uri: uri, version: version, language: "en", user: user(of: request))
        if varies == .language || varies == .both || varies == .star { result.language = Resource.language(request) }
        if varies == .encoding || varies == .both {
            result.isGzip = coding.map { $0 == "gzip" } ?? Resource.prefersGzip(request)
        }
        return result
    }

    /// For whom the answer is made.
    func user(of request: ClientRequest) -> Int? {
        if isByCookie { return request.cookie }
        return isPersonal ? request.user : nil
    }

    /// The best of the two languages there are.
    static func language(_ request: ClientRequest) -> String {
        let wanted = request.languages?.ranked ?? []
        return wanted.first { $0.token == "en" || $0.token == "de" }?.token ?? "en"
    }

    private static func prefersGzip(_ request: ClientRequest) -> Bool {
        guard let encodings = request.encodings else { return false }
        let gzip = encodings.weight("gzip") ?? 0
        return gzip > 0 && gzip >= encodings.weight("identity") ?? 0
    }

    var vary: String? {
        switch varies {
        case .no: nil
        case .encoding: "Accept-Encoding"
        case .language: "accept-language"
        case .both: "Accept-Language, Accept-Encoding"
        case .star: "*"
        }
    }

    /// A weak tag stands for two versions that mean the same.
    func eTag(of representation: Representation) -> String? {
        let form = "\(representation.language)\(representation.user ?? -1)\(representation.isGzip ? "z" : "")"
        switch tagKind {
        case .strong: return "\"\(uri).\(representation.version).\(form)\""
        case .shared:
            return "\"\(uri).\(representation.version).\(representation.language)\(representation.user ?? -1)\""
        case .weak: return "W/\"\(uri).\(representation.version / 2).\(form)\""
        case .none: return nil
        }
    }
}
