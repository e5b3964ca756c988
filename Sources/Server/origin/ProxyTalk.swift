import Credentials
import EventLoop
import Routing
import Transport

/// A dialogue with a next proxy and the bytes of it that the socket has not accepted yet.
struct ProxyTalk {
    enum Progress {
        /// Waits for the socket to accept bytes, or for bytes of the proxy.
        case waiting(writes: Bool)
        /// - Parameter unread: bytes that came through the tunnel already.
        case ended(Opening.Event, unread: [UInt8])
        /// The proxy asks for credentials. `persists`: its connection can carry the answer.
        case challenged([Challenge], persists: Bool)
    }
    private var dialogue: ProxyDialogue
    private var unsent: [UInt8]

    /// What the proxy says about the credentials that it accepts.
    var information: AuthenticationInfo? { dialogue.information }
    /// The challenges of the answer that opens the tunnel.
    var proof: [Challenge] { dialogue.proof }

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
                case .closed, .failed: return closed()
                }
                continue
            }
            switch unsafe transport.read(into: buffer) {
            case .bytes(let count):
                let progress = unsafe step(dialogue.on(Array(UnsafeRawBufferPointer(rebasing: buffer[..<count]))))
                if let progress { return progress }
            case .wouldBlock: return .waiting(writes: false)
            case .closed, .failed: return closed()
            }
        }
    }

    private mutating func closed() -> Progress {
        guard let progress = step(dialogue.onClose()) else {
            preconditionFailure("a dialogue ends with its connection")
        }
        return progress
    }

    /// Returns nil if the dialogue goes on.
    private mutating func step(_ step: DialogueStep) -> Progress? {
        switch step {
        case .wait: return nil
        case .send(let bytes):
            unsent = bytes
            return nil
        case .open(let unread): return .ended(.tunnelOpened(early: !unread.isEmpty), unread: unread)
        case .challenged(let challenges, let persists): return .challenged(challenges, persists: persists)
        case .fail(let failure): return .ended(.tunnelRefused(failure), unread: [])
        case .closed: return .ended(.closed, unread: [])
        }
    }
}
