import ProgramUnderTest

/// Asks by itself for what is promised, in the name of nobody in particular: before the first client and behind the last one.
struct Inquiry {
    let world: World
    let originPorts: [UInt16]
    let proxyPort: UInt16

    /// Makes the proxy read the indexes, under each name that clients have for the origins.
    /// - Returns: how many digests they promise.
    func readIndexes() throws -> Int {
        for (origin, port) in originPorts.enumerated() {
            for name in Self.names {
                let answer = try answer(
                    "GET http://\(name):\(port)\(Origin.indexPath) HTTP/1.1\r\nHost: \(name):\(port)\r\n\r\n",
                    to: Question(resource: world.resource(origin)))
                guard answer.status == 200 else { throw Failure(description: "\(answer.status) for an index") }
            }
        }
        return Self.names.count * world.promised.count { $0.promise == .index }
    }

    private static let names = ["127.0.0.1", Question.originName]

    /// The origins are well again: all that is promised comes whole, whatever came before, and what is said to be stored is a hit.
    func expectPromises() {
        for resource in world.promised {
            guard var first = ask(resource) else { continue }
            // What the origin last said may be an error that is stored.
            if first.status != 200, first.isHit {
                guard let second = ask(resource, cacheControl: "no-cache") else { continue }
                first = second
            }
            guard first.status == 200 else {
                report(resource, first, "though the origin is well again")
                continue
            }
            world.count { $0.healed += 1 }
            defer { expectPart(of: resource) }
            guard !first.isHit, first.isSaidToBeStored, let second = ask(resource) else { continue }
            // Whatever has no lifetime is stale at once.
            let isExpected =
                second.isHit || !resource.isLasting && second["cache-status"]?.contains("fwd=stale") == true
            if isExpected {
                world.count { $0.kept += 1 }
            } else {
                report(resource, second, "behind an answer that was said to be stored: \(first["cache-status"] ?? "")")
            }
        }
    }

    /// Nothing is under way: a part is right, whatever an origin sent before.
    private func expectPart(of resource: Resource) {
        let form = Form(resource: resource)
        guard form.length > 1, let answer = ask(resource, range: .span(form.length / 2, form.length - 1)) else {
            return
        }
        let isRight =
            answer.status == 206 && answer.body.count == form.length - form.length / 2
            && form.firstDifference(answer.body[...], at: form.length / 2) == nil
        // Where a body was wrong within the last minute, Larder asks for the whole. If that may not be stored, it is passed on as it comes.
        let isWhole =
            resource.isPromised && answer.status == 200 && answer.body.count == form.length
            && form.firstDifference(answer.body[...], at: 0) == nil
        if !isRight && !isWhole { report(resource, answer, "for a part, though the origin is well again") }
    }

    /// Returns nil if there is no answer, or a wrong one, which has been reported.
    private func ask(_ resource: Resource, cacheControl: String? = nil, range: RangeWish? = nil) -> Answer? {
        var question = Question(resource: resource)
        question.ranges = range.map { [$0] } ?? []
        question.cacheControl = cacheControl
        let start = world.now
        do {
            let answer = try answer(question.head(ports: originPorts), to: question)
            guard let fault = faultFound(in: answer, to: question, in: world, since: start) else { return answer }
            report(resource, answer, "afterwards: \(fault)")
        } catch { world.wrong(resource, kind: "afterwards: no answer", "afterwards: \(question.summary): \(error)") }
        return nil
    }

    private func report(_ resource: Resource, _ answer: Answer, _ text: String) {
        let fields = answer.head.map { $0.fields.map { "\($0.name): \($0.value)" }.joined(separator: " | ") } ?? ""
        world.wrong(resource, kind: "\(answer.status) \(text)", "\(answer.status) \(text)\n    \(fields)")
    }

    private func answer(_ head: String, to question: Question) throws -> Answer {
        guard let socket = Socket.connect(port: proxyPort) else {
            throw Failure(description: "the proxy takes no connections")
        }
        defer { socket.close() }
        socket.setPatience(seconds: world.patience)
        socket.send(head)
        var reader = MessageReader(socket)
        return try reader.answer(to: question)
    }
}

extension Answer {
    /// `Cache-Status` says that the response is being stored for as long as it is meant to be.
    var isSaidToBeStored: Bool { self["cache-status"]?.contains("; stored") == true }
    /// Another request fetches it, and this one waits for the same bytes.
    var isJoined: Bool { self["cache-status"]?.contains("; collapsed") == true }
}
