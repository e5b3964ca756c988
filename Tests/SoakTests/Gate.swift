import Foundation

/// Paths that rules protect: `/closed` is for nobody, and `/gate/USER` for one user. The rules have to hold in every spelling, for stored responses, and
/// whoever asked before on the connection.
enum Gate {
    static let users = ["ann", "bob"]
    /// The words of the path behind the first.
    static let rooms = 3

    /// `access:`, for a configuration that lets everything else through, and tunnels without a look at what they carry.
    static func access(usersFile: String) -> String {
        let own = users.map { "    - allow: { path: \"/gate/\($0)/*\", user: [ \($0) ], address: [ 127.0.0.1 ] }" }
        return """
            access:
              clients: 127.0.0.1
              authentication:
                required: no
                basic: { realm: soak, users: \(usersFile) }
              rules:
                - allow: { method: [ CONNECT ], address: [ 127.0.0.1 ], port: [ 1-65535 ], tunnel: any }
                - deny: { path: "/closed/*" }
                - authenticate: { path: "/gate/*" }
            \(own.joined(separator: "\n"))
                - deny: { path: "/gate/*" }
                - allow: { address: [ 127.0.0.1 ], port: [ 1-65535 ] }
            """
    }

    /// The password of each is `secret`. A thousand rounds of SHA-256 are quick.
    static let htpasswd = users.map { "\($0):$5$rounds=1000$soaksoak$TRLPS/qRurOb2lNjG4lMkvb.XdBaFl9YEM68YZ.mH8C\n" }
        .joined()

    /// Every path that some server may take a target for: decoded once and twice, with `\` as `/`, without parameters, with dot segments resolved.
    static func readings(_ target: String) -> Set<[String]> {
        let path = String(target.prefix { $0 != "?" })
        let once = percentDecoded(path)
        var texts = [path, once, percentDecoded(once)]
        texts += texts.map { $0.replacing("\\", with: "/") }
        texts += texts.map { text in
            text.split(separator: "/", omittingEmptySubsequences: false).map { $0.prefix { $0 != ";" } }.joined(
                separator: "/")
        }
        return Set(
            texts.map { text in
                var segments: [String] = []
                for segment in text.split(separator: "/") where segment != "." {
                    if segment == ".." { segments = segments.dropLast() } else { segments.append(String(segment)) }
                }
                return segments
            })
    }

    /// The body that `/gate/USER/ROOM` has.
    static func page(_ user: String, _ room: String) -> String { "page \(room) of \(user)" }
}

/// One request of a walk.
struct Attempt: CustomStringConvertible {
    /// Who asks. Nil: nobody says it.
    let user: String?
    /// Whose page it is. Nil: that of nobody.
    let owner: String?
    let target: String
    let room: String
    /// The target is as the rules write it.
    let isPlain: Bool
    let name: String

    init(_ dice: inout Dice) {
        user = dice.pick([nil] + Gate.users.map { $0 })
        let owner = dice.oneIn(3) ? nil : dice.pick(Gate.users)
        self.owner = owner
        room = "\(dice.below(Gate.rooms))"
        name = dice.oneIn(2) ? "127.0.0.1" : dice.pick(Question.names)
        let first = owner == nil ? "closed" : "gate"
        let plain = "/\(first)/\(owner.map { "\($0)/" } ?? "")\(room)"
        isPlain = dice.oneIn(2)
        guard !isPlain else {
            target = plain
            return
        }
        func encoded(_ text: String, _ dice: inout Dice) -> String {
            let at = dice.below(text.utf8.count)
            return text.utf8.enumerated().map { index, byte in
                index == at ? "%" + String(byte, radix: 16, uppercase: true) : String(UnicodeScalar(byte))
            }.joined()
        }
        let other = Gate.users.filter { $0 != owner }.randomElement(using: &dice) ?? "ann"
        let rest = String(plain.dropFirst(first.utf8.count + 2))
        target = dice.pick([
            "//\(first)/\(rest)", "/\(first)//\(rest)", "/./\(first)/\(rest)", "/a/../\(first)/\(rest)",
            "/\(encoded(first, &dice))/\(rest)",
            "/\(first)/\(encoded(rest, &dice))", "/%2e/\(first)/\(rest)", "/a/%2E%2e/\(first)/\(rest)",
            "/a%2f..%2F\(first)/\(rest)", "/\(first)%2f\(rest)",
            "/\(first);x=1/\(rest)", "/a/..;/\(first)/\(rest)", "/\(first)/\(rest);y", "/\(first)\\\(rest)",
            "/%2561/../\(first)/\(rest)",
            "/gate/\(other)/../../\(first)/\(rest)", "/gate/\(other)/%2e%2e/%2e%2e/\(first)/\(rest)",
            "/gate/\(other)/..%2f..%2f\(first)%2f\(rest)",
            "/\(first)/\(rest)?\u{FC}", "/\(first)/\(rest)?/../../a/1", "/\(first)/\(rest)/..;/\(room)",
            "/\(first)%2e%2e/../\(first)/\(rest)",
            "/a/1/../../\(first)/./\(rest)", "/%67ate/%61nn/../../\(first)/\(rest)",
        ])
    }

    var description: String { "\(user ?? "nobody") asks \(name) for \(target)" }

    func head(port: UInt16) -> String {
        let credentials = ["ann": "YW5uOnNlY3JldA==", "bob": "Ym9iOnNlY3JldA=="]
        let log = user.flatMap { credentials[$0] }.map { "Proxy-Authorization: Basic \($0)\r\n" } ?? ""
        return
            "GET http://\(name):\(port)\(target) HTTP/1.1\r\nHost: \(name):\(port)\r\nX-Gate: \(user ?? "nobody")\r\n\(log)\r\n"
    }

    /// What is wrong with an answer. Nil if nothing is.
    func fault(in answer: Answer) -> String? {
        switch answer.status {
        case 200:
            guard let owner, owner == user else { return "200 for what is not \(user ?? "nobody")'s" }
            let body = String(decoding: answer.body, as: UTF8.self)
            return body == Gate.page(owner, room) ? nil : "the page is \(body)"
        case 403: return isPlain && owner != nil && owner == user ? "403 for what is \(user ?? "")'s" : nil
        case 407: return user == nil ? nil : "407 for a user who has said who it is"
        // A target that is none.
        case 400: return isPlain ? "400" : nil
        default: return "\(answer.status)"
        }
    }
}

extension Origin {
    /// The answer to a request of a walk. Nil if it is none of one. No request may come here that the rules forbid, whatever the server takes it for.
    static func gateAnswer(to head: Head, port: UInt16) throws(Violation) -> String? {
        guard let user = head["x-gate"] else { return nil }
        let parts = head.startLine.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1].utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Violation("request line")
        }
        guard head.all("host") == ["127.0.0.1:\(port)"] || head.all("host") == ["\(Question.originName):\(port)"] else {
            throw Violation("Host: \(head.all("host"))")
        }
        guard head["proxy-authorization"] == nil else { throw Violation("Proxy-Authorization at the origin") }
        for reading in Gate.readings(String(parts[1])) {
            if reading.first == "closed" { throw Violation("\(parts[1]) is closed") }
            guard reading.first == "gate" else { continue }
            guard reading.count > 1, reading[1].prefix(while: { $0 != ";" }) == user else {
                throw Violation("\(parts[1]) is not \(user)'s")
            }
        }
        let last = percentDecoded(String(parts[1].prefix { $0 != "?" })).split(separator: "/").last ?? ""
        let body = Gate.page(user, String(last.prefix { $0 != ";" }))
        return
            "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nDate: \(httpDate(time(nil)))\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }
}

/// With the octets of `%XX` in place of it. What follows a `%` that begins none stays.
func percentDecoded(_ text: String) -> String {
    var result: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
        if byte == 0x25, rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
        {
            result.append(value)
            rest = rest.dropFirst(2)
        } else {
            result.append(byte)
        }
    }
    return String(decoding: result, as: UTF8.self)
}
