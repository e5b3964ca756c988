import EventLoop
import Framing
import Glibc
import Transaction

/// Recognises the client's protocol by the first bytes of a connection.
///
/// A connection that speaks HTTP/1 goes on as a session: its read event is redirected there, so later reads do not pass here. Every other
/// protocol is refused for now. This is where they would begin: TLS with a handshake, HTTP/2 with a session of its own, SOCKS and
/// the PROXY protocol with the target or peer that they name.
extension ClientConnection {
    /// Takes the transport and waits for the client's first bytes, for at most `timeouts.client_head`.
    func start(over transport: consuming Transport) {
        unsafe start(over: transport) { _, _, context in
            unsafe Unmanaged<ClientConnection>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.onFirstBytes() }
        }
    }

    /// Takes the transport of an opened tunnel, whose protocol is known to be HTTP/1.
    ///
    /// - Parameter bytes: what the client has sent, decrypted. In the worker's read buffer, or elsewhere.
    func start(over transport: consuming Transport, received bytes: UnsafeRawBufferPointer) {
        unsafe start(over: transport) { _, _, context in
            unsafe Unmanaged<ClientConnection>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.onReadable() }
        }
        unsafe received(bytes)
        drain()
    }

    private func start(over transport: consuming Transport, readable callback: ReadinessCallback) {
        precondition(unsafe self.transport == nil && phase == .idle, "a connection starts once")
        unsafe self.transport = consume transport
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe self.transport!.assign(&readEvent, on: worker.loop, .read, callback, context)
        readEvent.add()
        worker.timers.schedule(self, after: worker.snapshot.configuration.timeouts.clientHead)
    }

    private func onFirstBytes() {
        precondition(phase == .idle && exchange == nil, "the first bytes come before any request")
        let count: Int
        switch unsafe readTransport(worker.readBuffer) {
        case .bytes(let read): count = read
        case .wouldBlock: return
        case .closed: return close(.clientClosed)
        case .failed: return close(.clientLeft)
        }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe readEvent.redirect(
            { _, _, context in
                unsafe Unmanaged<ClientConnection>.fromOpaque(context!)._withUnsafeGuaranteedRef { $0.onReadable() }
            }, context)
        worker.counters.add(.bytesFromClients, count)
        let bytes = unsafe UnsafeRawBufferPointer(start: worker.readBuffer.baseAddress, count: count)
        switch unsafe recognise(bytes.bindMemory(to: UInt8.self).span) {
        case .http1: unsafe received(bytes)
        // The alert `handshake_failure` in a record of its own (RFC 8446 §6), which every TLS client understands.
        case .tls: refuse(.tlsNotOffered, reply: [0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x28])
        // None of the methods is acceptable (RFC 1928 §3).
        case .socks5: refuse(.protocolNotOffered, reply: [0x05, 0xFF])
        case .http2, .proxyProtocol:
            refuse(
                .protocolNotOffered,
                reply: Array("HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\n\r\n".utf8))
        }
    }

    /// Refuses a protocol that this listener does not offer, in that protocol's own terms, then closes the connection.
    private func refuse(_ reason: CloseReason, reply: [UInt8]) {
        precondition(phase == .idle && unsentBytes == 0, "a protocol is refused before any request")
        account = Account(startedAt: worker.log.now)
        account.outcome = .refused
        account.closeReason = reason
        worker.counters.add(.refused)
        if worker.log.isOn { worker.log.append(account, client: context.peer) }
        account.isLogged = true
        closing = reason
        phase = .answering
        output.append(reply)
        flush()
    }
}
