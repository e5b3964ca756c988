public import EventLoop
public import Glibc
package import TLS

/// A connection that carries bytes in both directions, in plain text or through TLS.
///
/// A transport owns its socket and closes it when it is destroyed. With TLS it sends `close_notify` first (RFC 8446 §6.1). Clients, origins
/// and the admin server all read and write through a transport, so no other file needs to know whether there is TLS.
///
/// With TLS, reading may have to wait until the socket accepts bytes, and writing until bytes arrive. So an owner asks
/// `awaits(_:toRead:toWrite:)` which events to register, again after each `.wouldBlock`, and asks the same question when an event
/// fires. Events that are tied to the socket must be cleared before the transport is destroyed: the number of a closed descriptor may be
/// used again at once.
///
/// Reading and writing a plain transport costs one branch and one system call. A class that stores its transport in a `var` pays
/// for a dynamic exclusivity check as well, unless the property is marked `@exclusivity(unchecked)`. That is safe as long as the
/// property is not replaced while one of its methods runs; no method of a transport calls back.
///
/// What a hit or a miss calls is `@inlinable`, so that it costs no more than within the room of its caller. The compiler wants all that
/// such a function names to be `@usableFromInline`, and the modules of these types imported publicly.
@usableFromInline
package struct Transport: ~Copyable {
    @usableFromInline
    enum Channel: ~Copyable {
        case plain(Descriptor)
        case secured(SecuredChannel)
        case opened(OpenedChannel)
    }
    @usableFromInline let channel: Channel

    package init(plain socket: consuming Descriptor) {
        channel = .plain(socket)
    }

    /// The client's side of TLS over `socket`. Nothing may be read or written until `handshake()` has returned `.done`.
    ///
    /// - Parameter serverName: the name or address that the server's certificate must have. A name is sent as SNI (RFC 6066 §3).
    package init(
        securing socket: consuming Descriptor, with context: TLSClientContext, serverName: String
    ) throws(TLSContextError) {
        let session = try TLSSession(context, fd: socket.rawValue, serverName: serverName)
        channel = .secured(SecuredChannel(session, over: socket))
    }

    /// The client's side of TLS over another transport, whose own handshake is done: inside a tunnel that a next proxy has opened. No byte
    /// behind the proxy's answer may have been read.
    package init(
        securing carrier: consuming Transport, with context: TLSClientContext, serverName: String
    ) throws(TLSContextError) {
        switch consume carrier.channel {
        case .plain(let socket):
            let session = try TLSSession(context, fd: socket.rawValue, serverName: serverName)
            channel = .secured(SecuredChannel(session, over: socket))
        case .secured(let outer):
            let session = try TLSSession(context, inside: outer.session, serverName: serverName)
            channel = .secured(SecuredChannel(session, inside: outer))
        case .opened: preconditionFailure("a connection of a client leads to no origin")
        }
    }

    /// The server's side of TLS over `socket`. Nothing may be read or written until `handshake()` has returned `.done`.
    package init(securing socket: consuming Descriptor, with context: TLSServerContext) throws(TLSContextError) {
        let session = try TLSSession(context, fd: socket.rawValue)
        channel = .secured(SecuredChannel(session, over: socket))
    }

    /// The server's side of TLS with a client in an opened tunnel. Nothing may be read or written until `handshake()` has returned `.done`.
    ///
    /// - Parameters:
    ///   - carrier: the client's connection. If it has TLS with the proxy, its handshake is done, and there is TLS inside of TLS.
    ///   - leaf: the certificate for the host that the client asks for.
    ///   - received: what was read from the connection before.
    ///   - records: the buffer of this thread.
    package init(
        opening carrier: consuming Transport, with context: TLSServerContext, leaf: Leaf, received: [UInt8],
        records: RecordBuffer
    ) throws(TLSContextError) {
        switch consume carrier.channel {
        case .plain(let socket):
            let session = try TLSServerSession(
                context, fd: socket.rawValue, leaf: leaf, received: received, records: records)
            channel = .opened(OpenedChannel(session, over: socket))
        case .opened(let outer):
            let session = try TLSServerSession(context, inside: outer.session, leaf: leaf, received: received)
            channel = .opened(OpenedChannel(session, inside: outer))
        case .secured: preconditionFailure("a connection with an origin is no client's")
        }
    }

    /// The server's side of TLS with a client of a listener. Nothing may be read or written until `handshake()` has returned `.done`.
    ///
    /// - Parameters:
    ///   - received: what was read from the socket before.
    ///   - records: the buffer of this thread.
    package init(
        accepting socket: consuming Descriptor, with context: TLSServerContext, received: [UInt8], records: RecordBuffer
    ) throws(TLSContextError) {
        let session = try TLSServerSession(
            context, fd: socket.rawValue, leaf: nil, received: received, records: records)
        channel = .opened(OpenedChannel(session, over: socket))
    }

    /// The certificate of a client. Nil if it has shown none.
    package var clientCertificate: ShownCertificate? {
        switch channel {
        case .plain: nil
        case .secured: nil
        case .opened(let opened): opened.session.clientCertificate
        }
    }

    // MARK: bytes

    /// Reads at most as many bytes as `buffer` has room for.
    @inlinable
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        switch channel {
        case .plain(let socket): unsafe IO.receive(socket.rawValue, into: buffer)
        case .secured(let secured): unsafe secured.read(into: buffer)
        case .opened(let opened): unsafe opened.read(into: buffer)
        }
    }

    /// Writes as many of the bytes as the socket accepts. After `.wouldBlock`, TLS must be offered the same bytes again; more may follow
    /// them.
    @inlinable
    package func write(_ bytes: UnsafeRawBufferPointer) -> IOResult {
        switch channel {
        case .plain(let socket): unsafe IO.send(socket.rawValue, bytes)
        case .secured(let secured): unsafe secured.write(bytes)
        case .opened(let opened): unsafe opened.write(bytes)
        }
    }

    /// Writes as many bytes of the pieces as the socket accepts. After `.wouldBlock`, the rule of `write` applies to the first piece.
    @inlinable
    package func writev(_ vectors: UnsafeMutablePointer<iovec>, _ count: Int) -> IOResult {
        switch channel {
        case .plain(let socket): unsafe IO.writev(socket.rawValue, vectors, count)
        case .secured(let secured): unsafe secured.writev(UnsafeMutableBufferPointer(start: vectors, count: count))
        case .opened(let opened): unsafe opened.writev(vectors, count)
        }
    }

    /// Whether `send` may be called: the peer gets the bytes as they are.
    @inlinable
    package var sendsFiles: Bool {
        switch channel {
        case .plain: true
        case .secured: false
        case .opened: false
        }
    }

    /// Writes `head`, and behind it bytes of a file without copying them. The bytes of the file must never change. Only in plain text.
    /// - Returns: `.bytes` as soon as the socket has accepted anything.
    package func send(_ head: UnsafeRawBufferPointer, file: CInt, from offset: Int, _ count: Int) -> IOResult {
        switch channel {
        case .plain(let socket): return unsafe IO.send(socket.rawValue, head, file: file, from: offset, count)
        case .secured: preconditionFailure("TLS needs the bytes themselves")
        case .opened: preconditionFailure("TLS needs the bytes themselves")
        }
    }

    /// Whether bytes have been decrypted that no event of the socket will announce: read again before waiting.
    @inlinable
    package var mustBeDrained: Bool {
        switch channel {
        case .plain: false
        case .secured(let secured): secured.mustBeDrained
        case .opened(let opened): opened.mustBeDrained
        }
    }

    /// Whether bytes that count as written wait for room in the socket: `flush` sends them. The peer gets nothing else before.
    @inlinable
    package var hasUnsentBytes: Bool {
        switch channel {
        case .plain: false
        case .secured: false
        case .opened(let opened): opened.hasUnsentBytes
        }
    }

    /// Sends bytes that count as written. Returns `.bytes(0)` if none are left, and `.wouldBlock` if the socket does not accept all of them.
    @inlinable
    package func flush() -> IOResult {
        switch channel {
        case .plain: .bytes(0)
        case .secured: .bytes(0)
        case .opened(let opened): opened.flush()
        }
    }

    // MARK: waiting

    /// Whether an owner that wants to read, to write, or both, must wait for this event.
    ///
    /// When the event fires, ask for reading alone and for writing alone to find out which of them to try.
    @inlinable
    package func awaits(_ event: Readiness, toRead: Bool, toWrite: Bool) -> Bool {
        switch channel {
        case .plain:
            switch event {
            case .read: toRead
            case .write: toWrite
            }
        case .secured(let secured):
            toRead && secured.readAwaits == event || toWrite && secured.writeAwaits == event
        case .opened:
            switch event {
            case .read: toRead
            case .write: toWrite
            }
        }
    }

    /// Has both events of an owner wait for what it wants to do.
    package func wait(_ read: inout IOEvent, _ write: inout IOEvent, toRead: Bool, toWrite: Bool) {
        if awaits(.read, toRead: toRead, toWrite: toWrite) { read.add() } else { read.remove() }
        if awaits(.write, toRead: toRead, toWrite: toWrite) { write.add() } else { write.remove() }
    }

    /// Ties an event to the socket. The event must be cleared before the transport is destroyed.
    package func assign(
        _ event: inout IOEvent, on loop: EventLoop, _ kind: Readiness, _ callback: ReadinessCallback,
        _ context: UnsafeMutableRawPointer
    ) {
        switch channel {
        case .plain(let socket): unsafe event.assign(loop, fd: socket.rawValue, kind, callback, context)
        case .secured(let secured):
            unsafe event.assign(loop, fd: secured.descriptor, kind, callback, context)
        case .opened(let opened): unsafe event.assign(loop, fd: opened.descriptor, kind, callback, context)
        }
    }

    // MARK: TLS

    @inlinable
    package var isSecured: Bool {
        switch channel {
        case .plain: false
        case .secured: true
        case .opened: true
        }
    }

    /// Continues the handshake. A plain transport returns `.done` at once.
    package func handshake() -> TLSHandshake {
        switch channel {
        case .plain: .done
        case .secured(let secured): secured.session.handshake()
        case .opened(let opened): opened.session.handshake()
        }
    }

    /// When the first certificate of the server's verified chain ends, in seconds since 1970. Nil without TLS.
    package var chainEnd: Int64? {
        switch channel {
        case .plain: nil
        case .secured(let secured): secured.session.chainEnd
        case .opened: nil
        }
    }

    /// Of TLS with a server, for the log: `TLSv1.3`.
    package var version: String? {
        switch channel {
        case .plain: nil
        case .secured(let secured): secured.session.version
        case .opened: nil
        }
    }

    /// Of the certificate of the server that TLS leads to, see `TLSSession.endPointHash`: the origin's within a tunnel, and the next proxy's if the
    /// connection ends there. Nil without TLS.
    package var endPointHash: [UInt8]? {
        switch channel {
        case .plain: nil
        case .secured(let secured): secured.session.endPointHash
        case .opened: nil
        }
    }

    /// Whether an earlier TLS session was resumed.
    package var isResumed: Bool {
        switch channel {
        case .plain: false
        case .secured(let secured): secured.session.isResumed
        case .opened(let opened): opened.session.isResumed
        }
    }

    /// Whether an origin ended the connection because of the certificate that it was shown.
    package var isCertificateRefused: Bool {
        switch channel {
        case .plain: false
        case .secured(let secured): secured.session.isCertificateRefused
        case .opened: false
        }
    }

    /// Whether an origin has asked for a certificate, and Larder had none to show.
    package var isAskedForCertificate: Bool {
        switch channel {
        case .plain: false
        case .secured(let secured): secured.session.isAskedForCertificate
        case .opened: false
        }
    }

    /// Why the TLS session with a client failed. Nil if it has not.
    package var failure: TLSFailure? {
        switch channel {
        case .plain: nil
        case .secured: nil
        case .opened(let opened): opened.session.failure
        }
    }

    // MARK: the end

    /// Closes the sending side. Reading goes on.
    package func shutdownWrite() {
        switch channel {
        case .plain(let socket): Sockets.shutdownWrite(socket.rawValue)
        case .secured(let secured): secured.shutdownWrite()
        case .opened(let opened): opened.shutdownWrite()
        }
    }

    /// Whether the connection has ended in both directions, which only a reset by the peer causes.
    package var isReset: Bool {
        switch channel {
        case .plain(let socket): Sockets.isHungUp(socket.rawValue)
        case .secured(let secured): Sockets.isHungUp(secured.descriptor)
        case .opened(let opened): Sockets.isHungUp(opened.descriptor)
        }
    }

    /// What the peer has acknowledged, and what it has not, in bytes of the connection below TLS. Nil if the kernel does not tell, as for a Unix
    /// socket.
    package var delivered: (acknowledged: UInt64, waiting: UInt64)? {
        switch channel {
        case .plain(let socket): Sockets.delivered(socket.rawValue)
        case .secured(let secured): Sockets.delivered(secured.descriptor)
        case .opened(let opened): Sockets.delivered(opened.descriptor)
        }
    }

    /// Makes closing send a reset, so that the peer can tell that the connection was cut off. TLS sends no `close_notify` then.
    package func resetOnClose() {
        switch channel {
        case .plain(let socket): Sockets.resetOnClose(socket.rawValue)
        case .secured(let secured): secured.resetOnClose()
        case .opened(let opened): opened.resetOnClose()
        }
    }

    /// Gives the bare socket to another owner. Returns nil, and closes the socket, if there is TLS, whose state does not go with it.
    package consuming func surrender() -> Descriptor? {
        switch consume channel {
        case .plain(let socket): return socket
        case .secured: return nil
        case .opened: return nil
        }
    }
}

/// A connection that was given away, with the bytes that were read from it but not used.
package struct SurrenderedConnection: ~Copyable {
    package let transport: Transport
    package let unread: [UInt8]

    package init(_ transport: consuming Transport, unread: [UInt8]) {
        self.transport = transport
        self.unread = unread
    }

    /// The transport alone. Read `unread` before.
    package consuming func release() -> Transport { transport }
}

extension IO {
    /// Sends `head`, and behind it bytes of a file.
    fileprivate static func send(
        _ socket: CInt, _ head: UnsafeRawBufferPointer, file: CInt, from offset: Int, _ count: Int
    ) -> IOResult {
        let headBytes = head.count
        if headBytes > 0 {
            let sent = unsafe send(socket, head, more: true)
            guard sent == .bytes(headBytes) else { return sent }
        }
        let sent = send(socket, file: file, from: offset, count)
        switch sent {
        case .bytes(let count): return .bytes(headBytes + count)
        case .wouldBlock, .closed, .failed: return headBytes == 0 ? sent : .bytes(headBytes)
        }
    }
}
