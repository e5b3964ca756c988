import Foundation
import Synchronization

/// One client of the proxy, on a thread of its own: asks in every way that clients ask, and judges each answer.
struct Client {
    let world: World
    let originPorts: [UInt16]
    let proxyPort: UInt16
    /// Of all clients together.
    let serial: Serial
    /// Purges a URL, softly or not.
    let purge: @Sendable (_ url: String, _ isSoft: Bool) throws -> Void
    var dice: Dice
    private var socket: Socket?
    private var reader: MessageReader<Socket>?
    private var servedOnConnection = 0
    /// What was asked before on this connection.
    private var previous = "nothing"
    /// The request before was a POST that the origin may have answered before it had all of the body: whoever is left with the
    /// rest of a body may close (RFC 9112 §9.5), and the next request finds a closed connection.
    private var mayBeClosed = false
    private var manner = Manner.plain

    /// Numbers requests, and says when it is enough.
    final class Serial: Sendable {
        private let next = Atomic<Int>(0)
        let requestsMax: Int
        let end: ContinuousClock.Instant?
        /// The latest number that was taken.
        var last: Int { next.load(ordering: .relaxed) }

        init(requestsMax: Int, end: ContinuousClock.Instant?) {
            self.requestsMax = requestsMax
            self.end = end
        }

        /// Returns nil when it is enough.
        func take() -> Int? {
            if let end, ContinuousClock.now >= end { return nil }
            let number = next.wrappingAdd(1, ordering: .relaxed).newValue
            return number <= requestsMax ? number : nil
        }
    }

    init(
        _ world: World, number: Int, originPorts: [UInt16], proxyPort: UInt16, serial: Serial,
        purge: @escaping @Sendable (_ url: String, _ isSoft: Bool) throws -> Void
    ) {
        self.world = world
        self.originPorts = originPorts
        self.proxyPort = proxyPort
        self.serial = serial
        self.purge = purge
        dice = Dice(world.seed, 0xC11E, UInt64(number))
    }

    private enum Manner { case plain, pipelined, halfClosing, leaving, slow, tunnelled, walking, purging }

    mutating func run() {
        while let number = serial.take() {
            manner = number % Self.wantedTogether == 1 ? .purging : pickManner()
            switch manner {
            case .plain: converse([(number, question())])
            case .pipelined: pipeline(number)
            case .halfClosing: converse([(number, question())], halfCloses: true)
            case .leaving: leave(number, question())
            case .slow: readSlowly(number, question())
            case .tunnelled: tunnel(number)
            case .walking: walk(number)
            case .purging: purge(number)
            }
        }
        hangUp()
    }

    private mutating func pickManner() -> Manner {
        switch dice.below(100) {
        case 0...8: .pipelined
        case 9...13: .halfClosing
        case 14...20: .leaving
        case 21...26: .slow
        case 27...29: .tunnelled
        case 30...33: .walking
        default: .plain
        }
    }

    // MARK: connections

    private mutating func hangUp() {
        socket?.close()
        socket = nil
        reader = nil
    }

    private mutating func connect(receiveBuffer: CInt? = nil) -> Bool {
        if receiveBuffer != nil || dice.oneIn(40) { hangUp() }
        if socket != nil { return true }
        guard let fresh = Socket.connect(port: proxyPort, receiveBuffer: receiveBuffer) else {
            world.wrong(nil, "the proxy takes no connections")
            return false
        }
        fresh.setPatience(seconds: world.patience)
        socket = fresh
        reader = MessageReader(fresh)
        servedOnConnection = 0
        previous = "nothing"
        mayBeClosed = false
        return true
    }

    private func report(_ number: Int, _ question: Question, _ text: String) {
        world.wrong(
            question.resource, kind: text,
            """
            request \(number), \(manner): \(question.summary)
                \(text)
                before it on its connection \(servedOnConnection), the last of them \(previous)
            """)
    }

    private func report(_ number: Int, _ question: Question, _ answer: Answer, _ text: String) {
        let fields =
            answer.head.map { $0.fields.map { "\($0.name): \($0.value)" }.joined(separator: " | ") } ?? "no head"
        report(
            number, question,
            "\(text)\n    in \(answer.isComplete ? "a whole answer" : "an answer that broke off"): \(answer.status) | \(fields)"
        )
    }

    // MARK: asking

    private mutating func pipeline(_ number: Int) {
        var asked = [(number, question())]
        for _ in 0...dice.below(3) {
            guard let next = serial.take() else { break }
            asked.append((next, question()))
        }
        for index in asked.indices where asked[index].1.upload != nil {
            asked[index].1.upload = nil
            asked[index].1.method = "GET"
        }
        for index in asked.indices.dropLast() {
            asked[index].1.closes = false
            asked[index].1.minorVersion = 1
        }
        converse(asked)
    }

    /// Sends all of the requests, then reads all answers.
    private mutating func converse(_ asked: [(number: Int, question: Question)], halfCloses: Bool = false) {
        guard connect(), let socket else { return }
        let start = world.now
        let heads = asked.map { $0.question.head(ports: originPorts) }.joined()
        world.count { $0.requests += asked.count }
        // The proxy may close at once, and say why: what it says is read all the same.
        socket.send(heads)
        if let question = asked.first?.question, question.upload != nil { sendUpload(question, over: socket) }
        if halfCloses { socket.finishWriting() }
        for (number, question) in asked {
            guard take(number, question, since: start) else { return hangUp() }
        }
        if halfCloses {
            expectEnd(asked[asked.count - 1].number, asked[asked.count - 1].question, since: start)
            hangUp()
        }
    }

    private mutating func sendUpload(_ question: Question, over socket: Socket) {
        let isExpecting = question.upload == .expecting || question.upload == .expectingChunked
        // The interim response is read with the final one; whoever waits for it does not wait for ever.
        if isExpecting { _ = socket.isReadable(withinMilliseconds: 300) }
        let body = Question.uploadBody(question.nonce)
        guard question.upload == .chunked || question.upload == .expectingChunked else {
            socket.send(body)
            return
        }
        var wire: [UInt8] = []
        var rest = body
        while !rest.isEmpty {
            let piece = rest.prefix(1 + dice.below(rest.count))
            wire += Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + [13, 10]
            rest = rest.dropFirst(piece.count)
        }
        wire += Array("0\r\n\r\n".utf8)
        socket.send(wire[...])
    }

    /// Reads an answer and judges it.
    /// - Returns: true if the connection can be used further.
    private mutating func take(_ number: Int, _ question: Question, since start: ContinuousClock.Instant) -> Bool {
        guard reader != nil else { return false }
        defer { world.took(world.now - start, "request \(number), \(manner): \(question.summary)") }
        do throws(Interruption) {
            let answer = try reader!.answer(to: question)
            judge(number, question, answer, since: start)
            servedOnConnection += 1
            previous = "\(question.summary) → \(answer.status)"
            mayBeClosed = question.upload != nil && world.isExcused(question.resource, since: start)
            if answer.closes {
                expectEnd(number, question, since: start)
                return false
            }
            return true
        } catch {
            judge(number, question, error, since: start)
            return false
        }
    }

    private mutating func judge(
        _ number: Int, _ question: Question, _ answer: Answer, since start: ContinuousClock.Instant
    ) {
        if let fault = faultFound(in: answer, to: question, in: world, since: start) {
            return report(number, question, answer, fault)
        }
        world.count {
            $0.whole += 1
            $0.bytes += answer.body.count
            $0.interims += answer.interims.count
            if answer.isHit { $0.hits += 1 }
            if answer.isOwn { $0.refused += 1 }
            if question.name != nil { $0.named += 1 }
            if question.resource.isByCookie, answer.status == 200 { $0.owned += 1 }
            if answer.status == 206 { $0.parts += 1 }
            if answer.status == 304 { $0.notModified += 1 }
            if question.resource.isPromised, answer.status == 200, question.method == "GET", !question.isDirect {
                $0.promised += 1
                if answer.isHit { $0.promisedHits += 1 }
                if answer.isJoined { $0.promisedJoined += 1 }
                if answer.body.count > 1 << 20 { $0.promisedLarge += 1 }
            }
        }
        guard answer.status == 200, question.method == "GET" else { return }
        let tag = answer["etag"].flatMap {
            $0.hasPrefix("\"\(question.resource.number)-") ? String($0.dropFirst().dropLast()) : nil
        }
        world.see(question.resource, World.Seen(tag: tag, date: answer["last-modified"]))
    }

    private func judge(
        _ number: Int, _ question: Question, _ interruption: Interruption, since start: ContinuousClock.Instant
    ) {
        let isExcused = world.isExcused(question.resource, since: start)
        switch interruption {
        case .violation(let text): report(number, question, text)
        case .silent(let part):
            report(number, question, "nothing for \(world.patience) s, after \(part?.body.count ?? 0) bytes of a body")
        case .brokenOff(let part, let how):
            world.count {
                $0.brokenOff += 1
                if question.resource.isPromised, part?.isJoined == true { $0.promisedJoinedBroken += 1 }
            }
            if let part, part.head != nil,
                let fault = faultFound(in: part, to: question, in: world, since: start)
            {
                report(number, question, part, fault)
            } else if !isExcused, part != nil || !mayBeClosed {
                report(
                    number, question,
                    "\(how) after \(part.map { "\($0.status), \($0.body.count) bytes" } ?? "nothing") though the origin is well"
                )
            }
        }
    }

    /// The proxy said that it closes: nothing comes but the end.
    private mutating func expectEnd(_ number: Int, _ question: Question, since start: ContinuousClock.Instant) {
        var rest: [UInt8] = []
        do { try reader?.readToEnd(into: &rest) } catch {
            if case .timedOut = error {
                report(number, question, "the connection is not closed behind the last answer")
            }
        }
        if !rest.isEmpty {
            report(number, question, "\(rest.count) bytes behind the last answer:\n\(dump(rest.prefix(240)))")
        }
    }

    // MARK: manners

    /// Goes away before all of the answer came, orderly or not.
    private mutating func leave(_ number: Int, _ question: Question) {
        guard connect(), let socket else { return }
        world.count {
            $0.requests += 1
            $0.left += 1
        }
        socket.send(question.head(ports: originPorts))
        if question.upload != nil {
            let body = Question.uploadBody(question.nonce)
            socket.send(body.prefix(dice.below(body.count + 1)))
        } else if dice.oneIn(2), socket.isReadable(withinMilliseconds: 200) {
            var some: [UInt8] = []
            _ = socket.receive(into: &some, 1 + dice.below(20_000))
        }
        if dice.oneIn(2) { socket.reset() }
        hangUp()
    }

    /// Takes little at a time, so that the proxy has to wait for the client.
    private mutating func readSlowly(_ number: Int, _ question: Question) {
        guard connect(receiveBuffer: 4096) else { return }
        var reads = 0
        reader?.readMax = 1 + dice.below(4000)
        reader?.beforeRead = {
            reads += 1
            if reads < 60 { usleep(2000) }
        }
        converse([(number, question)])
        reader?.beforeRead = nil
        reader?.readMax = 65_536
        hangUp()
    }

    /// Through a tunnel the client speaks to the origin itself, byte for byte.
    private mutating func tunnel(_ number: Int) {
        hangUp()
        guard connect(), let socket else { return }
        var question = Question(resource: pickResource())
        question.nonce = dice.next() % 1_000_000
        question.cookie = dice.next() % UInt64(Resource.cookieCount)
        question.isDirect = true
        question.closes = dice.oneIn(2)
        question.isReset = dice.oneIn(4)
        let name = dice.oneIn(4) ? dice.pick(Question.names) : "127.0.0.1"
        let authority = "\(name):\(originPorts[question.resource.origin])"
        world.count {
            $0.requests += 1
            $0.tunnels += 1
        }
        let start = world.now
        socket.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
        do {
            guard let opening = try reader?.head(), try Head(opening).startLine.hasPrefix("HTTP/1.1 200 ") else {
                return report(number, question, "no tunnel")
            }
        } catch { return report(number, question, "no tunnel: \(error)") }
        socket.send(question.head(ports: originPorts))
        if question.isReset || dice.oneIn(4) { return leaveTunnel(number, question, since: start) }
        guard take(number, question, since: start) else { return hangUp() }
        socket.finishWriting()
        expectEnd(number, question, since: start)
        hangUp()
    }

    /// One end of the tunnel resets it in the middle of the answer. What comes before is right.
    private mutating func leaveTunnel(_ number: Int, _ question: Question, since start: ContinuousClock.Instant) {
        defer { hangUp() }
        guard question.isReset else {
            var some: [UInt8] = []
            if dice.oneIn(2) { _ = socket?.receive(into: &some, 1 + dice.below(20_000)) }
            socket?.reset()
            return
        }
        do throws(Interruption) {
            _ = try reader?.answer(to: question)
            report(number, question, "a whole answer of an origin that resets the tunnel")
        } catch {
            switch error {
            case .silent: report(number, question, "the tunnel stays open behind the reset of the origin")
            case .violation(let text): report(number, question, text)
            case .brokenOff(let part, _):
                if let part, part.head != nil, let fault = faultFound(in: part, to: question, in: world, since: start) {
                    report(number, question, part, fault)
                }
            }
        }
    }

    /// Takes what many want out of the store, while some of them fetch it, read it or wait for it.
    private mutating func purge(_ number: Int) {
        let question = Question(resource: wanted)
        let url = "http://127.0.0.1:\(originPorts[question.resource.origin])\(question.resource.path)"
        do {
            try purge(url, dice.oneIn(3))
            world.count { $0.purges += 1 }
        } catch { report(number, question, "no purge: \(error)") }
    }

    // MARK: rules

    /// One user after the other asks for what is theirs and what is not, in many spellings, on one connection.
    private mutating func walk(_ number: Int) {
        for _ in 0...2 + dice.below(6) {
            guard connect(), let socket else { return }
            let attempt = Attempt(&dice)
            world.count { $0.requests += 1 }
            socket.send(attempt.head(port: originPorts[dice.below(originPorts.count)]))
            var question = Question(resource: world.resource(0))
            question.method = "GET"
            do throws(Interruption) {
                guard let answer = try reader?.answer(to: question) else { return }
                if let fault = attempt.fault(in: answer) {
                    world.wrong(
                        nil, kind: fault, "request \(number), \(attempt): \(fault)\n\(dump(answer.body.prefix(200)))")
                }
                world.count {
                    switch answer.status {
                    case 200: $0.admitted += 1
                    case 407: $0.challenged += 1
                    default: $0.denied += 1
                    }
                }
                servedOnConnection += 1
                previous = "\(attempt) → \(answer.status)"
                if answer.closes { return hangUp() }
            } catch {
                world.wrong(nil, kind: "\(error)", "request \(number), \(attempt): \(error), before it \(previous)")
                return hangUp()
            }
        }
    }
}
