package import EventLoop
import Glibc
package import TLS

/// One connection as its owner sees it: bytes in both directions, in plain text or through TLS.
///
/// A transport owns its socket. It closes the socket when it goes away; with TLS it says goodbye first
/// (`close_notify`, RFC 8446 §6.1). Clients, origins and the admin server all read and write through a transport, so
/// that no other file has to know whether TLS is in between.
///
/// With TLS a read may have to wait until the socket takes bytes, and a write until some arrive. An owner therefore
/// asks `awaits(_:toRead:toWrite:)` which events to register, again after each `.wouldBlock`, and asks the same
/// question when an event fires.
///
/// Reading and writing a plain transport costs one branch and one system call. A class that keeps its transport in a
/// `var` pays for a dynamic exclusivity check as well, unless the property is marked `@exclusivity(unchecked)`; that is
/// safe as long as the property is not replaced while one of its methods runs, and no method of a transport calls back.
package struct Transport: ~Copyable {
    private enum Channel: ~Copyable {
        case plain(Descriptor)
        case secured(SecuredChannel)
    }
    private let channel: Channel

    package init(plain socket: consuming Descriptor) {
        channel = .plain(socket)
    }

    /// The client's side of TLS over the socket; `handshake()` comes before everything else.
    /// - Parameter serverName: what the server's certificate must name; a DNS name is sent as well (RFC 6066 §3).
    package init(
        securing socket: consuming Descriptor, with context: TLSClientContext, serverName: String
    ) throws(TLSContextError) {
        let session = try TLSSession(context, fd: socket.rawValue, serverName: serverName)
        channel = .secured(SecuredChannel(session, over: socket))
    }

    /// The server's side of TLS over the socket; `handshake()` comes before everything else.
    package init(securing socket: consuming Descriptor, with context: TLSServerContext) throws(TLSContextError) {
        let session = try TLSSession(context, fd: socket.rawValue)
        channel = .secured(SecuredChannel(session, over: socket))
    }

    // MARK: bytes

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        switch channel {
        case .plain(let socket): unsafe IO.read(socket.rawValue, into: buffer)
        case .secured(let secured): unsafe secured.read(into: buffer)
        }
    }

    /// Writes some of the bytes. After `.wouldBlock` offer the same bytes again, or more that begin with them.
    package func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        switch channel {
        case .plain(let socket): unsafe IO.send(socket.rawValue, bytes)
        case .secured(let secured): unsafe secured.write(bytes)
        }
    }

    /// Writes some of several pieces. After `.wouldBlock` the rule of `write` holds for the first piece.
    func writev(_ vectors: UnsafeMutablePointer<iovec>, _ count: Int) -> IOResult {
        switch channel {
        case .plain(let socket): unsafe IO.writev(socket.rawValue, vectors, count)
        case .secured(let secured): unsafe secured.writev(UnsafeMutableBufferPointer(start: vectors, count: count))
        }
    }

    /// Bytes have been received that no event of the socket will announce: read again before waiting.
    package var mustBeDrained: Bool {
        switch channel {
        case .plain: false
        case .secured(let secured): secured.mustBeDrained
        }
    }

    // MARK: waiting

    /// Whether an owner that wants to read, or to write, or both, has to wait for this event.
    ///
    /// When the event fires, the same question for reading alone and for writing alone says which to try.
    package func awaits(_ event: Readiness, toRead: Bool, toWrite: Bool) -> Bool {
        switch channel {
        case .plain: event == .read ? toRead : toWrite
        case .secured(let secured):
            toRead && secured.readAwaits == event || toWrite && secured.writeAwaits == event
        }
    }

    /// Ties an event to the socket. The event must be cleared before the transport goes away.
    package func assign(
        _ event: inout IOEvent, on loop: EventLoop, _ kind: Readiness, _ callback: ReadinessCallback,
        _ context: UnsafeMutableRawPointer
    ) {
        switch channel {
        case .plain(let socket): unsafe event.assign(loop, fd: socket.rawValue, kind, callback, context)
        case .secured(let secured):
            unsafe event.assign(loop, fd: secured.socket.rawValue, kind, callback, context)
        }
    }

    // MARK: TLS

    package var isSecured: Bool {
        switch channel {
        case .plain: false
        case .secured: true
        }
    }

    /// Continues the handshake; a plain transport needs none.
    package func handshake() -> TLSHandshake {
        switch channel {
        case .plain: .done
        case .secured(let secured): secured.session.handshake()
        }
    }

    // MARK: the end

    /// Announces that nothing more will be written; reading goes on.
    package func shutdownWrite() {
        switch channel {
        case .plain(let socket): Sockets.shutdownWrite(socket.rawValue)
        case .secured(let secured): secured.shutdownWrite()
        }
    }

    /// The connection is over in both directions, for it was reset.
    package var isReset: Bool {
        switch channel {
        case .plain(let socket): Sockets.isHungUp(socket.rawValue)
        case .secured(let secured): Sockets.isHungUp(secured.socket.rawValue)
        }
    }

    /// Makes closing a reset, so that the peer can tell that it was cut off. TLS says no goodbye then.
    package func resetOnClose() {
        switch channel {
        case .plain(let socket): Sockets.resetOnClose(socket.rawValue)
        case .secured(let secured): secured.resetOnClose()
        }
    }

    /// Gives the socket to another owner. Returns nil with TLS, whose state cannot be given away: then it is closed.
    package consuming func surrender() -> Descriptor? {
        switch consume channel {
        case .plain(let socket): return socket
        case .secured: return nil
        }
    }
}

/// A socket that changed hands, with the bytes that were read from it and not used.
package struct SurrenderedSocket: ~Copyable {
    package let descriptor: Descriptor
    package let unread: [UInt8]

    package init(_ descriptor: consuming Descriptor, unread: [UInt8]) {
        self.descriptor = descriptor
        self.unread = unread
    }

    /// The socket alone; take `unread` first.
    package consuming func release() -> Descriptor { descriptor }
}
