import EventLoop
import Message
import Transaction

/// The connections of one worker to all origins: kept alive between requests, bounded per origin, queued beyond.
final class OriginPools {
    private let worker: Worker
    private var pools: [OriginKey: Pool] = [:]
    /// The one that was asked for last: often the next request goes there as well.
    private var recent: Pool?
    private var handshakes: [ObjectIdentifier: Handshake] = [:]
    private(set) var openCount = 0
    private(set) var idleCount = 0

    final class Pool {
        fileprivate let key: OriginKey
        init(key: OriginKey) { self.key = key }
        var idle: [OriginConnection] = []
        var open = 0  // idle, in use and being opened
        var queue: [Fetch] = []
    }

    init(worker: Worker) { self.worker = worker }

    // MARK: getting a connection

    /// Gives the fetch a connection, now or later: `connected(_:)` or `connectionFailed(_:)` of the fetch is called.
    func acquire(for fetch: Fetch) {
        let pool = pool(for: fetch.request.originKey)
        if fetch.mayUsePooledConnection {
            while let connection = pool.idle.popLast() {
                idleCount -= 1
                worker.loop.timers.cancel(connection)
                // Another client's rules may have opened this address: the question is asked again.
                if mayUse(connection, for: fetch) {
                    worker.counters.add(.originConnectionsReused)
                    hand(connection, to: fetch)
                    return
                }
                close(connection, in: pool)
            }
        }
        guard pool.open < worker.snapshot.limits.originConnectionsMax else {
            makeRoom(in: pool)
            guard pool.open < worker.snapshot.limits.originConnectionsMax else { return queue(fetch, in: pool) }
            return open(for: fetch, in: pool)
        }
        open(for: fetch, in: pool)
    }

    /// Where no rule looks at who asks, the question was answered when the connection was opened.
    private func mayUse(_ connection: OriginConnection, for fetch: Fetch) -> Bool {
        fetch.snapshot.access.isOpen && connection.snapshot === fetch.snapshot
            || IPAddress(connection.address).map {
                fetch.snapshot.access.mayDial(fetch.request.access, address: $0) == nil
            } ?? false
    }

    /// An idle connection that this request may not use stands in the way of one that it may.
    private func makeRoom(in pool: Pool) {
        guard let oldest = pool.idle.first else { return }
        drop(oldest)
    }

    private func queue(_ fetch: Fetch, in pool: Pool) {
        guard pool.queue.count < worker.snapshot.limits.originQueueMax else {
            return fetch.connectionFailed(.originQueueFull)
        }
        worker.counters.add(.originQueued)
        pool.queue.append(fetch)
        worker.loop.timers.schedule(fetch, after: fetch.snapshot.configuration.timeouts.connect)
    }

    private func open(for fetch: Fetch, in pool: Pool) {
        // Closing its last connection may have taken the pool off the list.
        pools[fetch.request.originKey] = pool
        pool.open += 1
        openCount += 1
        let key = fetch.request.originKey
        let dial = Dial(worker: worker, request: fetch.request.access, snapshot: fetch.snapshot) {
            [unowned self, unowned fetch] outcome in
            fetch.dial = nil
            switch outcome {
            case .failed(let refusal):
                discountOpen(key)
                fetch.connectionFailed(refusal)
            case .denied(let denial):
                discountOpen(key)
                fetch.connectionDenied(denial)
            case .connected(let fd, let address):
                Sockets.setNoDelay(fd)
                let socket = Descriptor(adopting: fd)
                if key.scheme == .https {
                    shakeHands(key, socket, address, fetch)
                } else {
                    hand(made(key, address, Transport(plain: socket), fetch.snapshot), to: fetch)
                }
            }
        }
        fetch.dial = dial
        dial.start()
    }

    private func made(
        _ key: OriginKey, _ address: SocketAddress, _ transport: consuming Transport, _ snapshot: Snapshot
    ) -> OriginConnection {
        OriginConnection(
            worker: worker, pools: self, pool: pool(for: key), address: address, transport: transport,
            snapshot: snapshot)
    }

    private func shakeHands(
        _ key: OriginKey, _ socket: consuming Descriptor, _ address: SocketAddress, _ fetch: Fetch
    ) {
        let snapshot = fetch.snapshot
        let handshake: Handshake
        do {
            handshake = Handshake(
                worker: worker,
                transport: try Transport(securing: socket, with: snapshot.tls, serverName: key.host)
            ) { [unowned self] handshake, refusal in
                handshakes[ObjectIdentifier(handshake)] = nil
                let waiting = handshake.fetch
                waiting?.handshake = nil
                guard let refusal else {
                    let connection = made(key, address, handshake.takeTransport(), snapshot)
                    guard let waiting else { return close(connection, in: connection.pool) }
                    return hand(connection, to: waiting)
                }
                discountOpen(key)
                worker.counters.add(.originConnectionsFailed)
                waiting?.connectionFailed(refusal)
            }
        } catch {
            discountOpen(key)
            return fetch.connectionFailed(.internalError)
        }
        handshake.fetch = fetch
        fetch.handshake = handshake
        handshakes[ObjectIdentifier(handshake)] = handshake
        handshake.start(timeout: snapshot.configuration.timeouts.connect)
    }

    private func hand(_ connection: OriginConnection, to fetch: Fetch) {
        connection.fetch = fetch
        connection.beginRequest()
        fetch.connected(connection)
    }

    // MARK: giving it back

    /// The exchange on it is complete and the connection persists (RFC 9112 §9.3).
    func release(_ connection: OriginConnection, keepAlive: Duration) {
        connection.fetch = nil
        let pool = connection.pool
        // Bytes behind the response that nobody asked for: whatever they are, they are not the next response.
        guard !connection.mustBeDrained else { return close(connection, in: pool) }
        if let next = nextQueued(in: pool, for: connection) {
            worker.counters.add(.originConnectionsReused)
            return hand(connection, to: next)
        }
        // Who waits and may not use this one gets its place.
        guard pool.queue.isEmpty, !worker.isDraining, keepAlive > .zero else { return close(connection, in: pool) }
        pool.idle.append(connection)
        idleCount += 1
        worker.loop.timers.schedule(connection, after: keepAlive)
    }

    private func nextQueued(in pool: Pool, for connection: OriginConnection) -> Fetch? {
        guard let index = pool.queue.firstIndex(where: { $0.mayUsePooledConnection && mayUse(connection, for: $0) })
        else { return nil }
        return pool.queue.remove(at: index)
    }

    /// The connection is of no further use.
    func discard(_ connection: OriginConnection) {
        connection.fetch = nil
        close(connection, in: connection.pool)
    }

    /// An idle connection was closed by its origin or has been idle too long.
    func drop(_ connection: OriginConnection) {
        let pool = connection.pool
        if let index = pool.idle.firstIndex(where: { $0 === connection }) {
            pool.idle.remove(at: index)
            idleCount -= 1
        }
        close(connection, in: pool)
    }

    /// The fetch no longer waits for a connection.
    func forget(_ fetch: Fetch) {
        guard let pool = pools[fetch.request.originKey] else { return }
        pool.queue.removeAll { $0 === fetch }
    }

    /// A dial was cancelled before it led to a connection.
    func discountOpen(_ key: OriginKey) {
        openCount -= 1
        let pool = pool(for: key)
        pool.open -= 1
        afterClose(pool)
    }

    private func close(_ connection: OriginConnection, in pool: Pool) {
        connection.close()
        openCount -= 1
        pool.open -= 1
        afterClose(pool)
    }

    private func afterClose(_ pool: Pool) {
        if !pool.queue.isEmpty, pool.open < worker.snapshot.limits.originConnectionsMax {
            return open(for: pool.queue.removeFirst(), in: pool)
        }
        guard pool.open == 0, pool.queue.isEmpty else { return }
        pools[pool.key] = nil
        if recent === pool { recent = nil }
    }

    private func pool(for key: OriginKey) -> Pool {
        if let recent, recent.key == key { return recent }
        if let pool = pools[key] {
            recent = pool
            return pool
        }
        let pool = Pool(key: key)
        pools[key] = pool
        recent = pool
        return pool
    }

    func closeAll() {
        for handshake in Array(handshakes.values) { handshake.abandon() }
        for pool in pools.values {
            for connection in pool.idle { connection.close() }
            idleCount -= pool.idle.count
            openCount -= pool.idle.count
            pool.open -= pool.idle.count
            pool.idle.removeAll()
        }
    }
}
