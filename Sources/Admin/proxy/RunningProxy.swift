import Cookies
package import Credentials
package import Message
package import EventLoop
package import Learning
package import Limiting
import Interception
import PACRunner
import Routing
import Origins
import Rules
package import Server
import Storage
import Synchronization
import Transaction

/// Answers the admin server for a `Proxy`: adds up the counters of its workers, and works on its stores.
package final class RunningProxy: AdministeredProxy {
    let proxy: Proxy
    let version: String
    let samples = Locked(BandwidthSamples())
    private let sampler = Locked<SamplerBox?>(nil)

    /// The most entries of `certificate_refusals` and of `certificate_requests`.
    private static let refusalsShownMax = 100

    package init(proxy: Proxy, version: String) {
        self.proxy = proxy
        self.version = version
    }

    package var isDraining: Bool { proxy.isDraining }

    package var disksOff: [DiskOff] {
        proxy.storedZones.compactMap { name, tier in
            guard case .off(let reason) = tier.backStore?.health else { return nil }
            return DiskOff(zone: name, reason: reason)
        }
    }

    // MARK: statistics

    package func statistics() -> Statistics {
        var result = Statistics()
        result.version = version
        result.startedAt = proxy.startedAt.secondsSinceEpoch
        result.uptimeSeconds = UInt64(clamping: proxy.uptime.components.seconds)
        result.isDraining = proxy.isDraining
        result.bandwidth = samples.withLock { $0.bandwidth }
        result.workers = proxy.counters.enumerated().map { Statistics.Worker(number: $0, counts: Counts($1)) }
        for worker in result.workers { result.counts.add(worker.counts) }
        result.zones = proxy.storedZones.map { name, tier in
            Statistics.Zone(
                name: name, memory: .init(tier.memory.statistics), disk: tier.backStore.map { DiskUse($0) })
        }
        result.ecosystems = proxy.shared.ecosystems.withLock { $0 }
            .map { Statistics.Ecosystem(name: $0, counts: $1) }
            .sorted { ($0.counts.bytesSaved, $1.name) > ($1.counts.bytesSaved, $0.name) }
        let now = Moment.read()
        let refusals = proxy.shared.refusedLeaves(now: now)
        result.certificateRefusals = refusals.prefix(RunningProxy.refusalsShownMax).map { key, entry in
            Statistics.CertificateRefusal(
                client: key.client, host: "\(key.host)", signal: "\(entry.last)", count: UInt64(entry.count),
                lastAt: entry.lastAt.secondsSinceEpoch)
        }
        let requests = proxy.shared.askingOrigins(now: now)
        result.certificateRequests = requests.prefix(RunningProxy.refusalsShownMax).map { host, entry in
            Statistics.CertificateRequest(
                host: host, isRequired: entry.isRequired, count: UInt64(entry.count),
                lastAt: entry.lastAt.secondsSinceEpoch)
        }
        let ledger = proxy.shared.credentialLedger.withLock { $0 }
        result.credentials = proxy.snapshot.configuration.credentials.map { rule in
            let refusals = ledger.refusals(of: rule.name).map { place, entry in
                Statistics.Credential.Refusal(
                    origin: place.description, count: entry.refusals, since: entry.since.secondsSinceEpoch,
                    isGivenUp: entry.isGivenUp)
            }
            return Statistics.Credential(
                name: rule.name, schemes: rule.means.schemeNames, refusals: refusals)
        }
        result.cookieJars = proxy.shared.cookies.all.map { jar in
            let tally = jar.tally
            return Statistics.CookieJar(
                name: jar.name, cookies: jar.count, sent: tally.sent, set: tally.set,
                rejected: CookieRejection.allCases.compactMap { reason in
                    tally.rejected[reason].map { .init(reason: reason.rawValue, count: $0) }
                })
        }
        result.unverifiedOrigins = proxy.snapshot.configuration.origins.flatMap { rule in
            guard let tls = rule.tls, tls.verification == .none else { return [Statistics.UnverifiedOrigin]() }
            return rule.conditions.hosts.map { .init(host: "\($0)", rule: rule.number, isPinned: !tls.pins.isEmpty) }
        }
        result.learning = proxy.shared.learning.active.jobs.map { job in
            Statistics.LearningJob(
                job: job.job, scope: job.scope.text, allows: job.allows, endsAt: job.endsAt?.wallTime.secondsSinceEpoch)
        }
        let time = MonotonicTime.read().sinceStart
        if let terms = proxy.snapshot.originCircuit {
            let down = proxy.shared.originHealth.snapshot.down(now: time, terms)
            result.originsDown = down.prefix(RunningProxy.refusalsShownMax).map { endpoint, entry in
                let outage = Outage(since: entry.since, pauseLeft: entry.pauseLeft)
                return Statistics.OriginDown(
                    origin: "\(endpoint)", since: outage.since.secondsSinceEpoch, retryAfter: outage.retryAfter)
            }
        }
        let silent = proxy.shared.nameServers.entries(at: MonotonicTime.read())
        result.namesUnanswered = silent.prefix(RunningProxy.refusalsShownMax).map { entry in
            let outage = Outage(.nameServer, since: entry.since, pauseLeft: entry.pauseLeft)
            return Statistics.NameUnanswered(
                name: entry.name, servers: entry.servers, since: outage.since.secondsSinceEpoch,
                retryAfter: outage.retryAfter)
        }
        let (plan, origins) = (proxy.snapshot.bandwidth, proxy.snapshot.origins)
        result.bandwidthLimits = proxy.shared.bandwidth.withLock { $0.usage(now: time) }.compactMap { usage in
            plan.rate(of: usage.bound, origins).map {
                Statistics.BandwidthLimit(
                    limit: "\(usage.bound)", rate: $0, average: usage.average, flows: usage.flows)
            }
        }.sorted { ($1.average, $0.limit) < ($0.average, $1.limit) }.prefix(RunningProxy.refusalsShownMax).map { $0 }
        let limitRules = proxy.snapshot.limitPlan.rules.filter { $0.shares == nil }.map(\.name)
        result.limitRules = zip(limitRules, proxy.shared.limits.uses(of: limitRules)).map {
            Statistics.LimitRuleFigures(name: $0, use: $1)
        }
        result.limitBuckets = proxy.shared.limits.accounts.map { $0.usage(nil, now: 0) }
            .sorted { ($1.refused, $1.bytes) < ($0.refused, $0.bytes) }.prefix(RunningProxy.refusalsShownMax).map {
                Statistics.LimitBucketUsage(
                    rule: $0.bucket.rule, subject: $0.bucket.subject.description, underWay: $0.underWay,
                    connections: $0.connections, refused: $0.refused, bytes: $0.bytes, spent: $0.spent)
            }
        if let fleet = proxy.shared.fleet { result.fleet = Statistics.Fleet(fleet.statistics) }
        if let peers = proxy.shared.fleet?.peerStatistics { result.owners = Statistics.Owners(peers) }
        let health = proxy.shared.nextProxies.snapshot
        result.nextProxies = proxy.snapshot.routes.nextProxies.map { nextProxy in
            let entry = health.entry(of: nextProxy, now: time, .nextProxy)
            return Statistics.NextProxy(
                url: "\(nextProxy)", failure: entry.map { "\($0.failure)" },
                failingSince: entry?.since.secondsSinceEpoch)
        }
        let named = Set(result.nextProxies.map(\.url))
        result.nextProxies += health.down(now: time, .nextProxy).filter { !named.contains("\($0.subject)") }.map {
            subject, entry in
            Statistics.NextProxy(
                url: "\(subject)", failure: "\(entry.failure)", failingSince: entry.since.secondsSinceEpoch)
        }
        var shown: [String: Int] = [:]
        result.pacFiles = proxy.snapshot.scripts.sorted { $0.key < $1.key }.map { source, script in
            let count = shown["\(source)", default: 0] + 1
            shown["\(source)"] = count
            // URLs that differ in their queries alone look the same, and no two samples of /metrics may.
            return Statistics.PACFile(path: count == 1 ? "\(source)" : "\(source) (\(count))", script.tally)
        }
        return result
    }

    // MARK: the store

    package func purge(_ request: PurgeRequest) -> PurgeResult {
        guard !request.dryRun, let fleet = proxy.shared.fleet else { return purgeHere(request) }
        let time = now
        let ticket = fleet.begin(request.json, at: time.wallTime)
        var result = purgeHere(request)
        result.spread = fleet.announce(request.json, ticket, at: time.wallTime)
        return result
    }

    /// Purges what this process has.
    func purgeHere(_ request: PurgeRequest) -> PurgeResult {
        let snapshot = proxy.snapshot
        let matcher = SelectionMatcher(
            request.selection, now: WallTime(secondsSinceEpoch: wallClockSeconds()),
            keys: { snapshot.keys(toGet: $0) })
        var sum = PurgeResult(records: 0, bytes: 0)
        let isDone: Void? = proxy.shared.zones.whileOpen { zones in
            for zone in zones where matcher.mayBe(inZone: zone.name) {
                let result = Admin.purge(
                    request, matcher, in: zone.tier, proxy.responseHomes, key: { proxy.shared.key(of: $0) })
                sum.records += result.records
                sum.bytes += result.bytes
                sum.isDurable = sum.isDurable && result.isDurable
            }
        }
        if isDone == nil { sum.isDurable = false }
        return sum
    }

    package func objects(_ selection: Selection) -> @Sendable () -> [ObjectDescription]? {
        let now = WallTime(secondsSinceEpoch: wallClockSeconds())
        let listing = ObjectListing(
            selection, zones: proxy.storedZones, now: now,
            keys: { [snapshot = proxy.snapshot] in snapshot.keys(toGet: $0) },
            hash: { [shared = proxy.shared] in shared.key(of: $0) })
        return { listing.nextPage() }
    }

    package func explain(_ question: ExplainQuestion) throws(ExplainError) -> Explanation {
        try proxy.explain(question)
    }

    package func resetBudgets(
        of rule: String, _ subject: LimitSubject?
    ) throws(Proxy.BudgetRefusal) -> (count: Int, complaint: String?) {
        try proxy.resetBudgets(of: rule, subject)
    }

    package func startLearning(_ job: ActiveJob) throws(LearningBook.Refusal) -> String? {
        try proxy.startLearning(job)
    }

    package func stopLearning(_ job: String) -> Bool { proxy.stopLearning(job) }

    package func forgetJournal(of job: String) -> Bool { proxy.forgetJournal(of: job) }

    package var learning: ActiveJobs { proxy.shared.learning.active }

    package func journals() -> [Journal] { proxy.journals() }

    package func journal(of job: String) -> (journal: Journal, difference: Difference)? {
        let snapshot = proxy.snapshot
        return proxy.journal(of: job).map {
            ($0, Difference(of: $0, from: snapshot.access, rules: snapshot.configuration.access.rules))
        }
    }

    package func transfers() -> [TransferReport] { proxy.transfers() }

    package func cancelTransfer(_ id: TransferID) -> Bool { proxy.cancelTransfer(id) }

    // MARK: bandwidth

    /// Reads the byte counters once a second, on the loop of the control thread.
    package func clearSession(of name: String?) -> ClearedSession? {
        let credentials = proxy.snapshot.configuration.credentials.map(\.name).filter { name == nil || $0 == name }
        let jars = proxy.shared.cookies.all.filter { name == nil || $0.name == name }
        if name != nil && credentials.isEmpty && jars.isEmpty { return nil }
        for credential in credentials { proxy.snapshot.secrets.renew(credential) }
        proxy.shared.credentialLedger.withLock { $0.clear(credentials) }
        return ClearedSession(
            credentials: credentials.count, cookieJars: jars.count, problems: jars.compactMap { $0.clear() })
    }

    package func issuePlaceholder(
        of credential: String, job: String?, lifetime: Seconds?
    ) throws(PlaceholderProblem) -> Placeholder {
        let rules = proxy.snapshot.configuration.credentials.filter { $0.means.placeholderPlaces != nil }
        guard let rule = rules.first(where: { $0.name == credential }), let places = rule.means.placeholderPlaces else {
            throw .unknownCredential(rules.map(\.name))
        }
        guard let secret = proxy.snapshot.secrets.secret(.token, of: credential) else { throw .noSecret }
        do throws(PlaceholderBook.Failure) {
            return try proxy.shared.placeholders.issue(
                credential, like: secret, prefix: places.prefix, job: job, lifetime: lifetime, now: now)
        } catch {
            throw .full
        }
    }

    package func revokePlaceholders(_ which: String?, job: String?) -> [Placeholder] {
        let shelf = proxy.shared.placeholders
        guard let which else { return job.map { shelf.revoke(.job($0), now: now) } ?? [] }
        let isCredential = proxy.snapshot.configuration.credentials.contains { $0.name == which }
        if isCredential { return shelf.revoke(.credential(which, job: job), now: now) }
        let byID = shelf.revoke(.id(which), now: now)
        return byID.isEmpty ? shelf.revoke(.text(Array(which.utf8)), now: now) : byID
    }

    package func placeholders() -> [Placeholder] { proxy.shared.placeholders.placeholders }

    package var now: Moment { .read() }

    package func startSampling(on loop: EventLoop) {
        let box = SamplerBox(loop: loop) { [unowned self] in sample() }
        sampler.withLock { $0 = box }
        box.start()
    }

    package func stopSampling() {
        let box = sampler.withLock { box in
            defer { box = nil }
            return box
        }
        box?.stop()
    }

    private func sample() {
        let counters = proxy.counters
        let toClients = counters.reduce(0) { $0 &+ $1[.bytesToClients] }
        let fromOrigins = counters.reduce(0) { $0 &+ $1[.bytesFromOrigins] }
        samples.withLock { $0.add(toClients: toClients, fromOrigins: fromOrigins) }
    }
}

/// A timer that fires every second. It is made, fires and ends on the control thread only.
private final class SamplerBox: @unchecked Sendable {
    private let loop: EventLoop
    private let action: () -> Void
    private var timer: Timer?

    init(loop: EventLoop, _ action: @escaping () -> Void) {
        self.loop = loop
        self.action = action
    }

    func start() {
        let timer = Timer { [unowned self] in
            action()
            if let timer = self.timer { loop.timers.schedule(timer, after: .seconds(1)) }
        }
        self.timer = timer
        action()
        loop.timers.schedule(timer, after: .seconds(1))
    }

    func stop() {
        if let timer { loop.timers.cancel(timer) }
        timer = nil
    }
}

extension Statistics.PACFile {
    init(path: String, _ tally: PACScript.Tally) {
        self.init(path: path)
        waiting = UInt64(clamping: tally.waiting)
        questions = tally.questions
        hits = tally.hits
        failures = tally.failures
        timeouts = tally.timeouts
        restarts = tally.restarts
        process = tally.process
        failure = tally.failure
        fetchedAt = tally.download?.fetchedAt?.secondsSinceEpoch
        fetchFailure = tally.download?.failure?.fault.text
        fetchFailingSince = tally.download?.failure?.since.secondsSinceEpoch
    }
}

extension Statistics.MemoryUse {
    init(_ tier: MemoryTierStatistics) {
        self.init()
        budget = UInt64(clamping: tier.budgetBytes)
        used = UInt64(clamping: tier.usedBytes)
        records = UInt64(clamping: tier.recordCount)
        evictions = UInt64(clamping: tier.evictions)
    }
}
