import EventLoop
import Foundation

/// The servers behind the proxy. They do with each request what its script says, each connection on a thread of its own.
final class Origin: Sendable {
    private let world: World
    private let guards = Guards()
    private let listeners: [ListeningSocket]
    private let connections = Locked<(isOver: Bool, open: [Int: Socket], next: Int)>((false, [:], 0))
    private let threads = DispatchGroup()

    var ports: [UInt16] { listeners.map(\.port) }
    /// How many requests were answered with a challenge.
    var challenges: Int { guards.challenges }

    init(_ world: World) throws {
        self.world = world
        listeners = try (0..<Resource.originCount).map { _ in try ListeningSocket() }
        for number in listeners.indices {
            threads.enter()
            Thread.detachNewThread { [self] in
                accept(number)
                threads.leave()
            }
        }
    }

    /// Ends all connections, and waits for their threads.
    func stop() {
        let open = connections.withLock {
            $0.isOver = true
            return Array($0.open.values)
        }
        for listener in listeners { listener.shutDown() }
        for socket in open { socket.shutDown() }
        threads.wait()
    }

    private func accept(_ origin: Int) {
        while let socket = listeners[origin].accept() {
            let number: Int? = connections.withLock {
                guard !$0.isOver else { return nil }
                $0.next += 1
                $0.open[$0.next] = socket
                return $0.next
            }
            guard let number else { return }
            threads.enter()
            Thread.detachNewThread { [self] in
                var connection = OriginConnection(
                    world, socket, origin: origin, number: number, ports: ports, guards)
                connection.serve()
                connections.withLock { $0.open[number] = nil }
                socket.close()
                threads.leave()
            }
        }
    }
}

/// One connection that the proxy opened to an origin.
private struct OriginConnection {
    let world: World
    let socket: Socket
    let origin: Int
    let number: Int
    let ports: [UInt16]
    let guards: Guards
    var port: UInt16 { ports[origin] }
    var reader: MessageReader<Socket>
    /// Requests on this connection so far.
    var served = 0
    /// What came before on this connection: bytes that were left behind may be met by the next answer.
    var previous = ""

    init(_ world: World, _ socket: Socket, origin: Int, number: Int, ports: [UInt16], _ guards: Guards) {
        self.world = world
        self.socket = socket
        self.origin = origin
        self.number = number
        self.ports = ports
        self.guards = guards
        reader = MessageReader(socket)
    }

    mutating func serve() {
        while true {
            let bytes: ArraySlice<UInt8>
            do { bytes = try reader.head() } catch {
                if case .violation(let violation) = error { world.wrong(nil, "what the proxy sends: \(violation)") }
                return
            }
            do throws(Violation) {
                let head = try Head(bytes)
                guard try answer(head) else { return }
            } catch {
                world.wrong(nil, "what the proxy sends an origin: \(error)\n\(dump(bytes.prefix(1500)))")
                return
            }
            served += 1
        }
    }

    /// - Returns: false if the connection is at its end.
    private mutating func answer(_ head: Head) throws(Violation) -> Bool {
        if let rest = try Origin.gateAnswer(to: head, port: port) {
            world.count { $0.originRequests += 1 }
            return socket.send(rest)
        }
        if let index = Origin.indexAnswer(to: head, origin: origin, in: world) { return socket.send(index) }
        let (resource, detours) = try target(of: head)
        try check(head, resource)
        let isDirect = head["x-direct"] != nil
        if resource.isGuarded, !isDirect, !head.startLine.hasPrefix("OPTIONS *") {
            var dice = Dice(world.seed, 0x6A2D, UInt64(number), UInt64(served))
            guard try guards.admits(head, origin: origin, expires: dice.oneIn(12)) else {
                return try challenge(head, resource, &dice)
            }
        }
        var script =
            isDirect || world.isWell
            ? Script(faultless: Dice(world.seed, 5))
            : Script(resource, ask: world.ask(resource), hasLongSilence: world.hasLongSilence)
        if script.has(.changeBefore) { world.change(resource) }
        world.blame(resource, for: script.faults)
        note(resource, head, script)
        previous = "\(resource.path) \(script.faults.map(\.rawValue).joined(separator: " "))"
        let (isChunked, length) = (try head.isChunked(), try head.contentLength() ?? 0)
        let hasBody = isChunked || length > 0
        let isEarly = hasBody && script.has(.answersEarly)
        if !isEarly {
            guard try takeBody(head, resource, &script) else { return false }
        }
        var answering = Answering(
            world, resource, head, script, detours: detours, origins: isDirect ? [] : ports.map { "127.0.0.1:\($0)" })
        var reply = answering.reply()
        if !isDirect {
            reply.set("X-Answer", "\(world.state(Statement(reply, to: head, isForged: script.forgery != nil)))")
        }
        script = answering.script
        var wire = Wire(reply, &script)
        if isEarly { wire.end = .close }
        if head["x-direct"] == "reset" {
            wire.cut = wire.bytes.count / 2
            wire.end = .reset
        }
        if let length = wire.lengthAsSeen { world.claim(resource) { $0.lengths.insert(length) } }
        if reply.status == 206, head["if-range"] != nil, script.forgery != nil { world.forgeRest(resource) }
        // With this the proxy may not complete what it has stored, so whoever has begun to read that does not get the rest.
        if reply.status == 206, reply.forbidsStoring { world.excuse(resource) }
        if reply.status == 206, head["range"] != nil, head["if-range"] != nil { world.count { $0.resumptions += 1 } }
        world.note(
            resource,
            "  ← #\(number) \(reply.status) \(answering.form)"
                + "\(reply["X-Answer"].map { " answer \($0)" } ?? "") says \(reply["Cache-Control"] ?? "nothing")"
                + "\(reply["ETag"].map { " tag \($0)" } ?? "")\(reply["Content-Range"].map { " \($0)" } ?? "")"
                + " \(reply.framing)\(reply.announcedLength.map { " said to be \($0)" } ?? "") body \(reply.body.count),"
                + " wire \(wire.bytes.count) from \(wire.bodyStart)\(wire.cut.map { " cut at \($0)" } ?? "") then \(wire.end)"
        )
        let isSent = send(wire)
        if script.has(.changeBehind) { world.change(resource) }
        world.note(resource, "  . #\(number) \(isSent ? "sent" : "the proxy left before the end")")
        switch wire.end {
        case .keep: return isSent
        case .close: return false
        case .reset:
            socket.reset()
            return false
        }
    }

    /// Answers 401, in one of the ways that servers have.
    /// - Returns: false if the connection is at its end.
    private mutating func challenge(
        _ head: Head, _ resource: Resource, _ dice: inout Dice
    ) throws(Violation) -> Bool {
        world.note(resource, "→ #\(number).\(served) \(head.startLine.prefix { $0 != " " }) without a log-in")
        let (isChunked, length) = (try head.isChunked(), try head.contentLength() ?? 0)
        let hasBody = isChunked || length > 0
        var closes = dice.oneIn(4)
        if hasBody, head["expect"] == nil {
            // It may be read or not. Whoever has sent it does not get it back.
            var script = Script(faultless: dice)
            guard try takeBody(head, resource, &script) else { return false }
        } else if hasBody {
            closes = true
        }
        if dice.oneIn(5) { socket.send("HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n") }
        let text = head.startLine.hasPrefix("HEAD ") ? "" : "who is there?"
        let fields = """
            HTTP/1.1 401 Unauthorized\r
            WWW-Authenticate: \(guards.challenge(origin: origin, isStale: head["authorization"] != nil))\r
            Cache-Control: no-store\r
            Date: \(httpDate(0))\r\n
            """
        switch dice.below(3) {
        case 0 where !text.isEmpty:
            socket.send(
                "\(fields)\(closes ? "Connection: close\r\n" : "")Transfer-Encoding: chunked\r\n\r\n3\r\nwho\r\n")
            usleep(useconds_t(dice.below(3000)))
            socket.send("\(String(text.utf8.count - 3, radix: 16))\r\n\(text.dropFirst(3))\r\n0\r\n\r\n")
        case 1 where closes:
            socket.send("\(fields)Connection: close\r\n\r\n\(text)")
        default:
            let length = "Content-Length: \(text.utf8.count)\r\n"
            socket.send("\(fields)\(closes ? "Connection: close\r\n" : "")\(length)\r\n\(text)")
        }
        return !closes
    }

    /// What is asked for, and how many redirects led here.
    private func target(of head: Head) throws(Violation) -> (Resource, detours: Int) {
        let parts = head.startLine.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0" else {
            throw Violation("request line")
        }
        guard let stated = head["x-number"].flatMap({ decimal($0) }), stated < world.resourceCount else {
            throw Violation("no X-Number")
        }
        let resource = world.resource(stated)
        guard parts[1].utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { throw Violation("target \(parts[1])") }
        // As it was typed, in UTF-8.
        let typed = "?soak=%C3%BC"
        let path = percentDecoded(
            parts[1].hasSuffix(typed) ? String(parts[1].dropLast(typed.utf8.count)) : String(parts[1]))
        for detours in 1...Resource.detoursMax where resource.isFollowed {
            if path == resource.detour(detours) { return (resource, detours) }
        }
        guard resource.origin == origin, path == resource.path || parts[0] == "OPTIONS" && path == "*" else {
            throw Violation(
                "\(parts[1]) at origin \(origin), but the client wants \(resource.path) of \(resource.origin)")
        }
        return (resource, 0)
    }

    /// What a proxy may send (RFC 9110 §7.6, RFC 9112 §3.2).
    private func check(_ head: Head, _ resource: Resource) throws(Violation) {
        // Where a redirect leads, the address is named again.
        let hosts = ["127.0.0.1", head["x-name"]].compactMap(\.self).suffix(resource.isFollowed ? 2 : 1)
        guard hosts.contains(where: { head.all("host") == ["\($0):\(port)"] }) else {
            throw Violation("Host: \(head.all("host"))")
        }
        guard head["x-direct"] == nil else { return }
        for name in ["proxy-connection", "proxy-authorization", "keep-alive", "x-hop", "upgrade", "larder-policy"] {
            guard head[name] == nil else { throw Violation("\(name) is for the proxy alone") }
        }
        guard head.members("via").contains(where: { $0.contains("larder") }) else { throw Violation("no Via") }
        for name in ["range", "if-range", "if-none-match", "if-modified-since", "content-length", "expect"] {
            guard head.all(name).count <= 1 else { throw Violation("\(name) \(head.all(name).count) times") }
        }
        guard resource.isGuarded || head["authorization"] == nil else {
            throw Violation("Authorization for \(resource.path)")
        }
        guard head["if-range"] == nil || head["range"] != nil else { throw Violation("If-Range without Range") }
        guard reader.pending.isEmpty || head.startLine.hasPrefix("POST ") else {
            throw Violation("bytes behind a request without a body")
        }
    }

    private func note(_ resource: Resource, _ head: Head, _ script: Script) {
        let kept = [
            "range", "if-range", "if-none-match", "if-modified-since", "accept-encoding", "accept-language", "x-nonce",
        ]
        let fields = head.fields.filter { kept.contains($0.name) }.map { "\($0.name): \($0.value)" }
        let faults = script.faults.map(\.rawValue).joined(separator: " ")
        world.note(
            resource,
            "→ #\(number).\(served) \(head.startLine.prefix { $0 != " " }) \(fields.joined(separator: " | ")) [\(faults)]"
        )
    }

    /// Reads the body of a request, and says if it is not what the client sent.
    /// - Returns: false if the proxy left.
    private mutating func takeBody(_ head: Head, _ resource: Resource, _ script: inout Script) throws(Violation) -> Bool
    {
        let length = try head.contentLength()
        let isChunked = try head.isChunked()
        guard isChunked || length ?? 0 > 0 else { return true }
        if head["expect"] != nil, !script.dice.oneIn(4) { socket.send("HTTP/1.1 100 Continue\r\n\r\n") }
        var body: [UInt8] = []
        do throws(MessageReader<Socket>.Problem) {
            if let length {
                try reader.read(length, into: &body)
            } else {
                try readChunks(into: &body)
            }
        } catch {
            if case .violation(let violation) = error { throw violation }
            return false
        }
        guard let nonce = head["x-nonce"].flatMap({ UInt64($0) }) else { throw Violation("no X-Nonce") }
        guard Question.uploadBody(nonce) == body[...] else {
            throw Violation("a body of \(body.count) bytes that is not the client's: \(nonce)")
        }
        return true
    }

    private mutating func readChunks(into body: inout [UInt8]) throws(MessageReader<Socket>.Problem) {
        while true {
            let line = try reader.line()
            guard let size = Int(String(decoding: line, as: UTF8.self), radix: 16) else {
                throw .violation(Violation("chunk size \(String(decoding: line, as: UTF8.self))"))
            }
            if size == 0 { break }
            try reader.read(size, into: &body)
            guard try reader.line().isEmpty else { throw .violation(Violation("no end of a chunk")) }
        }
        _ = try reader.trailers()
    }

    // MARK: sending

    /// - Returns: false if the proxy left before.
    private func send(_ wire: Wire) -> Bool {
        let count = wire.sentCount
        var at = 0
        var pauses = wire.pauses[...]
        while true {
            while let pause = pauses.first, pause.at <= at {
                usleep(useconds_t(pause.milliseconds * 1000))
                pauses.removeFirst()
            }
            guard at < count else { return true }
            var next = min(count, pauses.first.map { max($0.at, at + 1) } ?? count)
            if let dripFrom = wire.dripFrom {
                // A few steps, then the rest at once: a soak is bounded in time.
                if at < dripFrom {
                    next = min(next, dripFrom)
                } else if at < dripFrom + 40 {
                    next = min(next, at + 4)
                    usleep(1000)
                }
            }
            if let tail = wire.tail, at < tail { next = min(next, tail) }
            guard socket.send(wire.bytes[at..<next]) else { return false }
            at = next
        }
    }
}
