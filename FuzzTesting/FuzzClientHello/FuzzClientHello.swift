import Framing
import FuzzSupport
import Interception
import Rules

/// Any input is a ClientHello, malformed, too long or incomplete; and what is read does not depend on how it arrives.

@_cdecl("FuzzClientHello_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let whole = ClientHello.read(bytes.span)
        var asked = 0
        var last = ClientHello.Reading.incomplete(needs: 0)
        while case .incomplete(let needs) = last, needs <= bytes.count {
            precondition(needs >= asked)
            last = ClientHello.read(Array(bytes[..<needs]).span)
            if case .incomplete(let more) = last { precondition(more > needs, "it would ask for ever") }
            asked = needs
        }
        if case .incomplete = last {
            // What arrived beyond the last question may be malformed already, which is found out sooner or later.
            switch whole {
            case .incomplete, .malformed: break
            case .complete, .tooLong: preconditionFailure("the split shows")
            }
        } else {
            precondition(whole == last, "the split shows")
        }
        if case .complete(let hello) = whole {
            precondition(hello.serverName?.isEmpty != true && hello.protocols?.isEmpty != true)
            judge(FirstBytes.tls(hello))
        }
        return 0
    }
}

/// A hello that names another host, or none, goes nowhere where rules decide by the host.
private func judge(_ bytes: FirstBytes) {
    guard case .tls(let hello) = bytes, let host = DestinationHost("files.example.org".utf8) else { return }
    let target = TunnelTarget(host: host, terms: TunnelTerms(.tls, namesHost: true), use: .pass)
    let namesHost = hello.serverName.map {
        $0.elementsEqual("files.example.org".utf8, by: { $0 | 0x20 == $1 || $0 == $1 })
    }
    if target.step(after: bytes) == .tunnel { precondition(namesHost == true, "the tunnel leads elsewhere") }
}
