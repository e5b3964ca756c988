import EventLoop
import Routing

/// A dialogue with a next proxy and the bytes of it that the socket has not accepted yet.
struct ProxyTalk {
    enum Progress {
        /// Waits for the socket to accept bytes, or for bytes of the proxy.
        case waiting(writes: Bool)
        /// - Parameter unread: bytes that came through the tunnel already.
        case ended(Opening.Event, unread: [UInt8])
    }
    private var dialogue: ProxyDialogue
    private var unsent: [UInt8]

    init(_ dialogue: ProxyDialogue) {
        self.dialogue = dialogue
        unsent = dialogue.begin()
    }

    /// Writes and reads as much as the connection allows.
    ///
    /// - Parameter buffer: what is read goes through it.
    mutating func advance(over transport: borrowing Transport, buffer: UnsafeMutableRawBufferPointer) -> Progress {
        while true {
            if !unsent.isEmpty {
                switch unsafe unsent.withUnsafeBytes({ unsafe transport.write($0) }) {
                case .bytes(let count): unsent.removeFirst(count)
                case .wouldBlock: return .waiting(writes: true)
                case .closed, .failed: return .ended(.closed, unread: [])
                }
                continue
            }
            switch unsafe transport.read(into: buffer) {
            case .bytes(let count):
                switch unsafe dialogue.on(Array(UnsafeRawBufferPointer(rebasing: buffer[..<count]))) {
                case .wait: break
                case .send(let bytes): unsent = bytes
                case .open(let unread): return .ended(.tunnelOpened(early: !unread.isEmpty), unread: unread)
                case .fail(let failure): return .ended(.tunnelRefused(failure), unread: [])
                }
            case .wouldBlock: return .waiting(writes: false)
            case .closed, .failed: return .ended(.closed, unread: [])
            }
        }
    }
}
