package import Message

/// What a node says of itself and of its client when it asks another one: the value of `Larder-Peer` in its request.
///
/// ```
/// Larder-Peer: 2 3f…(32 hexadecimal digits) node=cache-1 at=1700000000000-0%20… client=10.1.2.3 user=alice scheme=Basic group=staff
/// ```
///
/// The version comes first, then a code over all that follows. The code shows that the other node has the secret of the fleet: with another secret
/// it would take other nodes for owners.
package struct PeerQuestion: Equatable, Sendable {
    /// Who the client of the other node proved to be.
    package struct User: Equatable, Sendable {
        package let name: String
        package let scheme: String
        package let groups: [String]

        package init(name: String, scheme: String, groups: [String]) {
            self.name = name
            self.scheme = scheme
            self.groups = groups
        }
    }

    /// The name of the node that asks.
    package let node: String
    /// Up to which purge the node that asks knows of them, applied or not. What is answered must not be older than that.
    package var position: StreamPosition?
    /// The client that the answer is for. Nil: it has no address, or there is no client.
    package var client: IPAddress?
    package var user: User?
    /// The listener by which the client came. Nil: none.
    package var listener: String?
    /// Answer from the store, or not at all.
    package var isForStoreOnly = false

    package init(node: String) { self.node = node }

    package static let fieldName = Array("Larder-Peer".utf8)
    static let version = UInt8(ascii: "2")
    /// Of a value in bytes. Groups are the only part that can be long; a node with more does not ask.
    package static let bytesMax = 8192
    private static let codeDigits = 32

    // MARK: to bytes

    /// - Returns: nil if there is too much to say.
    package func encoded(hash: some FleetHash) -> [UInt8]? {
        let said = said
        let value = [PeerQuestion.version, 0x20] + PeerQuestion.code(over: said[...], hash) + said
        return value.count <= PeerQuestion.bytesMax ? value : nil
    }

    /// What the code covers.
    private var said: [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(128)
        func append(_ name: StaticString, _ value: String.UTF8View) {
            text.append(0x20)
            text.append(name)
            text.append(UInt8(ascii: "="))
            for byte in value { PeerQuestion.append(byte, to: &text) }
        }
        append("node", node.utf8)
        if let position {
            text.append(" at=")
            for byte in position.bytes { PeerQuestion.append(byte, to: &text) }
        }
        if let client { append("client", client.description.utf8) }
        if let user {
            append("user", user.name.utf8)
            append("scheme", user.scheme.utf8)
            for group in user.groups { append("group", group.utf8) }
        }
        if let listener { append("listener", listener.utf8) }
        if isForStoreOnly { text.append(" only=store") }
        return text
    }

    private static func append(_ byte: UInt8, to text: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: ":"):
            text.append(byte)
        default:
            text.append(UInt8(ascii: "%"))
            text.append(hexadecimalDigit(byte >> 4))
            text.append(hexadecimalDigit(byte & 15))
        }
    }

    private static func code(over text: ArraySlice<UInt8>, _ hash: some FleetHash) -> [UInt8] {
        hexadecimal(hash.code(for: .peer, text).prefix(codeDigits / 2))
    }

    // MARK: from bytes

    package static func decode(_ value: [UInt8], hash: some FleetHash) throws(PeerObjection) -> PeerQuestion {
        guard value.count <= bytesMax else { throw .malformed }
        guard value.first == version, value.dropFirst().first == 0x20 else { throw .version }
        let rest = value.dropFirst(2)
        guard rest.count > codeDigits else { throw .malformed }
        let said = rest.dropFirst(codeDigits)
        guard areEqualCodes(rest.prefix(codeDigits), code(over: said, hash)) else { throw .secret }
        return try read(said)
    }

    private static func read(_ said: ArraySlice<UInt8>) throws(PeerObjection) -> PeerQuestion {
        var parts: [(name: String, value: [UInt8])] = []
        for word in said.split(separator: 0x20) {
            guard let equals = word.firstIndex(of: UInt8(ascii: "=")),
                let value = decoded(word[(equals + 1)...])
            else { throw .malformed }
            parts.append((String(decoding: word[..<equals], as: UTF8.self), value))
        }
        func first(_ name: String) -> [UInt8]? { parts.first { $0.name == name }?.value }
        func text(_ name: String) -> String? { first(name).map { String(decoding: $0, as: UTF8.self) } }
        guard let node = text("node") else { throw .malformed }
        var question = PeerQuestion(node: node)
        question.position = try first("at").map { bytes throws(PeerObjection) in
            guard let position = StreamPosition(bytes) else { throw .malformed }
            return position
        }
        question.client = try first("client").map { bytes throws(PeerObjection) in
            guard let address = IPAddress(strict: bytes) else { throw .malformed }
            return address
        }
        if let name = text("user") {
            guard let scheme = text("scheme") else { throw .malformed }
            question.user = User(
                name: name, scheme: scheme,
                groups: parts.filter { $0.name == "group" }.map { String(decoding: $0.value, as: UTF8.self) })
        }
        question.listener = text("listener")
        question.isForStoreOnly = text("only") == "store"
        return question
    }

    private static func decoded(_ word: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var index = word.startIndex
        while index < word.endIndex {
            guard word[index] == UInt8(ascii: "%") else {
                result.append(word[index])
                index += 1
                continue
            }
            guard word.endIndex - index > 2, let high = hexValue(word[index + 1]),
                let low = hexValue(word[index + 2])
            else { return nil }
            result.append(high << 4 | low)
            index += 3
        }
        return result
    }
}

/// Why a node does not answer another one. Its name is part of the answer and of the figures.
package enum PeerObjection: String, Error, CaseIterable, Sendable {
    /// It speaks another version of this.
    case version
    /// It has another secret.
    case secret
    case malformed
    /// A purge that the other node knows has not been applied here yet.
    case behind
    /// The answer would depend on who asks.
    case personal
    /// The store has nothing, and only the store was asked.
    case absent
    /// There is no answer: the request is not allowed here, or the origin did not answer.
    case unanswered
}

/// What a node says of its answer to another one: the value of `Larder-Peer` in its response.
///
/// It says whose word the answer is, so that the other node takes nothing for the word of the origin that is not.
package enum PeerVerdict: Equatable, Sendable {
    /// It comes from the store, and is fresh, or the origin has just confirmed it.
    case hit
    /// It comes from the store, and is stale: a rule or the request allows that, or the origin did not answer. It confirms nothing, and must not be stored.
    case stale
    /// The origin was asked for it.
    case fetched
    /// The origin was asked for it, and it cannot be stored: the next one will be for its client alone, too.
    case passed
    /// An interim response (102, RFC 2518 §10.1): the origin is being asked. Whoever waits need not ask it as well.
    case working
    case refused(PeerObjection)

    package var text: String {
        switch self {
        case .hit: "2 hit"
        case .stale: "2 stale"
        case .fetched: "2 fetched"
        case .passed: "2 passed"
        case .working: "2 working"
        case .refused(let objection): "2 refused \(objection.rawValue)"
        }
    }

    /// The field line, with its end.
    package var fieldLine: [UInt8] { PeerQuestion.fieldName + Array(": \(text)\r\n".utf8) }

    /// Puts the field line behind the status line of a head.
    package func insert(intoHeadAt start: Int, of bytes: inout [UInt8]) {
        guard let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) else {
            preconditionFailure("a head begins with a status line")
        }
        bytes.insert(contentsOf: fieldLine, at: end + 1)
    }

    /// Whatever a node says that speaks another version is a refusal for the version. Returns nil for anything else: then the answer is not one of this protocol.
    package init?(_ value: ArraySlice<UInt8>) {
        switch String(decoding: value, as: UTF8.self) {
        case "2 hit": self = .hit
        case "2 stale": self = .stale
        case "2 fetched": self = .fetched
        case "2 passed": self = .passed
        case "2 working": self = .working
        case let text:
            let words = text.split(separator: " ")
            if let version = words.first, version != "2", version.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
                self = .refused(.version)
                return
            }
            guard words.count == 3, words[0] == "2", words[1] == "refused" else { return nil }
            // A later release may have other reasons.
            self = .refused(PeerObjection(rawValue: String(words[2])) ?? .unanswered)
        }
    }
}
