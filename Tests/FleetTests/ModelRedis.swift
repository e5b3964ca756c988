import Fleet

/// The Redis of the simulated fleet: hashes with records, the stream of purges, and the key of the epoch.
final class ModelRedis {
    var isUp = true
    /// As READONLY or OOM.
    var refusesWrites = false
    private var run = 0
    private var lastEpoch = 0
    private var epoch: Int?
    /// What each node says of itself.
    private(set) var register: [String: [UInt8]] = [:]
    /// Hashes: by its name each has the variants of a key.
    private(set) var records: [[UInt8]: [[UInt8]: [UInt8]]] = [:]
    private var entries: [(id: StreamID, fields: [[UInt8]])] = []
    private var lastID = StreamID.zero
    private var addedCount = 0
    /// Reads that wait for an entry.
    private var readers: [(after: StreamID, reply: ([(id: StreamID, fields: [[UInt8]])]) -> Void)] = []
    var links: [ModelLink] = []

    private static let entriesMax = 8
    static let entriesPerRead = 3

    // MARK: commands

    func set(_ name: [UInt8], _ field: [UInt8], _ value: [UInt8]) -> Bool {
        guard !refusesWrites else { return false }
        records[name, default: [:]][field] = value
        return true
    }

    func enter(_ value: [UInt8], of name: String) { if !refusesWrites { register[name] = value } }

    /// - Returns: how many there were. Nil: it takes no writes.
    func unlink(_ name: [UInt8]) -> Int? {
        guard !refusesWrites else { return nil }
        return records.removeValue(forKey: name) == nil ? 0 : 1
    }

    /// SET NX and GET of the epoch, and XINFO STREAM. Nil: there is no epoch, and none can be set.
    func state() -> (state: StreamState, isTrimmed: Bool)? {
        if epoch == nil, !refusesWrites {
            lastEpoch += 1
            epoch = lastEpoch
        }
        guard let epoch, let name = StreamEpoch(Array("\(run) \(epoch)".utf8)) else { return nil }
        return (
            StreamState(epoch: name, first: entries.first?.id, last: lastID, maxDeleted: .zero),
            addedCount != entries.count
        )
    }

    func range(after id: StreamID?) -> [(id: StreamID, fields: [[UInt8]])] {
        Array(entries.filter { $0.id > id ?? .zero }.prefix(ModelRedis.entriesPerRead))
    }

    func add(_ fields: [[UInt8]], _ world: FleetWorld) -> StreamID? {
        guard !refusesWrites else { return nil }
        let clock = StreamID(milliseconds: world.now / 1_000_000, sequence: 0)
        lastID = clock > lastID ? clock : StreamID(milliseconds: lastID.milliseconds, sequence: lastID.sequence + 1)
        entries.append((lastID, fields))
        addedCount += 1
        if entries.count > ModelRedis.entriesMax + 4 { entries.removeFirst(entries.count - ModelRedis.entriesMax) }
        let woken = readers
        readers = []
        for reader in woken { reader.reply(range(after: reader.after)) }
        return lastID
    }

    /// XREAD BLOCK: the reply comes with the first entry, or empty after its time.
    func read(
        after id: StreamID, _ world: FleetWorld, _ reply: @escaping ([(id: StreamID, fields: [[UInt8]])]) -> Void
    ) {
        let found = range(after: id)
        guard found.isEmpty else { return reply(found) }
        var isReplied = false
        readers.append(
            (
                id,
                { entries in
                    guard !isReplied else { return }
                    isReplied = true
                    reply(entries)
                }
            ))
        let index = readers.count - 1
        let waiter = readers[index].reply
        world.after(500_000_000) { waiter([]) }
    }

    // MARK: faults

    /// It has no files: everything is gone.
    func restart(_ world: FleetWorld) {
        world.trace("Redis is started again, empty")
        run += 1
        (records, entries, lastID, addedCount, readers, epoch, register) = ([:], [], .zero, 0, [], nil, [:])
        closeAll(world)
    }

    /// The key is evicted, and with it perhaps records. The stream stays.
    func forgetEpoch() { epoch = nil }

    func loseRegister() { register = [:] }

    func evict(_ world: FleetWorld) {
        let names = records.keys.sorted { $0.lexicographicallyPrecedes($1) }
        guard !names.isEmpty else { return }
        records[world.pick(names)] = nil
    }

    func closeAll(_ world: FleetWorld) {
        for link in links { world.after(world.microseconds(100...50_000)) { link.fail() } }
    }
}

/// A connection of a node to the Redis. Commands and replies keep their order.
final class ModelLink {
    enum Failure { case late, disconnected }
    typealias Reply<Value> = (Value?, Failure?) -> Void

    private struct Command {
        /// What is called if the connection ends.
        let disconnected: () -> Void
        var isLate = false
    }

    private unowned let node: ModelNode
    private unowned let world: FleetWorld
    private(set) var isOpen = false
    private var generation = 0
    private var lastArrival: UInt64 = 0
    private var lastReply: UInt64 = 0
    private var outstanding: [Int: Command] = [:]
    private var lastCommand = 0
    private let opened: () -> Void
    private let failed: () -> Void

    init(_ node: ModelNode, opened: @escaping () -> Void, failed: @escaping () -> Void) {
        self.node = node
        world = node.world
        self.opened = opened
        self.failed = failed
    }

    func connect() {
        guard !isOpen, !node.isDead else { return }
        world.after(world.travel * 2, on: node) { [self] in
            guard !isOpen else { return }
            guard world.redis.isUp, world.passes(node.index, FleetWorld.Way.redis),
                world.passes(FleetWorld.Way.redis, node.index)
            else {
                failed()
                return world.after(world.microseconds(100_000...1_000_000), on: node) { [self] in connect() }
            }
            isOpen = true
            (lastArrival, lastReply) = (world.now, world.now)
            opened()
        }
    }

    func fail() {
        guard isOpen, !node.isDead else { return }
        isOpen = false
        generation += 1
        let ended = outstanding.sorted { $0.key < $1.key }
        outstanding = [:]
        for command in ended where !command.value.isLate { command.value.disconnected() }
        failed()
        world.after(world.microseconds(50_000...1_000_000), on: node) { [self] in connect() }
    }

    func send<Value>(
        within wait: UInt64, _ command: @escaping (ModelRedis) -> Value, then: @escaping Reply<Value>
    ) {
        sendBlocking(within: wait, { redis, reply in reply(command(redis)) }, then: then)
    }

    func sendBlocking<Value>(
        within wait: UInt64, _ command: @escaping (ModelRedis, @escaping (Value) -> Void) -> Void,
        then: @escaping Reply<Value>
    ) {
        guard isOpen else { return then(nil, .disconnected) }
        lastCommand += 1
        let (number, sent) = (lastCommand, generation)
        outstanding[number] = Command { then(nil, .disconnected) }
        world.after(wait, on: node) { [self] in
            guard outstanding[number] != nil, sent == generation else { return }
            outstanding[number]?.isLate = true
            then(nil, .late)
            // A server that says nothing for so long is gone.
            world.after(2_000_000_000, on: node) { [self] in
                if sent == generation, outstanding[number] != nil { fail() }
            }
        }
        lastArrival = max(lastArrival, world.now + world.travel)
        // It may get there after its node has died, or after the connection has ended for the node.
        let isLost = !world.passes(node.index, FleetWorld.Way.redis)
        world.after(lastArrival - world.now) { [self] in
            guard world.redis.isUp, !isLost else { return breakOff(sent) }
            command(world.redis) { [self] value in replied(value, number, sent, then) }
        }
    }

    private func replied<Value>(_ value: Value, _ number: Int, _ sent: Int, _ then: @escaping Reply<Value>) {
        guard sent == generation, !node.isDead else { return }
        lastReply = max(lastReply, world.now + world.travel)
        guard world.passes(FleetWorld.Way.redis, node.index) else { return breakOff(sent) }
        world.after(lastReply - world.now, on: node) { [self] in
            guard sent == generation, let command = outstanding.removeValue(forKey: number) else { return }
            // A reply that is late has been given up.
            if !command.isLate { then(value, nil) }
        }
    }

    /// What is lost on a connection ends it, sooner or later.
    private func breakOff(_ sent: Int) {
        world.after(world.microseconds(50_000...3_000_000), on: node) { [self] in if sent == generation { fail() } }
    }
}
