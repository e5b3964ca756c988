import EventLoop
import Foundation

/// The origin: answers on loopback, one thread per connection, with what `Resource` says of the version of the moment.
final class Origin: Sendable {
    /// A request as the origin had it.
    struct Ask: Sendable {
        var method: String
        var range: Question.Wanted?
        var isConditional: Bool
        /// What it answered.
        var status: Int
        var description: String { "\(method) \(range?.text ?? "")\(isConditional ? " conditional" : ""): \(status)" }
    }

    private struct State {
        var connections: [ObjectIdentifier: Stream] = [:]
        var isClosed = false
        var asks: [Int: [Ask]] = [:]
        /// Offsets at which a body stands still, by number.
        var holds: [Int: Int] = [:]
        /// One large body in so many breaks off; 0: none.
        var breaksOneIn = 0
        var dice = Dice(seed: 1)
    }

    private let listener: Listener
    private let world: World
    private let state = Locked(State())

    var port: UInt16 { listener.port }

    init(_ world: World) throws {
        self.world = world
        listener = try Listener()
        Thread.detachNewThread { [self] in
            while let stream = listener.accept() { welcome(stream) }
        }
    }

    /// Ends its threads: without it they, and what they hold, stay.
    func close() {
        state.withLock {
            $0.isClosed = true
            for stream in $0.connections.values { stream.shutDown() }
        }
        listener.shutDown()
    }

    // MARK: what a test says and asks

    func asks(_ number: Int) -> [Ask] { state.withLock { $0.asks[number] ?? [] } }
    func askCount(_ number: Int) -> Int { state.withLock { $0.asks[number]?.count ?? 0 } }

    /// Bodies of the resource stand still at an offset, until `release`.
    func hold(_ number: Int, at offset: Int) { state.withLock { $0.holds[number] = offset } }
    func release(_ number: Int) { state.withLock { $0.holds[number] = nil } }

    func breakOff(oneIn count: Int) { state.withLock { $0.breaksOneIn = count } }

    // MARK: connections

    private func welcome(_ stream: Stream) {
        stream.setTimeout(seconds: 60)
        let isWelcome = state.withLock {
            guard !$0.isClosed else { return false }
            $0.connections[ObjectIdentifier(stream)] = stream
            return true
        }
        guard isWelcome else { return }
        Thread.detachNewThread { [self] in
            do throws(SocketError) {
                while let head = try stream.readHead(), try serve(Request(head), stream) {}
            } catch {}  // the proxy left: that is what this test is about
            state.withLock { _ = $0.connections.removeValue(forKey: ObjectIdentifier(stream)) }
        }
    }

    private struct Request {
        var method: String
        var path: String
        var fields: [String: String] = [:]

        init(_ head: String) {
            let lines = head.split(separator: "\r\n")
            let words = lines[0].split(separator: " ")
            method = String(words[0])
            path = String(words[1])
            for line in lines.dropFirst() {
                guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { continue }
                fields[line[..<colon].lowercased()] =
                    String(line[line.utf8.index(after: colon)...].drop { $0 == " " })
            }
        }
    }

    /// - Returns: false: the connection is to be closed.
    private func serve(_ request: Request, _ stream: Stream) throws(SocketError) -> Bool {
        if let length = request.fields["content-length"].flatMap({ Int($0) }) {
            var body: [UInt8] = []
            try stream.read(length, into: &body)
        }
        guard let resource = Resource(path: request.path) else {
            try stream.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return true
        }
        if request.method == "POST" {
            let version = world.change(resource.number)
            note(resource, Ask(method: "POST", range: nil, isConditional: false, status: 204))
            try stream.send("HTTP/1.1 204 No Content\r\nX-Version: \(version)\r\n\r\n")
            return true
        }
        return try answer(request, resource, stream)
    }

    private func note(_ resource: Resource, _ ask: Ask) {
        state.withLock { $0.asks[resource.number, default: []].append(ask) }
    }

    // MARK: answers

    private func answer(_ request: Request, _ resource: Resource, _ stream: Stream) throws(SocketError) -> Bool {
        let language: Language =
            resource.isVaried && request.fields["accept-language"]?.hasPrefix("de") == true ? .de : .en
        let version = world.version(resource.number)
        let length = resource.length(version, language)
        let wanted = request.fields["range"].flatMap { Question.Wanted(text: $0) }
        let isConditional = request.fields["if-none-match"] != nil || request.fields["if-modified-since"] != nil
        var head = Self.fields(resource, version, language)

        let (status, part) = Self.selection(request, resource, version, language, wanted)
        note(resource, Ask(method: request.method, range: wanted, isConditional: isConditional, status: status))
        switch status {
        case 206: head += "Content-Range: bytes \(part.lowerBound)-\(part.upperBound - 1)/\(length)\r\n"
        case 416: head += "Content-Range: bytes */\(length)\r\n"
        default: break
        }
        let isChunked = resource.isChunked && status == 200
        if status != 304 { head += isChunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: \(part.count)\r\n" }
        let fetched = World.Representation(number: resource.number, language: language)
        if status != 304 { world.beginFetch(fetched) }
        defer { if status != 304 { world.endFetch(fetched) } }
        try stream.send("HTTP/1.1 \(status) Whatever\r\n\(head)\r\n")
        guard request.method == "GET" else { return true }
        // Without a validator the rest could not be asked for; what is passed on as a part is not taken up again either.
        let mayBreak = status == 200 && resource.validator != .none
        return try send(
            resource, part, from: resource.start(version, language), isChunked: isChunked, mayBreak: mayBreak, stream)
    }

    /// Status, and the part of the body that goes with it.
    private static func selection(
        _ request: Request, _ resource: Resource, _ version: Int, _ language: Language, _ wanted: Question.Wanted?
    ) -> (Int, Range<Int>) {
        let tag = resource.entityTag(version, language)
        let date = resource.lastModified(version)
        if let asked = request.fields["if-none-match"] {
            if let tag, asked.contains(tag) { return (304, 0..<0) }
        } else if let asked = request.fields["if-modified-since"], asked == date {
            return (304, 0..<0)
        }
        let length = resource.length(version, language)
        if let wanted, request.fields["if-range"].map({ $0 == tag || $0 == date }) ?? true {
            guard let part = wanted.resolved(length) else { return (416, 0..<0) }
            return (206, part)
        }
        return (200, 0..<length)
    }

    private static func fields(_ resource: Resource, _ version: Int, _ language: Language) -> String {
        var text = "Content-Type: \(resource.mediaType)\r\nX-Version: \(version)\r\n"
        text += "Cache-Control: \(resource.isAlwaysValidated ? "max-age=0" : "max-age=3600")\r\n"
        text += "Surrogate-Key: all \(resource.tag)\r\nDate: \(httpDate(Date()))\r\n"
        if resource.isVaried { text += "Vary: Accept-Language\r\n" }
        if let tag = resource.entityTag(version, language) { text += "ETag: \(tag)\r\n" }
        if let date = resource.lastModified(version) { text += "Last-Modified: \(date)\r\n" }
        return text
    }

    private func send(
        _ resource: Resource, _ part: Range<Int>, from start: Int, isChunked: Bool, mayBreak: Bool, _ stream: Stream
    ) throws(SocketError) -> Bool {
        let breakAt = mayBreak ? breakPoint(part, isChunked: isChunked) : nil
        var offset = part.lowerBound
        while offset < part.upperBound {
            waitWhileHeld(resource, at: offset, stream)
            var end = min(part.upperBound, offset + (64 << 10))
            if let held = state.withLock({ $0.holds[resource.number] }), offset < held { end = min(end, held) }
            let first = (start + offset) % Noise.period
            let bytes = Noise.bytes[first..<first + end - offset]
            if isChunked { try stream.send("\(String(bytes.count, radix: 16))\r\n") }
            try stream.send(bytes)
            if isChunked { try stream.send("\r\n") }
            offset = end
            if let breakAt, offset >= breakAt { return false }
        }
        if isChunked { try stream.send("0\r\n\r\n") }
        return true
    }

    private func breakPoint(_ part: Range<Int>, isChunked: Bool) -> Int? {
        guard !isChunked, part.count > 1 << 20 else { return nil }
        return state.withLock {
            guard $0.breaksOneIn > 0, $0.dice.oneIn($0.breaksOneIn) else { return nil }
            return part.lowerBound + $0.dice.below(part.count)
        }
    }

    private func waitWhileHeld(_ resource: Resource, at offset: Int, _ stream: Stream) {
        while state.withLock({ !$0.isClosed && ($0.holds[resource.number].map { $0 <= offset } ?? false) }) {
            usleep(2000)
        }
    }
}
