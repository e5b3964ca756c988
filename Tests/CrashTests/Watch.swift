import EventLoop
import Foundation
import ProgramUnderTest

/// Looks at `/stats` while the proxy runs, to know what was committed by when.
final class Watch: Sendable {
    struct Sample: Sendable {
        /// Before it was asked for.
        var at: ContinuousClock.Instant
        var commits: Int
        var waitingBytes: Int
        var evicted: Int
        var refusedBusy: Int
        var isOn: Bool
        var isLoaded: Bool
    }

    private let larder: Larder
    private let sync: Duration
    private let state = Locked<(samples: [Sample], isOver: Bool)>(([], false))
    private let ended = DispatchSemaphore(value: 0)

    init(_ larder: Larder, sync: Duration) {
        self.larder = larder
        self.sync = sync
        Thread.detachNewThread { [self] in
            while !state.withLock({ $0.isOver }) {
                if let sample = Self.sample(larder) { state.withLock { $0.samples.append(sample) } }
                usleep(20_000)
            }
            ended.signal()
        }
    }

    /// Ends its thread.
    func stop() {
        state.withLock { $0.isOver = true }
        ended.wait()
        ended.signal()
    }

    static func sample(_ larder: Larder) -> Sample? {
        let now = ContinuousClock.now
        guard let statistics = try? larder.statistics(), let disk = disk(statistics) else { return nil }
        func number(_ name: String) -> Int { disk[name] as? Int ?? 0 }
        return Sample(
            at: now, commits: number("commits"), waitingBytes: number("waiting_bytes"),
            evicted: number("evicted_objects"), refusedBusy: number("refused_busy"),
            isOn: disk["state"] as? String == "on", isLoaded: disk["loaded"] as? Bool ?? true)
    }

    /// What `/stats` says of the disk tier of the default zone; nil where there is none.
    static func disk(_ statistics: [String: Any]) -> [String: Any]? {
        (statistics["zones"] as? [[String: Any]])?.first?["disk"] as? [String: Any]
    }

    var last: Sample? { state.withLock { $0.samples.last } }

    /// A moment by which all that had happened was in the book.
    ///
    /// At a moment when nothing waited to be written, all that came before it had been handed to the book; the commit after the
    /// next has it. Where nothing is committed any more, there was nothing to commit: then time has to do.
    func committed(by end: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        Self.committed(state.withLock { $0.samples }, sync: sync, by: end)
    }

    static func committed(
        _ samples: [Sample], sync: Duration, by end: ContinuousClock.Instant
    ) -> ContinuousClock.Instant? {
        let samples = samples.filter { $0.at <= end }
        guard let last = samples.last else { return nil }
        let safe = samples.last {
            $0.waitingBytes == 0 && (last.commits >= $0.commits + 2 || end - $0.at > sync * 2 + .seconds(1))
        }
        // What a client has seen may be handed over a little later: its worker may have to wait for a processor.
        return safe.map { $0.at - .milliseconds(300) }
    }

    /// Waits until what happened before is in the book. Blocks.
    func waitUntilCommitted() throws {
        let now = ContinuousClock.now
        _ = try eventually("a commit; last \(String(describing: last))") { () -> Bool? in
            committed(by: ContinuousClock.now).map { $0 >= now } == true ? true : nil
        }
    }
}
