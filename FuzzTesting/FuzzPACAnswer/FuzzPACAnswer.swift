import FuzzSupport
import Message
import Routing

/// The input is what a PAC file returned, then what the process that evaluates it sent, in pieces, and then a `no_proxy`. An answer has routes, each once,
/// and bounded; messages end where they began to make no sense; and each message is the one that its bytes say.
@_cdecl("FuzzPACAnswer_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        do throws(PACAnswerFault) {
            let routes = try PACAnswer(bytes).routes
            precondition((1...PACAnswer.routesMax).contains(routes.count), "an answer has routes, and not too many")
            precondition(Set(routes).count == routes.count, "each route stands in an answer once")
        } catch {
            precondition(error.text.utf8.allSatisfy { $0 != 0x0A && $0 != 0x1B }, "a message has no control characters")
        }
        readMessages(bytes)
        let text = String(decoding: bytes, as: UTF8.self)
        do throws(ProxyEnvironment.Fault) {
            let environment = try ProxyEnvironment { $0 == "no_proxy" ? text : $0 == "http_proxy" ? "p:1" : nil }
            _ = environment.route(to: Origin(.http, Endpoint(host: "a.example", port: 80)))
            _ = environment.route(to: Origin(.http, Endpoint(host: "2001:db8::1", port: 80)))
            _ = try ProxyEnvironment { $0 == "all_proxy" ? text : nil }
        } catch {
            precondition(!error.text.isEmpty, "a fault says what is wrong")
        }
        return 0
    }
}

private func readMessages(_ bytes: [UInt8]) {
    var buffer = PACMessageBuffer(contentBytesMax: 100)
    let borders = [0] + splits(bytes).sorted() + [bytes.count]
    do throws(PACMessageFault) {
        for (from, to) in zip(borders, borders.dropFirst()) {
            buffer.append(bytes[from..<to])
            while let message = try buffer.next() {
                precondition((1...101).contains(message.count), "a message is no longer than it may be")
                let again = message[0] <= 2 ? try PACRequest(message).bytes : try PACReply(message).bytes
                precondition(Array(again.dropFirst(4)) == message, "a message is its bytes")
            }
        }
    } catch {}
}
