import Message
import Upstream

/// Fetches everything in a plan and everything that its pages refer to, a few at a time.
struct WarmRun {
    private let plan: WarmPlan
    private let fetcher: WarmFetcher
    private let report: WarmReport
    /// What was fetched, is being fetched, or waits, in its order.
    private var targets: [WarmTarget]
    /// What the store had no room for at that moment: it is fetched once more when the rest is done.
    private var later: [WarmTarget] = []
    /// The normalised URLs among `targets`.
    private var seen: Set<[UInt8]> = []

    init(_ plan: WarmPlan, through client: Client, report: WarmReport) {
        self.plan = plan
        fetcher = WarmFetcher(client: client, plan: plan)
        self.report = report
        targets = distinct(plan.targets, &seen)
        report.expect(targets.count)
    }

    /// How long the disk gets to write what waits before the second round.
    private static let pauseOfDisk: Duration = .seconds(2)

    /// Returns when everything is done.
    mutating func run() async {
        await fetch(isLastTry: false)
        guard !later.isEmpty else { return }
        await sleep(Self.pauseOfDisk)
        targets = later
        await fetch(isLastTry: true)
    }

    private mutating func fetch(isLastTry: Bool) async {
        await withTaskGroup(of: (WarmTarget, WarmResult, [PageReference]).self) { group in
            var (next, running) = (0, 0)
            while true {
                while next < targets.count, running < max(1, plan.jobs) {
                    group.addTask { [fetcher, target = targets[next]] in
                        let (result, references) = await fetcher.fetch(target)
                        return (target, result, references)
                    }
                    next += 1
                    running += 1
                }
                guard let (target, result, references) = await group.next() else { return }
                running -= 1
                let more = target.depth < WarmPlan.depthMax ? news(references, depth: target.depth + 1) : []
                if !isLastTry { targets += more }
                report.expect(isLastTry ? 0 : more.count)
                if !isLastTry, result.outcome.mayBeStoredLater { later.append(target) } else { report.add(result) }
            }
        }
    }

    /// The references that are new, as many as one run may fetch.
    private mutating func news(_ references: [PageReference], depth: Int) -> [WarmTarget] {
        let room = max(0, WarmPlan.targetsMax - seen.count)
        return distinct(references.prefix(room).map { WarmTarget($0, depth: depth) }, &seen)
    }
}

private func distinct(_ targets: [WarmTarget], _ seen: inout Set<[UInt8]>) -> [WarmTarget] {
    targets.filter { target in target.target.map { seen.insert($0.normalised).inserted } ?? true }
}
