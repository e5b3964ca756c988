/// What an origin said with one answer, and to what: whoever gets that answer from the cache has to be meant by it.
struct Statement: Sendable {
    let status: Int
    let cacheControl: [String]
    let vary: [String]
    /// Which request it was.
    let serial: String?
    /// Of the request, as the origin got it.
    let asked: [String: String]
    /// It had other bytes than those that are promised, so that nobody can have it whole from the store.
    let isForged: Bool

    static let selecting = ["cookie", "user-agent", "accept-language"]

    init(_ reply: Reply, to request: Head, isForged: Bool = false) {
        self.isForged = isForged
        status = reply.status
        serial = request["x-serial"]
        func members(_ name: String) -> [String] {
            (reply[name] ?? "").split(separator: ",").map { trimmed($0).lowercased() }
        }
        (cacheControl, vary) = (members("Cache-Control"), members("Vary"))
        var asked: [String: String] = [:]
        for name in Self.selecting { asked[name] = request[name] }
        self.asked = asked
    }
}

/// Whether the response that the cache gave away may be given to this client (RFC 9111 §4): each answer of an origin has a number in `X-Answer`, which
/// a validation changes with the other fields.
/// - Returns: what is wrong; nil if nothing is, or if it is an answer to this request.
func faultOfReuse(_ answer: Answer, _ question: Question, in world: World) -> String? {
    let isJoined = answer["cache-status"]?.contains("; collapsed") == true
    guard answer.isHit || isJoined, let number = answer["x-answer"].flatMap({ decimal($0) }),
        let statement = world.statement(number)
    else { return nil }
    world.count { $0.vouched += 1 }
    // Its own request was answered by it, and others fetch the rest.
    guard answer.isHit || statement.serial != "\(question.serial)" else { return nil }
    let how = answer.isHit ? "a hit" : "joined"
    let forbidding = statement.cacheControl.filter { $0 == "no-store" || $0.hasPrefix("private") }
    if !forbidding.isEmpty { return "\(how), of an answer that says \(forbidding.joined(separator: ", "))" }
    // The policies of two folders give away what is stale.
    if statement.cacheControl.contains("no-cache"), ![.first, .b].contains(question.resource.folder) {
        return "\(how), of an answer that says no-cache"
    }
    // With `Vary: *` or what a validation has added, the request that it came for is not the one that was stored.
    if answer.isHit, statement.vary.contains("*") { return "a hit, of an answer that varies by everything" }
    guard statement.status != 304 else { return nil }
    let own = [
        "cookie": question.cookieField, "user-agent": question.userAgent,
        "accept-language": question.language?.rawValue,
    ]
    for name in Statement.selecting where statement.vary.contains(name) && statement.asked[name] != own[name] ?? nil {
        return "\(how), of an answer to \(name) \(statement.asked[name] ?? "none"), by which it varies"
    }
    return nil
}
