import Fleet
import Testing

/// A server and one node, and everything that can go wrong between them in any order. Each purge that is added once the node has begun must be
/// applied, or everything must be marked stale after it was added.
@Suite("Fleet: the follower in a simulation") struct StreamFollowerSimulation {
    @Test(arguments: 0..<400 as Range<UInt64>) func `no purge is lost`(_ seed: UInt64) {
        var world = World(seed: seed)
        for _ in 0..<600 { world.step() }
        world.calm()
        #expect(world.faults == [], "seed \(seed)")
        #expect(world.lost == [], "seed \(seed)")
    }

    /// Without this the test above might pass because nothing happens in it.
    @Test func `the simulation comes to all that it is about`() {
        var reasons: [StaleReason: Int] = [:]
        var applied = 0
        var calmMarks = 0
        for seed in UInt64(0)..<100 {
            var world = World(seed: seed)
            for _ in 0..<600 { world.step() }
            world.calm()
            reasons.merge(world.reasons) { $0 + $1 }
            applied += world.applied.count
            // From then on the server is well, and nothing is marked.
            world.add()
            world.calm()
            let before = world.marks - world.reasons[.unknownEntry, default: 0]
            for _ in 0..<50 {
                world.add()
                world.disconnect()
                world.calm()
            }
            calmMarks += world.marks - world.reasons[.unknownEntry, default: 0] - before
        }
        #expect(Set(reasons.keys) == Set(StaleReason.allCases).subtracting([.diskAdded]), "\(reasons)")
        #expect(applied > 1000, "\(applied)")
        #expect(calmMarks == 0)
    }

    struct World {
        var numbers: SeededNumbers
        /// Counts steps and events, so that "after" has a meaning.
        var time: UInt64 = 1

        // The server.
        var entries: [StreamEntry] = []
        var lastID: StreamID = .zero
        var maxDeleted: StreamID = .zero
        var epoch = 0
        /// What a restart without its last writes goes back to.
        var snapshot: ([StreamEntry], StreamID, StreamID) = ([], .zero, .zero)

        // The node.
        var follower = StreamFollower(position: nil)
        var remembered: StreamPosition?
        var isConnected = false
        /// The driver is to ask how the stream is.
        var isAsking = false
        var reading: StreamID?
        /// What the server has answered to the read that is under way, and the node has not received.
        var answer: [StreamEntry]?
        var applying: (id: StreamID, number: UInt64)?
        var hasBegun = false

        // What has happened.
        var added: [(id: StreamID, number: UInt64, at: UInt64)] = []
        var applied: Set<UInt64> = []
        var appliedInThisLife: Set<UInt64> = []
        var lastMark: UInt64 = 0
        var marks = 0
        var reasons: [StaleReason: Int] = [:]
        var faults: [String] = []

        init(seed: UInt64) { numbers = SeededNumbers(state: seed) }

        var lost: [UInt64] {
            added.filter { !applied.contains($0.number) && lastMark <= $0.at }.map(\.number)
        }

        mutating func chance(_ parts: Int, of whole: Int) -> Bool { Int.random(in: 0..<whole, using: &numbers) < parts }

        mutating func step() {
            time += 1
            switch Int.random(in: 0..<40, using: &numbers) {
            case 0..<10: add()
            case 10..<24: isConnected ? serve() : connect()
            case 24..<30: finish()
            case 30: disconnect()
            case 31: if reading != nil, answer == nil { answer = [] }
            case 32: trim()
            case 33: if chance(1, of: 3) { deleteEntry() }
            case 34: if chance(1, of: 3) { flush() }
            case 35: if chance(1, of: 3) { restart() }
            case 36: if chance(1, of: 3) { deleteStream() }
            case 37: if chance(1, of: 2) { crash() }
            case 38: forge()
            default: if chance(1, of: 4) { refuse() }
            }
        }

        // MARK: the server

        private mutating func nextID() -> StreamID {
            let now = StreamID(milliseconds: time, sequence: 0)
            return now > lastID ? now : StreamID(milliseconds: lastID.milliseconds, sequence: lastID.sequence + 1)
        }

        private mutating func append(_ purge: Result<PurgeEntry, PurgeEntryError>) {
            lastID = nextID()
            entries.append(StreamEntry(id: lastID, purge: purge))
            if reading != nil, answer == nil { answer = entries.suffix(1) }
            if entries.count > 12, chance(1, of: 2) { entries.removeFirst(entries.count - 8) }
        }

        mutating func add() {
            time += 1
            let number = time
            if chance(1, of: 20) {
                append(.failure(.unknownVersion))
            } else {
                guard let purge = PurgeEntry(node: "n", number: number, issuedAt: 0, purge: []) else { return }
                append(.success(purge))
            }
            if hasBegun { added.append((lastID, number, time)) }
        }

        private mutating func forge() { append(.failure(.wrongCode)) }

        private mutating func trim() {
            entries.removeFirst(Int.random(in: 0...entries.count, using: &numbers))
            if chance(1, of: 2) { snapshot = (entries, lastID, maxDeleted) }
        }

        private mutating func deleteEntry() {
            guard let index = entries.indices.randomElement(using: &numbers) else { return }
            maxDeleted = max(maxDeleted, entries.remove(at: index).id)
        }

        private mutating func flush() {
            (entries, lastID, maxDeleted) = ([], .zero, .zero)
            epoch += 1
            snapshot = (entries, lastID, maxDeleted)
            if isConnected, reading == nil, chance(1, of: 2) { disconnect() }
        }

        /// The server is started again, with its last writes or without.
        private mutating func restart() {
            disconnect()
            epoch += 1
            if chance(2, of: 3) { (entries, lastID, maxDeleted) = snapshot }
        }

        /// Somebody deletes the stream, and nothing else. What StreamFollower does not notice is left out: a node that has read no entry of it.
        private mutating func deleteStream() {
            guard let id = follower.position?.id, id > .zero else { return }
            (entries, lastID, maxDeleted) = ([], .zero, .zero)
        }

        private var stream: StreamState {
            StreamState(
                epoch: StreamEpoch(Array("\(epoch)".utf8))!, first: entries.first?.id, last: lastID,
                maxDeleted: maxDeleted)
        }

        // MARK: the connection

        private mutating func connect() {
            isConnected = true
            hasBegun = true
            perform(follower.examined(stream))
        }

        mutating func disconnect() {
            guard isConnected else { return }
            (isConnected, isAsking, reading, answer) = (false, false, nil, nil)
            follower.disconnected()
        }

        /// An attempt to connect fails.
        private mutating func refuse() {
            guard !isConnected else { return }
            follower.disconnected()
            // From now on a purge concerns what this node stores.
            hasBegun = true
        }

        /// The node receives what the server answers.
        private mutating func serve() {
            if isAsking {
                isAsking = false
                perform(follower.examined(stream))
            } else if reading != nil, let entries = answer {
                (reading, answer) = (nil, nil)
                perform(follower.read(entries))
            }
        }

        /// The server answers a read at once if there are entries, and otherwise when one is added.
        private mutating func beginReading(_ after: StreamID) {
            if reading != nil || !isConnected { faults.append("a second read, or one without a connection") }
            reading = after
            var found = entries.filter { $0.id > after }.prefix(Int.random(in: 1...5, using: &numbers))
            // Entries that come again.
            if chance(1, of: 4), let old = entries.filter({ $0.id <= after }).last { found.insert(old, at: 0) }
            answer = found.isEmpty ? nil : Array(found)
        }

        private mutating func finish() {
            guard let (id, number) = applying else { return }
            applying = nil
            applied.insert(number)
            perform(follower.applied(id))
        }

        /// The node is killed, and started again with what it remembers.
        private mutating func crash() {
            guard hasBegun, let remembered else { return }
            (isConnected, isAsking, reading, answer, applying) = (false, false, nil, nil, nil)
            appliedInThisLife = []
            follower = StreamFollower(position: remembered)
        }

        private mutating func perform(_ actions: [StreamFollower.Action]) {
            for action in actions {
                time += 1
                switch action {
                case .ask: isAsking = true
                case .readAfter(let id): beginReading(id)
                case .apply(let id, let purge):
                    if applying != nil { faults.append("two at once") }
                    if !appliedInThisLife.insert(purge.number).inserted { faults.append("\(purge.number) twice") }
                    applying = (id, purge.number)
                case .skip(_, let error):
                    if error == .unknownVersion, action == actions.last { faults.append("a purge was passed over") }
                case .markEverythingStale(let reason):
                    lastMark = time
                    marks += 1
                    reasons[reason, default: 0] += 1
                case .remember(let position):
                    if applying != nil { faults.append("remembered what is not applied") }
                    remembered = position
                }
            }
        }

        /// The server is well, and the node does all that there is to do.
        mutating func calm() {
            time += 1
            if !isConnected { connect() }
            // A read that waits ends without entries, and the node asks again.
            if reading != nil, answer == nil { answer = [] }
            for _ in 0..<200 {
                finish()
                serve()
            }
            if applying != nil || reading == nil { faults.append("the node does not come to rest") }
        }
    }
}
