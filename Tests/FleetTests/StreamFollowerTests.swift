import Fleet
import Testing

@Suite("Fleet: following the stream of purges") struct StreamFollowerTests {
    typealias Action = StreamFollower.Action

    static func id(_ number: UInt64) -> StreamID { StreamID(milliseconds: number, sequence: 0) }
    static let here = StreamEpoch(Array("here".utf8))!
    static let elsewhere = StreamEpoch(Array("elsewhere".utf8))!
    static func position(_ number: UInt64, _ epoch: StreamEpoch = here) -> StreamPosition {
        StreamPosition(epoch: epoch, id: id(number))
    }
    static func stream(
        _ first: UInt64?, _ last: UInt64, deleted: UInt64 = 0, _ epoch: StreamEpoch = here
    ) -> StreamState {
        StreamState(epoch: epoch, first: first.map(id), last: id(last), maxDeleted: id(deleted))
    }
    static func purge(_ number: UInt64) -> PurgeEntry {
        PurgeEntry(node: "n", number: number, issuedAt: 0, purge: [])!
    }
    static func entry(_ number: UInt64) -> StreamEntry { StreamEntry(id: id(number), purge: .success(purge(number))) }
    static func fault(_ number: UInt64, _ error: PurgeEntryError) -> StreamEntry {
        StreamEntry(id: id(number), purge: .failure(error))
    }
    static func apply(_ number: UInt64) -> Action { .apply(id(number), purge(number)) }

    /// A node that remembers an id, and reads.
    private func following(_ number: UInt64) -> StreamFollower {
        var follower = StreamFollower(position: Self.position(number))
        #expect(follower.examined(Self.stream(1, number)) == [.readAfter(Self.id(number))])
        return follower
    }

    // MARK: catching up

    @Test func `a node has caught up when all is applied that was there when it connected`() {
        var follower = StreamFollower(position: Self.position(5))
        #expect(!follower.hasCaughtUp)
        #expect(follower.examined(Self.stream(1, 7)) == [.readAfter(Self.id(5))] && !follower.hasCaughtUp)
        #expect(follower.read([Self.entry(6)]) == [Self.apply(6)] && !follower.hasCaughtUp)
        _ = follower.applied(Self.id(6))
        // Others go on purging meanwhile.
        #expect(follower.examined(Self.stream(1, 9)) == [.readAfter(Self.id(6))] && !follower.hasCaughtUp)
        _ = follower.read([Self.entry(7), Self.entry(8)])
        _ = follower.applied(Self.id(7))
        _ = follower.applied(Self.id(8))
        #expect(!follower.hasCaughtUp)
        _ = follower.examined(Self.stream(1, 9))
        #expect(follower.hasCaughtUp)
        follower.disconnected()
        #expect(follower.hasCaughtUp, "from here on it knows that it does not hear")
    }

    @Test func `what is added until a node connects again is to be applied as well`() {
        var follower = StreamFollower(position: Self.position(5))
        _ = follower.examined(Self.stream(1, 6))
        follower.disconnected()
        _ = follower.examined(Self.stream(1, 7))
        _ = follower.read([Self.entry(6)])
        _ = follower.applied(Self.id(6))
        _ = follower.examined(Self.stream(1, 7))
        #expect(!follower.hasCaughtUp)
    }

    @Test func `who has nothing to catch up with, or cannot, has caught up`() {
        for position in [nil, Self.position(9), Self.position(1, Self.elsewhere), Self.position(1)] {
            var follower = StreamFollower(position: position)
            #expect(!follower.hasCaughtUp)
            _ = follower.examined(Self.stream(5, 9))
            #expect(follower.hasCaughtUp, "\(String(describing: position))")
        }
    }

    // MARK: connecting

    @Test(arguments: [stream(3, 9), stream(nil, 9), stream(nil, 0)])
    func `a node that has never followed begins at the end and marks nothing`(_ stream: StreamState) {
        var follower = StreamFollower(position: nil)
        let end = StreamPosition(epoch: Self.here, id: stream.last)
        #expect(follower.examined(stream) == [.remember(end), .readAfter(stream.last)])
        #expect(follower.position == end)
    }

    @Test func `a node that stored responses before its first connection marks them`() {
        var follower = StreamFollower(position: nil)
        follower.disconnected()
        follower.disconnected()
        #expect(
            follower.examined(Self.stream(3, 9))
                == [.markEverythingStale(.startedAlone), .remember(Self.position(9)), .readAfter(Self.id(9))])
    }

    /// What a node says that has reached 5.
    static let gaps: [(String, StreamState, StaleReason?)] = [
        ("nothing was added", stream(1, 5), nil),
        ("nothing was added, and the stream is empty", stream(nil, 5), nil),
        ("entries were added", stream(1, 9), nil),
        ("the oldest entry is the last one of the node", stream(5, 9), nil),
        ("the node's last entry was trimmed", stream(6, 9), .entriesTrimmed),
        ("entries were added and trimmed", stream(nil, 9), .entriesTrimmed),
        ("an entry that the node has read was deleted", stream(1, 9, deleted: 5), nil),
        ("an entry that the node has not read was deleted", stream(1, 9, deleted: 6), .entriesDeleted),
        ("the last one was deleted", stream(1, 6, deleted: 6), .entriesDeleted),
        ("the stream is gone", stream(nil, 0), .streamRestarted),
        ("the stream was made again", stream(2, 4), .streamRestarted),
        ("another server", stream(1, 9, elsewhere), .otherData),
        ("another server with the same last id", stream(1, 5, elsewhere), .otherData),
        ("another server without the stream", stream(nil, 0, elsewhere), .otherData),
    ]

    @Test(arguments: gaps) func `a gap marks everything once, and following goes on from the end`(
        _ name: String, _ stream: StreamState, _ reason: StaleReason?
    ) {
        var follower = StreamFollower(position: Self.position(5))
        let end = StreamPosition(epoch: stream.epoch, id: stream.last)
        let actions = follower.examined(stream)
        if let reason {
            #expect(actions == [.markEverythingStale(reason), .remember(end), .readAfter(end.id)], "\(name)")
        } else {
            #expect(actions == [.readAfter(Self.id(5))], "\(name)")
        }
        // The same again is no gap.
        follower.disconnected()
        let again = follower.examined(stream)
        #expect(again == [.readAfter(reason == nil ? Self.id(5) : end.id)], "\(name)")
    }

    // MARK: entries

    @Test func `entries are applied one after the other, then the position is remembered`() {
        var follower = following(5)
        #expect(follower.read([Self.entry(6), Self.entry(7)]) == [Self.apply(6)])
        #expect(follower.applied(Self.id(6)) == [Self.apply(7)])
        #expect(follower.position == Self.position(5))
        #expect(follower.applied(Self.id(7)) == [.remember(Self.position(7)), .ask])
        #expect(follower.position == Self.position(7))
        #expect(follower.examined(Self.stream(1, 9)) == [.readAfter(Self.id(7))])
    }

    @Test func `if nothing came in time, the node reads again`() {
        var follower = following(5)
        #expect(follower.read([]) == [.ask])
        #expect(follower.examined(Self.stream(1, 5)) == [.readAfter(Self.id(5))])
    }

    @Test func `what was read before is passed over`() {
        var follower = following(5)
        #expect(follower.read([4, 5, 6, 6, 3, 7].map(Self.entry)) == [Self.apply(6)])
        #expect(follower.applied(Self.id(6)) == [Self.apply(7)])
        _ = follower.applied(Self.id(7))
        _ = follower.examined(Self.stream(1, 7))
        #expect(follower.read([6, 7].map(Self.entry)) == [.ask])
    }

    @Test func `an entry that nobody of the fleet added is counted and not applied`() {
        var follower = following(5)
        #expect(
            follower.read([Self.fault(6, .wrongCode), Self.entry(7), Self.fault(8, .notAPurge)])
                == [.skip(Self.id(6), .wrongCode), Self.apply(7)])
        #expect(
            follower.applied(Self.id(7))
                == [.skip(Self.id(8), .notAPurge), .remember(Self.position(8)), .ask])
        _ = follower.examined(Self.stream(1, 8))
        #expect(
            follower.read([Self.fault(9, .tooLong)])
                == [.skip(Self.id(9), .tooLong), .remember(Self.position(9)), .ask])
    }

    @Test func `a purge that only a later release understands marks everything`() {
        var follower = following(5)
        #expect(
            follower.read([Self.fault(6, .unknownVersion)]) == [
                .skip(Self.id(6), .unknownVersion), .markEverythingStale(.unknownEntry), .remember(Self.position(6)),
                .ask,
            ])
    }

    // MARK: the connection ends

    @Test func `entries that were read are applied without a connection`() {
        var follower = following(5)
        _ = follower.read([Self.entry(6), Self.entry(7)])
        follower.disconnected()
        #expect(follower.applied(Self.id(6)) == [Self.apply(7)])
        #expect(follower.applied(Self.id(7)) == [.remember(Self.position(7))])
        #expect(follower.examined(Self.stream(1, 9)) == [.readAfter(Self.id(7))])
    }

    @Test func `a new connection waits for the entries that are being applied`() {
        var follower = following(5)
        _ = follower.read([Self.entry(6), Self.entry(7)])
        follower.disconnected()
        // 7 is not applied, but it was read: no gap, although 6 is gone.
        #expect(follower.examined(Self.stream(7, 9)) == [])
        #expect(follower.applied(Self.id(6)) == [Self.apply(7)])
        #expect(follower.applied(Self.id(7)) == [.remember(Self.position(7)), .ask])
    }

    @Test func `a gap covers the entries that wait, and the one that is being applied is waited for`() {
        var follower = following(5)
        _ = follower.read([Self.entry(6), Self.entry(7)])
        follower.disconnected()
        #expect(follower.examined(Self.stream(8, 9)) == [.markEverythingStale(.entriesTrimmed)])
        #expect(follower.applied(Self.id(6)) == [.remember(Self.position(9)), .ask])
    }

    @Test func `a gap is remembered although the connection ends before the entry is applied`() {
        var follower = following(5)
        _ = follower.read([Self.entry(6), Self.entry(7)])
        follower.disconnected()
        #expect(follower.examined(Self.stream(nil, 0)) == [.markEverythingStale(.streamRestarted)])
        follower.disconnected()
        #expect(follower.applied(Self.id(6)) == [.remember(Self.position(0))])
        #expect(follower.examined(Self.stream(nil, 0)) == [.readAfter(.zero)])
    }

    @Test func `a server that is flushed while the node is connected is noticed before the next read`() {
        var follower = following(5)
        #expect(follower.read([]) == [.ask])
        #expect(
            follower.examined(Self.stream(8, 8, Self.elsewhere)) == [
                .markEverythingStale(.otherData), .remember(Self.position(8, Self.elsewhere)), .readAfter(Self.id(8)),
            ])
        #expect(follower.read([8, 9].map(Self.entry)) == [Self.apply(9)])
    }

    @Test func `a connection that ends while the node asks changes nothing`() {
        var follower = following(5)
        _ = follower.read([])
        follower.disconnected()
        #expect(follower.examined(Self.stream(1, 5)) == [.readAfter(Self.id(5))])
    }

    @Test func `what comes after the connection ended is read again`() {
        var follower = following(5)
        follower.disconnected()
        #expect(follower.read([Self.entry(6)]) == [])
        #expect(follower.examined(Self.stream(1, 6)) == [.readAfter(Self.id(5))])
        #expect(follower.read([Self.entry(6)]) == [Self.apply(6)])
    }

    @Test func `the driver must not mix up what it was told`() async {
        await #expect(processExitsWith: .failure) {
            var follower = StreamFollower(position: nil)
            _ = follower.applied(StreamFollowerTests.id(1))
        }
        await #expect(processExitsWith: .failure) {
            var follower = StreamFollower(position: nil)
            _ = follower.examined(StreamFollowerTests.stream(nil, 0))
            _ = follower.read([StreamFollowerTests.entry(6), StreamFollowerTests.entry(7)])
            _ = follower.read([])
        }
        await #expect(processExitsWith: .failure) {
            var follower = StreamFollower(position: nil)
            _ = follower.examined(StreamFollowerTests.stream(nil, 0))
            _ = follower.read([StreamFollowerTests.entry(6), StreamFollowerTests.entry(7)])
            _ = follower.applied(StreamFollowerTests.id(7))
        }
        await #expect(processExitsWith: .failure) {
            var follower = StreamFollower(position: nil)
            _ = follower.examined(StreamFollowerTests.stream(nil, 0))
            _ = follower.examined(StreamFollowerTests.stream(nil, 0))
        }
    }
}
