import Framing
import FuzzSupport

/// Any input is a PROXY header, malformed or incomplete; and what is read does not depend on how it arrives.

@_cdecl("FuzzProxyHeader_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        let whole = ProxyHeader.read(bytes.span)
        if case .complete(let header) = whole {
            precondition(header.byteCount <= bytes.count && header.byteCount <= ProxyHeader.bytesMax)
            precondition(ProxyHeader.read(Array(bytes[..<header.byteCount]).span) == whole, "what follows shows")
            // A line is ASCII: what looks like a digit and is none is malformed.
            if bytes.starts(with: "PROXY TCP".utf8) {
                precondition(bytes[..<header.byteCount].allSatisfy { $0 < 0x80 }, "a line with other bytes than ASCII")
            }
        }
        for length in 0..<min(bytes.count, ProxyHeader.bytesMax) {
            switch ProxyHeader.read(Array(bytes[..<length]).span) {
            case .incomplete(let needs): precondition(needs > length, "it would ask for ever")
            case .complete, .malformed: precondition(ProxyHeader.read(Array(bytes[..<length]).span) == whole)
            }
        }
        return 0
    }
}
