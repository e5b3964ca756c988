import ClientSetup
import EventLoop
import Glibc
import Message
import Routing

/// The origin of `larder doctor` as a worker's connections reach it: over pairs of sockets, so that it listens nowhere.
///
/// One belongs to each worker and runs on its thread; what they remember is shared.
final class CheckOriginServer {
    private let loop: EventLoop
    private let records: Locked<CheckRecords>
    private let limits: Limits
    private var connections: [ObjectIdentifier: CheckOriginConnection] = [:]

    /// Each takes two descriptors. Beyond: the origin cannot be reached.
    private static let connectionsMax = 64

    init(loop: EventLoop, records: Locked<CheckRecords>, limits: Limits) {
        self.loop = loop
        self.records = records
        self.limits = limits
    }

    /// Opens a connection. Returns the client's end, or nil if there are too many connections or no descriptors.
    func connect(for use: OpeningGoal.Use) -> Descriptor? {
        guard connections.count < Self.connectionsMax else { return nil }
        guard var pair = SocketPair() else { return nil }
        let way: CheckOrigin.Way =
            switch use {
            case .plain: .http
            case .secured: .https
            case .tunnel: .tunnel
            }
        let connection = CheckOriginConnection(
            pair.takeEnd(), way: way, records: records, limits: limits)
        let id = ObjectIdentifier(connection)
        connections[id] = connection
        // The connection is running when it ends, so it is released after the turn.
        connection.start(on: loop) { [unowned self] in
            loop.afterTurn { [weak self] in self?.connections[id] = nil }
        }
        return pair.takeEnd()
    }
}
