/// Every bound on what a peer can make us hold or do. Sizes in bytes.
package struct Limits: Sendable, Equatable {
    /// A whole head, start line and fields. Beyond: 431 to a client, 502 for an origin.
    package var headBytesMax = 64 << 10
    /// Field lines in a head or trailer section. Beyond: 431 / 502.
    package var fieldCountMax = 100
    /// The request-target. Beyond: 414.
    package var targetBytesMax = 8 << 10
    /// One chunk-size line with its extensions. Extensions mean nothing to us; a long one is an attack. Beyond: 400 / 502.
    package var chunkLineBytesMax = 1 << 10
    /// A trailer section. Beyond: 400 / 502.
    package var trailerBytesMax = 16 << 10
    /// Interim (1xx) responses before the final one. Beyond: 502.
    package var interimResponsesMax = 32
    /// Bytes of further pipelined requests held while one is being answered; then the client is not read.
    package var pipelinedBytesMax = 64 << 10
    /// Requests handled from one read before other connections get their turn.
    package var requestsPerTurnMax = 64
    /// Bytes held for one slow client of a response that is not stored; then the origin is not read.
    package var relayBufferBytesMax = 256 << 10
    /// Requests that follow one transfer under way; the next ones fetch on their own.
    package var followersPerTransferMax = 100_000
    /// Variants of one primary key; the oldest goes.
    package var variantsPerKeyMax = 32
    /// Connections to one origin per worker; more requests queue.
    package var originConnectionsMax = 256
    /// Requests that wait for a connection to one origin, per worker. Beyond: 503.
    package var originQueueMax = 4096
    /// Attempts of one idempotent request whose pooled connection turned out dead.
    package var deadConnectionRetriesMax = 2
    /// Client connections of all workers. Each costs a descriptor and about 2 KiB. Beyond: closed when it is accepted.
    package var clientsMax = 100_000
    /// Requests under way that are no plain hits, of all workers: each costs about 4 KiB and what its body holds. Beyond: 503.
    package var exchangesMax = 100_000
    /// Tunnels of all workers. Each costs two descriptors and, while bytes move, a pipe. Beyond: 503.
    package var tunnelsMax = 50_000
    /// Requests of one client connection; then it is closed with its answer. 0: no bound.
    package var requestsPerConnectionMax = 0

    package init() {}
}
