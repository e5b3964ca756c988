import Access
import Message
import Origins
import Rules
import Testing

@Suite("bandwidth: rates") struct BandwidthLedgerTests {
    /// A flow that moves all that it may, in the simulated time of the suite.
    private struct Flow {
        let shares: [BandwidthShare]
        var granted: BandwidthLedger.Grant
        var moves: [(at: Duration, count: Int)] = []
        var total: Int { moves.reduce(0) { $0 + $1.count } }
    }

    /// Lets flows run until `end`. Each moves what it was granted when it is due, and asks again at once.
    private func run(
        _ flows: [[BandwidthShare]], until end: Duration, lateness: Duration = .zero,
        stopping stopped: [Int: Duration] = [:]
    ) -> [Flow] {
        var ledger = BandwidthLedger()
        for shares in flows { ledger.begin(shares, now: .zero) }
        var flows = flows.map {
            Flow(shares: $0, granted: ledger.reserve($0, moved: 0, overdrawn: 0, now: .zero))
        }
        var running = Set(flows.indices)
        while let next = running.min(by: { flows[$0].granted.from < flows[$1].granted.from }) {
            let now = flows[next].granted.from + lateness
            if now >= stopped[next] ?? end {
                ledger.end(flows[next].shares, moved: 0, unused: flows[next].granted.count, now: now)
                running.remove(next)
                continue
            }
            flows[next].moves.append((now, flows[next].granted.count))
            flows[next].granted = ledger.reserve(
                flows[next].shares, moved: flows[next].granted.count, overdrawn: 0, now: now)
        }
        return flows
    }

    private func isWithin(_ share: Double, _ count: Int, of expected: Double) -> Bool {
        abs(Double(count) - expected) <= share * expected
    }

    @Test(arguments: [1024, 10_000, 1 << 20, 100_000_000] as [UInt64])
    func `one flow has the rate, in each tenth of a second`(rate: UInt64) {
        let flow = run([[BandwidthShare(.total, rate: rate)]], until: .seconds(20))[0]
        #expect(isWithin(0.02, flow.total, of: Double(rate) * 20), "\(flow.total)")
        guard rate >= 10_000 else { return }
        for tenth in 1..<199 {
            let window = Duration.milliseconds(tenth * 100)..<Duration.milliseconds(tenth * 100 + 100)
            let count = flow.moves.filter { window.contains($0.at) }.reduce(0) { $0 + $1.count }
            #expect(isWithin(0.55, count, of: Double(rate) / 10), "\(count) bytes in \(window)")
        }
    }

    @Test func `flows share a rate equally, and none waits for longer than a tenth of a second`() {
        let share = BandwidthShare(.named("nightly"), rate: 10 << 20)
        let flows = run(Array(repeating: [share], count: 40), until: .seconds(10))
        for flow in flows {
            #expect(isWithin(0.05, flow.total, of: 10 * Double(10 << 20) / 40), "\(flow.total)")
            let pauses = zip(flow.moves, flow.moves.dropFirst()).map { $1.at - $0.at }
            #expect(pauses.allSatisfy { $0 <= .milliseconds(100) }, "\(pauses.max()!)")
        }
    }

    @Test func `all limits of a flow hold, and what one flow may not have is for the others`() {
        let total = BandwidthShare(.total, rate: 1_000_000)
        let slow = BandwidthShare(.client(IPAddress(strict: "192.0.2.1".utf8)!), rate: 100_000)
        let flows = run([[total, slow], [total]], until: .seconds(10))
        #expect(isWithin(0.05, flows[0].total, of: 1_000_000), "\(flows[0].total)")
        #expect(isWithin(0.05, flows[1].total, of: 9_000_000), "\(flows[1].total)")
    }

    @Test func `who leaves gives back what it has not moved`() {
        let share = BandwidthShare(.origin(1), rate: 100_000)
        let flows = run([[share], [share]], until: .seconds(10), stopping: [0: .seconds(5)])
        #expect(isWithin(0.05, flows[0].total, of: 250_000), "\(flows[0].total)")
        #expect(isWithin(0.05, flows[1].total, of: 750_000), "\(flows[1].total)")
    }

    @Test func `who is late catches up, on no more than a tenth of a second`() {
        let share = BandwidthShare(.total, rate: 1_000_000)
        let late = run([[share]], until: .seconds(10), lateness: .milliseconds(30))[0]
        #expect(isWithin(0.02, late.total, of: 10_000_000), "\(late.total)")
        var ledger = BandwidthLedger()
        ledger.begin([share], now: .zero)
        _ = ledger.reserve([share], moved: 0, overdrawn: 0, now: .zero)
        // After a minute without a byte, the credit is used up by 0.1 s of bytes.
        var count = 0
        while true {
            let grant = ledger.reserve([share], moved: 0, overdrawn: 0, now: .seconds(60))
            guard grant.from <= .seconds(60) else { break }
            count += grant.count
        }
        #expect((100_000...160_000).contains(count), "\(count)")
    }

    @Test func `bytes that were moved without a reservation are paid for, by the flow and by later ones`() {
        let share = BandwidthShare(.total, rate: 100_000)
        var ledger = BandwidthLedger()
        ledger.begin([share], now: .zero)
        _ = ledger.reserve([share], moved: 0, overdrawn: 0, now: .zero)
        let grant = ledger.reserve([share], moved: 55_000, overdrawn: 50_000, now: .zero)
        #expect(grant.from >= .milliseconds(500) && grant.from <= .milliseconds(600), "\(grant)")
        ledger.end([share], moved: 0, unused: grant.count - 20_000, now: .seconds(1))
        ledger.begin([share], now: .seconds(1))
        // 0.55 s for the first, 0.2 s for the second: all that was paid for within the first second but the credit.
        let later = ledger.reserve([share], moved: 0, overdrawn: 0, now: .seconds(1))
        #expect(later.from <= .seconds(1), "\(later)")
        ledger.end([share], moved: 0, unused: later.count - 300_000, now: .seconds(1))
        ledger.begin([share], now: .seconds(1))
        #expect(ledger.reserve([share], moved: 0, overdrawn: 0, now: .seconds(1)).from > .milliseconds(3500))
    }

    @Test func `the average is that of the last five seconds`() {
        let share = BandwidthShare(.total, rate: 1_000_000)
        var ledger = BandwidthLedger()
        #expect(ledger.usage(now: .seconds(100)).isEmpty)
        ledger.begin([share], now: .seconds(100))
        for tenth in 0..<100 {
            _ = ledger.reserve([share], moved: 50_000, overdrawn: 0, now: .seconds(100) + .milliseconds(tenth * 100))
        }
        let usage = ledger.usage(now: .seconds(110))
        #expect(usage.count == 1 && usage[0].bound == .total && usage[0].flows == 1 && usage[0].average == 500_000)
        #expect(ledger.usage(now: .milliseconds(112_500)).first?.average == 250_000)
        ledger.end([share], moved: 5_000, unused: 0, now: .seconds(113))
        let afterwards = ledger.usage(now: .seconds(114))
        #expect(afterwards.map(\.flows) == [0] && afterwards.map(\.average) == [101_000])
        #expect(ledger.usage(now: .seconds(120)).isEmpty)
    }

    @Test func `limits that nobody uses any more are forgotten`() {
        var ledger = BandwidthLedger()
        for last in 0..<1000 {
            let share = BandwidthShare(
                .client(IPAddress(strict: "10.0.\(last / 250).\(last % 250)".utf8)!), rate: 1 << 20)
            let now = Duration.seconds(last)
            ledger.begin([share], now: now)
            _ = ledger.reserve([share], moved: 1, overdrawn: 0, now: now)
            ledger.end([share], moved: 0, unused: 0, now: now)
        }
        #expect(ledger.accountCount <= 65, "\(ledger.accountCount)")
    }
}

@Suite("bandwidth: which limits a request is under") struct BandwidthPlanTests {
    private func request(_ host: String, client: String? = "10.2.0.7") -> AccessRequest {
        AccessRequest(
            client: client.flatMap { IPAddress(strict: $0.utf8) }, method: .get,
            destination: DestinationHost(host.utf8)!, port: 80,
            isTunnel: false, pathAndQuery: Array("/".utf8)[...])
    }

    private let open = OriginTerms(
        connect: .seconds(1), firstByte: .seconds(1), idle: .seconds(1), total: nil, retriesMax: 0)

    private func conditions(_ hosts: [String], clients: [String] = []) -> RuleConditions {
        var conditions = RuleConditions()
        conditions.hosts = hosts.map { HostPattern($0)! }
        conditions.clients = clients.map { AddressRange($0)! }
        return conditions
    }

    @Test func `without a limit there is none`() {
        #expect(BandwidthPlan().shares(for: request("a.example"), open).isEmpty)
    }

    @Test func `all limits hold together; of the classes, the first that matches`() {
        var plan = BandwidthPlan()
        plan.total = 100
        plan.client = 50
        plan.classes = [
            BandwidthClass(name: "a", conditions(["a.example"]), rate: 10),
            BandwidthClass(name: "lab", conditions([], clients: ["10.2.0.0/16"]), rate: 20),
        ]
        let address = IPAddress(strict: "10.2.0.7".utf8)!
        let whole = [BandwidthShare(.total, rate: 100), BandwidthShare(.client(address), rate: 50)]
        #expect(
            plan.shares(for: request("a.example"), open) == whole + [BandwidthShare(.named("a"), rate: 10)])
        #expect(
            plan.shares(for: request("b.example"), open) == whole + [BandwidthShare(.named("lab"), rate: 20)])
        #expect(
            plan.shares(for: request("b.example", client: "192.0.2.1"), open)
                == [whole[0], BandwidthShare(.client(IPAddress(strict: "192.0.2.1".utf8)!), rate: 50)])
        // What Larder fetches for itself has no client.
        #expect(plan.shares(for: request("b.example", client: nil), open) == [whole[0]])
        #expect(
            plan.shares(for: request("a.example"), open).map { "\($0.bound)" }
                == ["total", "client 10.2.0.7", "class a"])
    }

    @Test func `a rule of origins has a limit of its own`() {
        let rules = [OriginRule(conditions(["a.example"]), bandwidth: 5, number: 1)]
        let table = OriginTable(rules, general: open)
        let plan = BandwidthPlan()
        let terms = table.terms(for: request("a.example"))
        #expect(plan.shares(for: request("a.example"), terms) == [BandwidthShare(.origin(1), rate: 5)])
        #expect(plan.shares(for: request("b.example"), table.terms(for: request("b.example"))).isEmpty)
        #expect(plan.rate(of: .origin(1), table) == 5 && plan.rate(of: .origin(2), table) == nil)
        #expect(plan.rate(of: .named("gone"), table) == nil)
    }
}
