/// Every bound on what a peer can make Larder store or do, with what happens beyond it. Sizes are in bytes.
package struct Limits: Sendable, Equatable {
    /// A whole head, start line and fields. Beyond: 431 to a client, 502 for an origin.
    package var headBytesMax = 64 << 10
    /// Field lines in a head or trailer section. Beyond: 431 / 502.
    package var fieldCountMax = 100
    /// The request-target. Beyond: 414.
    package var targetBytesMax = 8 << 10
    /// One chunk-size line with its extensions. Larder ignores extensions; a long one is an attack. Beyond: 400 / 502.
    package var chunkLineBytesMax = 1 << 10
    /// A trailer section. Beyond: 400 / 502.
    package var trailerBytesMax = 16 << 10
    /// Interim (1xx) responses before the final one. Beyond: 502.
    package var interimResponsesMax = 32
    /// Of the body of a 407 to CONNECT, with its framing. Beyond: the challenge is answered on another connection.
    package var challengeBodyBytesMax = 64 << 10
    /// Bytes of further pipelined requests that are kept while one is being answered. Beyond: the client is not read.
    package var pipelinedBytesMax = 64 << 10
    /// Requests of one connection that are handled before other connections have their turn.
    package var requestsPerTurnMax = 64
    /// The time for the first bytes in an opened tunnel: a whole ClientHello or request line. Beyond: the connection is closed.
    package var helloTimeout: Duration = .seconds(5)
    /// The time in which a client reads nothing of a body that is not kept for it and that others read as well. Beyond: its connection is closed.
    package var delayingReaderTimeout: Duration = .seconds(5)
    /// Bytes of a response that is not stored, kept for one slow client. Beyond: the origin is not read.
    package var relayBufferBytesMax = 256 << 10
    /// Requests that follow one transfer. Beyond: a request asks the origin itself.
    package var followersPerTransferMax = 100_000
    /// Variants stored under one key. Beyond: the oldest one is removed.
    package var variantsPerKeyMax = 32
    /// Connections of one worker to one origin. Beyond: requests queue.
    package var originConnectionsMax = 256
    /// Requests of one worker that wait for a connection to one origin. Beyond: 503.
    package var originQueueMax = 4096
    /// Repetitions of an idempotent request whose pooled connection turned out to be dead. Beyond: 502.
    package var deadConnectionRetriesMax = 2
    /// Client connections of all workers. Each costs a descriptor and about 2 KiB. Beyond: closed when it is accepted.
    package var clientsMax = 100_000
    /// Requests of all workers under way that are not plain hits. Each costs about 4 KiB and the memory of its body. Beyond: 503.
    package var exchangesMax = 100_000
    /// The body of a request that is kept until it is whole, because a credential covers it or one of its members may be a placeholder. Beyond:
    /// 502 if it is covered; otherwise it is sent while it comes, and a placeholder in it is misplaced.
    package var keptBodyBytesMax = 1 << 20
    /// Such bodies of all workers. Each costs `keptBodyBytesMax` at most. Beyond: 503.
    package var keptBodiesMax = 256
    /// Tunnels of all workers. Each costs two descriptors and, while bytes move, a pipe. Beyond: 503.
    package var tunnelsMax = 50_000
    /// Requests of one client connection. The connection closes behind the last answer. 0: no bound.
    package var requestsPerConnectionMax = 0

    /// In bytes per second: what a client takes of its answers at least. Beyond: its connection is reset. Nil: it may be as slow as it likes.
    package var downloadRateMin: UInt64? = 256
    /// In bytes per second: what a client sends of a body at least. Beyond: 408. Nil: it may be as slow as it likes.
    package var uploadRateMin: UInt64? = 256
    /// The time over which both rates are looked at.
    package var rateWindow: Duration = .seconds(60)

    package init() {}
}
