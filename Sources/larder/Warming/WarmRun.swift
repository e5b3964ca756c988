import EventLoop
import Message

/// Fetches everything in a plan and everything that its pages refer to, a few at a time.
final class WarmRun: Sendable {
    private let plan: WarmPlan
    private let addresses: [SocketAddress]
    private let report: WarmReport
    private let queue: WorkQueue<WarmTarget>
    /// The normalised URLs that were fetched or are waiting.
    private let seen: Locked<Set<[UInt8]>>

    init(_ plan: WarmPlan, through addresses: [SocketAddress], report: WarmReport) {
        self.plan = plan
        self.addresses = addresses
        self.report = report
        var seen: Set<[UInt8]> = []
        let targets = distinct(plan.targets, &seen)
        self.seen = Locked(seen)
        queue = WorkQueue(targets)
        report.expect(targets.count)
    }

    /// Returns when everything is done.
    func run() throws(EventLoopError) {
        var threads: [Helper] = []
        for number in 1..<max(2, plan.jobs + 1) {
            threads.append(Helper(try startThread(name: "warm-\(number)") { self.work() }))
        }
        for thread in threads { thread.join() }
    }

    private func work() {
        let fetcher = WarmFetcher(client: ProxyClient(addresses: addresses, fields: plan.fields), plan: plan)
        while let target = queue.take() {
            let (result, references) = fetcher.fetch(target)
            let more = target.depth < WarmPlan.depthMax ? news(references, depth: target.depth + 1) : []
            report.expect(more.count)
            report.add(result)
            queue.finish(adding: more)
        }
    }

    /// The references that are new, as many as one run may fetch.
    private func news(_ references: [PageReference], depth: Int) -> [WarmTarget] {
        seen.withLock { seen in
            let room = max(0, WarmPlan.targetsMax - seen.count)
            return distinct(references.prefix(room).map { WarmTarget($0, depth: depth) }, &seen)
        }
    }
}

private func distinct(_ targets: [WarmTarget], _ seen: inout Set<[UInt8]>) -> [WarmTarget] {
    targets.filter { target in target.target.map { seen.insert($0.normalised).inserted } ?? true }
}

/// A thread that the run waits for.
private final class Helper {
    private var thread: ThreadHandle?
    init(_ thread: consuming ThreadHandle) { self.thread = consume thread }
    func join() { if let thread = thread.take() { thread.join() } }
}
