import EventLoop
import Message
import Redis

/// A connection to Redis that waits for each reply. For commands, which have nothing else to do.
final class RedisProbe {
    private let connection: ProbeConnection
    private let reader = RedisReader()

    /// Connects. Blocks for some seconds at most.
    init(
        _ terms: FleetTerms, to addresses: [SocketAddress], by deadline: MonotonicTime, loop: EventLoop
    ) throws(ProbeFailure) {
        connection = try ProbeConnection(
            to: addresses, by: deadline, tls: terms.tls.map { ($0, terms.url.host) }, loop: loop)
    }

    var chainEnd: Int64? { connection.transport.chainEnd }

    /// Sends a command, and waits for its reply.
    func ask(_ words: [[UInt8]]) throws(ProbeFailure) -> RedisReply {
        let deadline = ProbeConnection.deadline
        var output: [UInt8] = []
        RedisCommand.append(words, to: &output)
        try connection.send(output, until: deadline)
        while true {
            do throws(RedisProtocolError) {
                if let reply = try reader.next() { return reply }
            } catch { throw .nonsense("\(error)") }
            let bytes = try connection.receive(until: deadline)
            unsafe bytes.withUnsafeBytes { unsafe reader.feed($0) }
        }
    }
}
