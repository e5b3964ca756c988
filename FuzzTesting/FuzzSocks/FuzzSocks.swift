import FuzzSupport
import Message

@testable import Routing

/// The input is what a next proxy says, first to SOCKS and then to CONNECT, in pieces. A dialogue ends at the latest when it has refused or opened,
/// and what came through an open tunnel is the end of the input.
@_cdecl("FuzzSocks_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let borders = [0] + splits(bytes).sorted() + [bytes.count]
        let logIn = bytes.count % 2 == 0 ? nil : ProxyLogIn(user: Array("u".utf8), password: Array("p".utf8))
        var dialogue = SocksDialogue(to: Endpoint(host: "a.example", port: 443), logIn: logIn)
        precondition(!dialogue.begin().isEmpty, "the client of SOCKS speaks first")
        for (from, to) in zip(borders, borders.dropFirst()) {
            switch dialogue.on(Array(bytes[from..<to])) {
            case .wait: continue
            case .send(let request): precondition(!request.isEmpty, "an empty message says nothing")
            case .fail: return 0
            case .challenged, .closed: preconditionFailure("SOCKS has no challenges and ends with a reply")
            case .open(let unread):
                precondition(
                    bytes[..<to].suffix(unread.count).elementsEqual(unread), "the tunnel begins behind the reply")
                return 0
            }
        }
        return 0
    }
}
