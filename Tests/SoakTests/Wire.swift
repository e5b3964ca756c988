/// A reply as bytes, and what is done with them.
struct Wire {
    var bytes: [UInt8] = []
    /// Where something begins or ends: heads, chunk lines, chunks, trailers.
    private(set) var joints: [Int] = []
    private(set) var bodyStart = 0
    /// Only this many are sent.
    var cut: Int?
    var end = End.keep
    /// Waits before the byte at this offset, in milliseconds.
    var pauses: [(at: Int, milliseconds: Int)] = []
    /// From this offset on a few bytes at a time.
    var dripFrom: Int?
    /// From here on all goes out at once: what stands behind a message must be there when the message ends. Whatever comes
    /// later nobody can tell from the answer to the next request.
    private(set) var tail: Int?
    /// The announced end of the connection is part of the framing.
    private let endsByClose: Bool

    enum End { case keep, close, reset }

    init(_ reply: Reply, _ script: inout Script) {
        endsByClose = !reply.isBodiless && reply.framing == .untilClose
        if script.has(.interims) { addInterims(&script.dice) }
        addHead(reply, &script)
        joint()
        bodyStart = bytes.count
        let hasMore = addContent(reply, &script)
        joint()
        if endsByClose || script.has(.closeAnnounced) || script.has(.lateClose) { end = .close }
        if reply.isHTTP10 && !script.has(.chunked) { end = .close }
        // With the connection open the proxy would wait for the rest as long as it waits for anything.
        if let length = reply.announcedLength, length > reply.body.count { end = .close }
        if !hasMore { interrupt(&script) }
    }

    /// - Returns: true if there are bytes behind the end of the message.
    private mutating func addContent(_ reply: Reply, _ script: inout Script) -> Bool {
        if reply.isBodiless {
            guard script.has(.bodyWhereNone) else { return false }
            tail = 0
            add("Not for you")
            return true
        }
        addBody(reply, &script)
        if let length = reply.announcedLength, length < reply.body.count {
            bytes.removeLast(max(0, reply.body.count - length - 200))
            tail = bytes.count - min(300, bytes.count)
            return true
        }
        guard script.has(.bytesBehind), reply.announcedLength == nil, !endsByClose else { return false }
        tail = bytes.count - min(100, bytes.count)
        addBytesBehind(&script.dice)
        return true
    }

    private mutating func joint() { joints.append(bytes.count) }
    private mutating func add(_ text: String) { bytes += Array(text.utf8) }

    private mutating func addInterims(_ dice: inout Dice) {
        for _ in 0...dice.below(3) {
            switch dice.below(4) {
            case 0, 1: add("HTTP/1.1 100 Continue\r\n\r\n")
            case 2: add("HTTP/1.1 102 Processing\r\nX-Interim: \(dice.below(1000))\r\n\r\n")
            default: add("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
            }
            joint()
        }
    }

    private mutating func addHead(_ reply: Reply, _ script: inout Script) {
        var fields = reply.fields
        if !reply.isBodiless || reply.status == 304 || reply.status == 200 {
            switch reply.framing {
            case .length: fields.append(("Content-Length", "\(reply.announcedLength ?? reply.body.count)"))
            case .chunked where !reply.isBodiless: fields.append(("Transfer-Encoding", "chunked"))
            case .chunked, .untilClose: break
            }
            // A 304 says the length of what a 200 would bring, or nothing.
            if reply.status == 304 { fields.removeAll { $0.name == "Content-Length" } }
        } else if let length = reply.announcedLength {
            fields.append(("Content-Length", "\(length)"))
        }
        if endsByClose || script.has(.closeAnnounced) {
            fields.append(("Connection", "close, X-Origin-Hop"))
            fields.append(("X-Origin-Hop", "for one connection"))
        } else if script.dice.oneIn(4) {
            fields.append(("Keep-Alive", "timeout=30"))
            fields.append(("Connection", "keep-alive"))
        }
        let status = script.has(.switchUnasked) ? 101 : reply.status
        var start = "HTTP/1.\(reply.isHTTP10 ? 0 : 1) \(status) Soaked\r\n"
        if script.has(.switchUnasked) { fields.append(("Upgrade", "soak")) }
        if script.has(.malformedHead) { spoil(&start, &fields, &script.dice) }
        add(start)
        for field in fields { add("\(field.name): \(field.value)\r\n") }
        add("\r\n")
    }

    private func spoil(_ start: inout String, _ fields: inout [(name: String, value: String)], _ dice: inout Dice) {
        switch dice.below(12) {
        case 0: start = "HTTP/1.1 2000 Soaked\r\n"
        case 1: start = "HTTP/2 200\r\n"
        case 2: start = "ICY 200 OK\r\n"
        case 3: fields += [("Content-Length", "7"), ("Content-Length", "8")]
        case 4: fields.append(("Content-Length", "+5"))
        case 5: fields.append(("Transfer-Encoding", "gzip, chunked"))
        case 6: fields.append(("X-Spaced ", "name"))
        case 7: fields.append(("X-Control", "\u{0}nul"))
        case 8: fields.append(("X-Folded", "one\r\n two"))
        case 9: fields.append(("X-Bare", "line\nfeed"))
        case 10: fields.append(("X-Huge", String(repeating: "h", count: 70_000)))
        default: for number in 0..<150 { fields.append(("X-Many", "\(number)")) }
        }
    }

    private mutating func addBody(_ reply: Reply, _ script: inout Script) {
        guard reply.framing == .chunked else {
            bytes += reply.body
            return
        }
        let badAt = script.has(.badChunk) ? script.dice.below(3) : -1
        var rest = reply.body
        var number = 0
        while !rest.isEmpty {
            let size = min(
                rest.count, script.dice.oneIn(3) ? 1 + script.dice.below(16) : 1 + script.dice.below(1 + rest.count))
            if number == badAt {
                addBadChunk(rest.prefix(size), &script.dice)
            } else {
                addChunk(rest.prefix(size), &script.dice)
            }
            rest = rest.dropFirst(size)
            number += 1
            // A large body in chunks of a few bytes would take its time.
            if number > 40 {
                addChunk(rest, &script.dice)
                rest = []
            }
        }
        joint()
        add(badAt >= number ? "zero\r\n" : "0\r\n")
        if script.has(.trailers) {
            joint()
            add("X-Checked: \(script.dice.below(1000))\r\n")
            if script.dice.oneIn(2) { add("Content-Length: 3\r\nCache-Control: no-store\r\n") }
        }
        add("\r\n")
    }

    private mutating func addChunk(_ data: ArraySlice<UInt8>, _ dice: inout Dice) {
        guard !data.isEmpty else { return }
        joint()
        var size = String(data.count, radix: 16, uppercase: dice.oneIn(2))
        if dice.oneIn(5) { size = String(repeating: "0", count: dice.pick([2, 16 - size.utf8.count])) + size }
        if dice.oneIn(6) { size += dice.pick([";name", ";a=b;c=\"d;e\"", ";x=1"]) }
        add("\(size)\r\n")
        joint()
        bytes += data
        joint()
        add("\r\n")
    }

    private mutating func addBadChunk(_ data: ArraySlice<UInt8>, _ dice: inout Dice) {
        joint()
        let size = String(data.count, radix: 16)
        switch dice.below(8) {
        case 7:
            add(
                dice.pick([
                    "7fffffffffffffff", "ffffffffffffffff", "8000000000000000",
                    "1\(String(repeating: "0", count: 16 - size.utf8.count))\(size)",
                ]) + "\r\n")
        case 0: add("zz\r\n")
        case 1: add("-\(size)\r\n")
        case 2: add("0x\(size)\r\n")
        case 3: add("FFFFFFFFFFFFFFFFF\r\n")
        case 4: add("\(size)\n")
        case 5:
            add("\(size)\r\n")
            bytes += data
            add("no end of the chunk")
            return
        default: add("\r\n")
        }
        bytes += data
        add("\r\n")
    }

    /// What no message has any business to be followed by on a connection without a further request.
    private mutating func addBytesBehind(_ dice: inout Dice) {
        switch dice.below(6) {
        case 0: add("HTTP/1.1 200 OK\r\nContent-Length: 8\r\nCache-Control: max-age=600\r\n\r\nsmuggled")
        case 1: add("HTTP/1.1 100 Continue\r\n\r\n")
        case 2: add("HTTP/1.1 103 Early Hints\r\nLink: </late>\r\n\r\n")
        case 3: add("\r\n")
        case 4: add("0\r\n\r\n")
        default: add("bytes behind the end")
        }
    }

    private mutating func interrupt(_ script: inout Script) {
        func place(_ dice: inout Dice) -> Int {
            let count = bytes.count
            let wanted =
                switch dice.below(8) {
                case 0: dice.below(count)
                case 1...4: dice.pick(joints) + dice.below(7) - 3
                default: bodyStart + dice.below(max(1, count - bodyStart))
                }
            return min(max(0, wanted), count - 1)
        }
        if script.has(.cut) || script.has(.reset) {
            cut = place(&script.dice)
            end = script.has(.reset) ? .reset : .close
            if script.dice.oneIn(4) { pauses.append((cut ?? 0, script.dice.below(120))) }
        }
        if script.has(.pause) { pauses.append((place(&script.dice), 1 + script.dice.below(80))) }
        if script.has(.silence) { pauses.append((place(&script.dice), 4500)) }
        if script.has(.drip) { dripFrom = place(&script.dice) }
        pauses.sort { $0.at < $1.at }
    }

    /// How much of a body comes that ends with the connection, where the connection ends too early but orderly: to the
    /// proxy that is all of it. Nil otherwise.
    var lengthAsSeen: Int? {
        guard endsByClose, end == .close, let cut, cut >= bodyStart else { return nil }
        return cut - bodyStart
    }

    /// How many bytes are sent.
    var sentCount: Int { cut ?? bytes.count }
}
