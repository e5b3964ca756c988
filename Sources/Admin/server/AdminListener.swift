import EventLoop
import Glibc
import Server
import Transport

/// One listening socket of the admin server, and the connections that it accepted.
final class AdminListener: TimedObject {
    /// The most connections of one listener. Each listener has its own bound, so that clients of the port cannot lock out the command line.
    private static let connectionsMax = 64
    /// How long to stop accepting when the process has no descriptors left.
    private static let restTime: Duration = .seconds(1)

    private let loop: EventLoop
    private let router: AdminRouter
    private let socket: Descriptor
    private let door: AdminRequest.Door
    /// The socket file, which is removed when the listener closes.
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

    /// Accepts again after the pause.
    override func timerFired() { event.add() }

    func close() {
        event.clear()
        loop.timers.cancel(self)
        for connection in connections.values { connection.close() }
        if let path { _ = unsafe unlink(path) }  // if somebody has removed it already, there is nothing to do
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

    /// Pauses: the listener stays readable while a client waits, so the loop would spin.
    private func rest() {
        event.remove()
        loop.timers.schedule(self, after: Self.restTime)
    }

    /// Beyond the bound, connections are closed at once.
    private func open(_ client: consuming Descriptor) {
        guard connections.count < Self.connectionsMax else { return }
        Sockets.setNoDelay(client.rawValue)
        let connection = AdminConnection(loop: loop, router: router, transport: Transport(plain: client), door: door) {
            [unowned self] in
            let ended = connections.removeValue(forKey: ObjectIdentifier($0))
            loop.afterTurn { _ = ended }  // one of its methods is running: release it after the turn
        }
        connections[ObjectIdentifier(connection)] = connection
        connection.start()
    }
}
