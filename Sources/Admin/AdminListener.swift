import EventLoop
import Glibc
import Server

/// One listening socket of the admin server and the connections that came in by it.
final class AdminListener: TimedObject {
    /// Each listener has its own bound, so that whoever holds the port open does not lock the command line out.
    private static let connectionsMax = 64
    /// How long accepting rests when the process has no descriptors left.
    private static let restTime: Duration = .seconds(1)

    private let loop: EventLoop
    private let router: AdminRouter
    private let socket: Descriptor
    private let door: AdminRequest.Door
    /// Of the socket file, which goes when the listener goes.
    private let path: String?
    private var event = IOEvent()
    private var connections: [ObjectIdentifier: AdminConnection] = [:]

    init(
        loop: EventLoop, router: AdminRouter, socket: consuming Descriptor, door: AdminRequest.Door, path: String?
    ) {
        self.loop = loop
        self.router = router
        self.socket = socket
        self.door = door
        self.path = path
        super.init()
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe event.assign(
            loop, fd: self.socket.rawValue, .read,
            { _, _, context in
                guard let context = unsafe context else { preconditionFailure("registered with its listener") }
                unsafe Unmanaged<AdminListener>.fromOpaque(context).takeUnretainedValue().accept()
            }, context)
    }

    func start() { event.add() }

    /// The rest is over.
    override func timerFired() { event.add() }

    func close() {
        event.clear()
        loop.timers.cancel(self)
        for connection in connections.values { connection.close() }
        if let path { _ = unsafe unlink(path) }  // somebody else may have removed it; then nothing is to be done
    }

    private func accept() {
        switch Sockets.accept(socket.rawValue) {
        case .accepted(let client, _): open(client)
        case .wouldBlock: break
        case .aborted: break
        case .outOfDescriptors: rest()
        case .failed: rest()
        }
    }

    /// The waiting client stays readable: without a rest the loop would spin.
    private func rest() {
        event.remove()
        loop.timers.schedule(self, after: Self.restTime)
    }

    /// Beyond the bound a client finds its connection closed.
    private func open(_ client: consuming Descriptor) {
        guard connections.count < Self.connectionsMax else { return }
        Sockets.setNoDelay(client.rawValue)
        let connection = AdminConnection(loop: loop, router: router, transport: Transport(plain: client), door: door) {
            [unowned self] in
            let ended = connections.removeValue(forKey: ObjectIdentifier($0))
            loop.afterTurn { _ = ended }  // it is on the stack now: let go when the turn is over
        }
        connections[ObjectIdentifier(connection)] = connection
        connection.start()
    }
}
