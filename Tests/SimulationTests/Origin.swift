import Message

/// The origin of the model: it knows what is true, and answers what it is asked, not always well.
struct Origin {
    var resources: [Resource]
    private(set) var answers: [OriginAnswer] = []

    init(_ chance: inout Chance, resourceCount: Int, now: Int64, isSimple: Bool) {
        resources = []
        for uri in 0..<resourceCount { resources.append(Resource(uri: uri, &chance, now: now, isSimple: isSimple)) }
    }

    /// What is asked for: the client's own conditions and ranges, or those the cache put in their place.
    struct Question {
        var ifNoneMatch: [String] = []
        var ifModifiedSince: Int64?
        var ifMatch: String?
        var spans: [ClientRequest.Span] = []
        var ifRange: String?
        /// The coding that the cache asks for what is missing in, whatever the client takes.
        var coding: String?

        init(_ request: ClientRequest, replacedBy conditions: [(FieldName, [UInt8])]?) {
            guard let conditions else {
                ifNoneMatch = request.ifNoneMatch
                ifModifiedSince = request.ifModifiedSince
                ifMatch = request.ifMatch
                spans = request.spans
                ifRange = request.ifRange
                return
            }
            for (name, bytes) in conditions {
                let text = String(decoding: bytes, as: UTF8.self)
                switch name {
                case .ifNoneMatch: ifNoneMatch = text.split(separator: ",").map { String($0.drop { $0 == " " }) }
                case .ifModifiedSince:
                    ifModifiedSince = parseHTTPDate(bytes, now: WallTime(secondsSinceEpoch: 0))?.secondsSinceEpoch
                case .range:
                    let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
                    spans = [.from(Int(ends[0])!, Int(ends[1]))]
                case .ifRange: ifRange = text
                case .acceptEncoding: coding = text
                default: preconditionFailure("the cache asks with \(name)")
                }
            }
        }
    }

    mutating func answer(
        _ request: ClientRequest, _ conditions: [(FieldName, [UInt8])]?, step: Int, now: Int64, failures: Int,
        cuts: Int, isForbidden: Bool, _ chance: inout Chance
    ) -> OriginAnswer {
        let question = Question(request, replacedBy: conditions)
        var draft = AnswerDraft(
            resources[request.uri], request, coding: question.coding, now: now, &chance)
        if chance.percent(failures) {
            draft.fail(chance.pick([500, 502, 503, 504, 429, 429]))
        } else if isForbidden {
            draft.forbid()
        } else if request.isSafe {
            draft.consider(question, &chance)
        } else {
            draft = change(request, now: now, &chance)
        }
        let answer = draft.finished(id: answers.count, step: step, cuts: cuts, &chance)
        answers.append(answer)
        return answer
    }

    /// An unsafe method: it makes a new version, of what `Location` and `Content-Location` name as well.
    private mutating func change(_ request: ClientRequest, now: Int64, _ chance: inout Chance) -> AnswerDraft {
        let status: UInt16 = chance.pick([200, 200, 201, 204, 303, 404])
        var others: [(FieldName, Int)] = []
        if status < 400 {
            resources[request.uri].edit(&chance, now: now)
            if chance.oneIn(3) {
                let name: FieldName = chance.pick([.location, .contentLocation])
                let other = chance.below(resources.count)
                if other != request.uri { resources[other].edit(&chance, now: now) }
                others.append((name, other))
            }
        }
        var draft = AnswerDraft(resources[request.uri], request, now: now, &chance)
        draft.acknowledge(status, naming: others)
        return draft
    }
}
