import Fleet
import Testing

@Suite("Fleet: whom a node asks and answers, by the purges that it has applied") struct PurgeProgressTests {
    private static let data = StreamEpoch([1])!
    private static let otherData = StreamEpoch([2])!

    private static func at(_ number: UInt64, _ epoch: StreamEpoch = data) -> StreamPosition {
        StreamPosition(epoch: epoch, id: StreamID(milliseconds: number, sequence: 0))
    }

    private static func progress(_ applied: StreamPosition?, isMarking: Bool = false) -> PurgeProgress {
        PurgeProgress(applied: applied, known: applied, isMarking: isMarking, hasCaughtUp: true)
    }

    static let rows:
        [(name: String, applied: StreamPosition?, isMarking: Bool, asked: StreamPosition?, answers: Bool)] =
            [
                ("there", at(20), false, at(20), true), ("further", at(30), false, at(20), true),
                ("behind", at(19), false, at(20), false), ("marking", at(30), true, at(20), false),
                ("other data", at(20, otherData), false, at(20), false),
                ("other data, further", at(30, otherData), false, at(20), false),
                ("other data, nothing asked", at(30), false, at(0, otherData), false),
                ("never followed", nil, false, at(0), false), ("who asks has never followed", at(20), false, nil, true),
                ("neither has followed", nil, false, nil, true),
            ]
    @Test(arguments: rows) func `a node answers who knows no purge that it may have missed`(
        _ row: (name: String, applied: StreamPosition?, isMarking: Bool, asked: StreamPosition?, answers: Bool)
    ) {
        #expect(Self.progress(row.applied, isMarking: row.isMarking).answers(row.asked) == row.answers)
    }

    @Test func `a node asks when it has caught up and the others can know its purges`() {
        #expect(Self.progress(Self.at(1)).asks(hasOwnUnderWay: false))
        #expect(!Self.progress(Self.at(1)).asks(hasOwnUnderWay: true))
        #expect(!PurgeProgress.none.asks(hasOwnUnderWay: false))
    }

    // MARK: the server loses its data

    private static func stream(_ epoch: StreamEpoch, last: UInt64) -> StreamState {
        StreamState(epoch: epoch, first: last == 0 ? nil : at(1).id, last: at(last).id, maxDeleted: .zero)
    }

    /// A node, as its driver feeds it.
    private struct Node {
        var follower: StreamFollower
        var log: PurgeLog<String>
        var isMarking = false

        init(_ position: StreamPosition?) {
            follower = StreamFollower(position: position)
            log = PurgeLog(reached: position)
        }

        mutating func connect(_ stream: StreamState) { log.begin(stream, isTrimmed: false) }

        mutating func examine(_ stream: StreamState) {
            log.examined(stream)
            isMarking = follower.examined(stream).contains {
                if case .markEverythingStale = $0 { true } else { false }
            }
        }

        var progress: PurgeProgress { PurgeProgress(follower, log, isMarking: isMarking) }
    }

    /// It connects, the server is emptied, and what was asked for before that has the earlier data. Before it reads on, it loses its connection.
    @Test func `what a node says is of the data that it has come to, also before it reads on`() {
        var node = Node(nil)
        node.connect(Self.stream(Self.data, last: 30))
        node.examine(Self.stream(Self.otherData, last: 0))
        #expect(node.progress.known == Self.at(0, Self.otherData))
        #expect(!Self.progress(Self.at(20)).answers(node.progress.known), "it has missed what was there up to 30")
    }

    @Test func `a node that has come to other data answers nobody who has not, and the other way round`() {
        var (away, back) = (Node(Self.at(20)), Node(Self.at(30)))
        away.connect(Self.stream(Self.data, last: 20))
        away.examine(Self.stream(Self.data, last: 20))
        back.connect(Self.stream(Self.otherData, last: 40))
        back.examine(Self.stream(Self.otherData, last: 40))
        #expect(!back.progress.answers(back.progress.known), "it is marking")
        back.isMarking = false
        #expect(back.progress.answers(back.progress.known))
        #expect(!away.progress.answers(back.progress.known) && !back.progress.answers(away.progress.known))
    }

    /// Somebody deletes the stream. What was in it is lost for who has missed it.
    @Test func `a node still knows of the purges of a stream that was deleted`() {
        var (running, startedAgain) = (Node(nil), Node(Self.at(30)))
        running.connect(Self.stream(Self.data, last: 30))
        running.log.add(Self.at(30).id, "a")
        running.examine(Self.stream(Self.data, last: 30))
        running.follower.disconnected()
        for var node in [running, startedAgain] {
            node.connect(Self.stream(Self.data, last: 0))
            node.examine(Self.stream(Self.data, last: 0))
            #expect(node.progress.applied == Self.at(0) && node.progress.known == Self.at(30))
        }
        startedAgain.connect(Self.stream(Self.otherData, last: 0))
        #expect(startedAgain.progress.known == Self.at(0, Self.otherData))
    }
}
