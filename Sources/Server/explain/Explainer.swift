import Access
import Caching
import EventLoop
import Forwarding
import Glibc
import Message
import Releases
import Routing
import Origins
import Settings
import Storage
import Transaction

extension Proxy {
    /// What Larder would do with a request, and why. Drives a `RequestMachine` through the same questions as an exchange does, with answers
    /// from the same functions, until the origin would be asked or the client answered.
    ///
    /// Sends nothing to an origin and changes nothing in the store, marks of use included. Names are resolved on a worker, because access
    /// may depend on addresses. Blocks the caller, for names at most `Explainer.lookUpTimeMax`, and while the disk is read.
    package func explain(_ question: ExplainQuestion) throws(ExplainError) -> Explanation {
        let (snapshot, zones) = snapshotAndZones
        let request = try explainedRequest(question, shared: shared, snapshot: snapshot, zones: zones)
        var explainer = Explainer(
            proxy: self, snapshot: snapshot, zones: zones, request: request, user: question.user)
        return explainer.run()
    }
}

/// Drives one request through its decisions, and notes each of them.
struct Explainer {
    static let lookUpTimeMax: Duration = .seconds(3)
    /// For a PAC file.
    static let scriptTimeMax: Duration = .seconds(5)

    let proxy: Proxy
    let snapshot: Snapshot
    private let zones: [Zone]
    let request: OwnedRequest
    /// The rules look at the server name of the tunnel.
    private var awaitsServerName = false
    /// The user that is assumed to be authenticated.
    let user: String?
    let moment = Moment.read()
    var now: WallTime { moment.wallTime }
    var sections: [Explanation.Section] = []
    var selected: StoredResponse?
    var newest: StoredRecord?
    var denial: Denial?
    /// Why the selected stored response must be validated.
    var validation: ValidateReason?
    private var addresses: Result<[SocketAddress], Refusal>?
    /// Whether the request would join a transfer that is under way.
    private var mayJoin = false

    init(proxy: Proxy, snapshot: Snapshot, zones: [Zone], request: OwnedRequest, user: String?) {
        self.proxy = proxy
        self.zones = zones
        self.snapshot = snapshot
        self.request = request
        self.user = user
    }

    mutating func run() -> Explanation {
        describeRequest()
        let (decision, reason) = decision()
        var explanation = Explanation(decision, reason: reason)
        explanation.sections = sections
        return explanation
    }

    mutating func note(_ section: String, _ name: String, _ value: String) {
        if sections.last?.name != section { sections.append(.init(section)) }
        sections[sections.count - 1].lines.append(.init(name, value))
    }

    // MARK: the machine's questions

    private mutating func decision() -> (Explanation.Decision, String) {
        guard snapshot.access.admits(client: request.client) else {
            note("access", "client", "not among those who may use this proxy (access.clients)")
            return (.refuse, "this address is not among the clients of this proxy")
        }
        switch LocalAnswer(
            request, hasDestination: request.destination != nil, instance: proxy.shared.instance,
            pages: snapshot.pages)
        {
        case .refusal(let refusal): return refused(refusal)
        case .response(let status, _, _): return (.local, "Larder itself answers this request, with status \(status)")
        case .page(let page): return (.local, "Larder itself answers this request, with status \(page.status)")
        case nil: break
        }
        if user != nil, snapshot.mayHaveIdentity, !snapshot.asksForCredentials { _ = identified() }
        var machine = RequestMachine(request.forMachine(snapshot, proxy.shared, now: moment.uptime))
        var action = machine.on(.head)
        while true {
            switch action {
            case .identify: action = machine.on(identified())
            case .decide(let resolved): action = machine.on(released(access(resolved: resolved)))
            case .lookUp: action = machine.on(lookUp())
            case .lead:
                mayJoin = true
                action = machine.on(.leading)
            case .join:
                mayJoin = true
                action = machine.on(.nobodyLeads)
            case .serve(let age, let ttl): return served(age: age, ttl: ttl)
            case .serveAndRevalidate:
                return (.stale, "the stored response is stale, and is served while the origin is asked")
            case .retrieve(let plan): return fetched(plan)
            case .tunnel where awaitsServerName:
                return (.tunnel, "the rules decide when the client has named a server in the tunnel (sni)")
            case .tunnel:
                return refusalToDial() ?? (
                    .tunnel, "Larder passes bytes in both directions without reading or storing them"
                )
            case .refuse(let refusal): return refused(refusal)
            case .follow, .servePublished, .serveStale, .fillHole:
                preconditionFailure("\(action) cannot follow: nothing is retrieved here")
            }
        }
    }

    private func identified() -> RequestMachine.Event {
        guard let user else { return .refused(.authenticationRequired) }
        request.identity = Identity(name: user, scheme: .basic)
        if snapshot.cacheRulesDependOnUser {
            request.applyRules(by: snapshot, zones: zones, proxy.shared, now: moment)
        }
        return .identified
    }

    private mutating func access(resolved: Bool) -> RequestMachine.Event {
        if !resolved, let refusal = limits() { return .refused(refusal) }
        if snapshot.access.isOpen && request.method != .connect {
            note("access", "rules", "no rules and no authentication: every request is allowed")
            return .verdict(examined(.allow(rule: nil)))
        }
        guard resolved else {
            return .verdict(noted(snapshot.access.decide(request.access, address: nil), address: nil))
        }
        switch knownAddresses() {
        case .failure(let refusal): return .refused(refusal)
        case .success(let addresses):
            var last = Verdict.deny(Denial(reason: .privateDestination, text: "the host has no address"))
            var judged: IPAddress?
            for address in addresses.compactMap(IPAddress.init) {
                judged = address
                last = snapshot.access.decide(request.access, address: address)
                if case .allow = last { break }
            }
            return .verdict(noted(last, address: judged))
        }
    }

    /// What becomes of a request that the rules allow, if it is not clear which release it asks for.
    private mutating func released(_ event: RequestMachine.Event) -> RequestMachine.Event {
        guard case .verdict(.allow) = event, request.isReleaseUnclear else { return event }
        note("min_age", "verdict", "refused: \(Withheld("the release", .unclear).text)")
        return .refused(.releaseUndated)
    }

    private mutating func noted(_ verdict: Verdict, address: IPAddress?) -> Verdict {
        let verdict = learning(verdict, address: address)
        switch verdict {
        case .allow(let rule):
            note("access", "verdict", "allowed by \(rule.map { "rule \($0)" } ?? "default")")
            describeRule(rule, address: address)
            return examined(verdict)
        case .deny(let denial):
            self.denial = denial
            note("access", "verdict", "denied by \(denial.rule.map { "rule \($0)" } ?? denial.reason.rawValue)")
            describeRule(denial.rule, address: address)
            note("access", "denial", "\(denial.exactReason.rawValue): \(denial.hint)")
            // Here rules for other users and clients may be named, unlike in the answer to a client.
            let shortfall = snapshot.access.shortfall(
                of: request.access, address: address, deniedBy: denial.rule, toldTo: .administrator)
            if let text = shortfall?.text, text != denial.shortfall?.text { note("access", "nearest rule", text) }
        case .needsAddress: note("access", "verdict", "depends on the address")
        case .needsServerName:
            awaitsServerName = true
            note("access", "verdict", "depends on the server name that the client sends in the tunnel")
        }
        return verdict
    }

    /// What a job that learns with `--allow` makes of a denial.
    private mutating func learning(_ verdict: Verdict, address: IPAddress?) -> Verdict {
        let active = proxy.shared.learning.active
        for job in active.jobs(of: request.access, at: moment) {
            note("access", "learning", "noted for the job \(job)")
        }
        guard case .deny(let denial) = verdict, let job = active.allowing(request.access, at: moment) else {
            return verdict
        }
        let lenient = snapshot.lenientAccess.decide(request.access, address: address)
        if case .deny = lenient { return verdict }
        note(
            "access", "let through",
            "for the job \(job.job): \(denial.rule.map { "rule \($0) denies it" } ?? "no rule allows it")")
        return lenient
    }

    /// What placeholders make of a request that the rules allow.
    private mutating func examined(_ verdict: Verdict) -> Verdict {
        guard let fault = request.placeholderFault else { return verdict }
        let denial = Denial(reason: .credential, text: fault.text)
        self.denial = denial
        note("access", "placeholder", fault.text)
        return .deny(denial)
    }

    private mutating func lookUp() -> RequestMachine.Event {
        describeFolding()
        describeOwner()
        let variants = search()
        describeStored(variants)
        guard let selected else {
            return newest == nil || request.hasIfMatch
                ? .stored(nil) : .variantMissing(hasValidators: variants.contains(where: request.mayValidate))
        }
        let handling = request.handling(of: selected, by: snapshot)
        let terms = request.terms(of: selected)
        describeFreshness(selected, handling.use)
        var reuse = reuse(of: terms, for: request.cache, use: handling.use, now: now)
        let time = MonotonicTime.read().sinceStart
        reuse = Caching.reuse(
            reuse, of: terms, for: request.cache, handling: handling, now: now,
            isPaused: selected.body.isComplete
                && proxy.shared.letsStandIn(for: request.origin.endpoint, handling, now: time))
        if request.hasIfMatch {
            reuse = Caching.reuse(
                reuse, ofMatch: request.fields, stored: selected.cached.eTag, mayForward: request.mayForward)
        }
        if case .validate(let why) = reuse {
            validation = why
            if !selected.cached.hasValidator { return .outdated(why) }
        }
        return .stored(reuse)
    }

    /// Searches as an exchange does, except that this thread may wait for the disk. Returns all variants that memory has in the end.
    ///
    /// The fleet is not asked, because what it has would be stored here. For the same reason nothing is compared with an index.
    private mutating func search() -> [StoredResponse] {
        var lookUp = LookUp()
        var action = lookUp.on(.begin(for: .client, backStore: request.tier.backStore != nil, fleet: false))
        var variants: [StoredResponse] = []
        while true {
            switch action {
            case .searchMemory:
                let records = request.zone.lookup(request.key, request.keyBytes)
                newest = records.first
                variants = records.compactMap { $0 as? StoredResponse }
                selected = variants.first(where: suits)
                action = lookUp.on(selected == nil ? .missing : .found(.unneeded))
            case .loadHeads: action = lookUp.on(loadHeads())
            case .report, .reportNone: return variants
            case .awaitIndex, .askFleet, .loadBody, .reportBusy:
                preconditionFailure("\(action) cannot follow: only heads are asked for")
            }
        }
    }

    /// A back store that is still loading may be so for minutes. Who asks for an explanation does not wait for that.
    private func loadHeads() -> LookUp.Event {
        switch request.tier.load(request.key, request.keyBytes, waits: true) {
        case .loaded: .headsLoaded
        case .nothing, .notReady, .wouldBlock: .noHeads
        }
    }

    /// Like `Exchange.suits`, except that a partial response never suits if the origin must not be asked.
    func suits(_ record: StoredResponse) -> Bool {
        record.suits(request) && (request.mayForward || record.body.state != .partial)
    }

    // MARK: results

    private mutating func served(age: Seconds, ttl: Seconds) -> (Explanation.Decision, String) {
        precondition(selected != nil, "what is served was selected")
        if let refusal = refusalByAge() { return refusal }
        describeRedirect()
        let arriving = selected?.body.state == .growing ? ", and is still arriving" : ""
        return ttl > .zero
            ? (.hit, "the stored response is fresh for \(ttl.count) more seconds\(arriving)")
            : (.hit, "the stored response has been stale for \(-ttl.count) seconds, which is accepted\(arriving)")
    }

    private mutating func fetched(_ plan: RetrievalPlan) -> (Explanation.Decision, String) {
        if let refusal = refusalToDial() { return refusal }
        if mayJoin, isUnderWay {
            return (.collapse, "another request is asking the origin already; this request waits for its response")
        }
        if plan.isConditional {
            return (.validate, "\(why(plan)): the origin is asked with the validators of the stored response")
        }
        return (.fetch, "\(why(plan)): the origin is asked")
    }

    /// Which node of the fleet owns the response.
    private mutating func describeOwner() {
        guard let desk = proxy.shared.fleet?.peers, request.isForFleet(snapshot) else { return }
        let owners = desk.owners(zone: request.zone.name, key: request.keyBytes)
        guard let owner = owners.first else { return }
        note("fleet", "owner", owner)
        if owners.count > 1 { note("fleet", "stand-in", owners[1]) }
    }

    private func why(_ plan: RetrievalPlan) -> String {
        switch validation {
        case .stale: return "the stored response is stale"
        case .outdated: return "the stored response was marked stale (by a soft purge, or by the response to a HEAD)"
        case .doubted:
            return
                """
                the stored response may be outdated: another client has changed the resource, or purges of the fleet may have been missed
                """
        case .policy: return "a rule requires that the stored response is validated every time"
        case .responseNoCache: return "the stored response has no-cache"
        case .requestNoCache: return "the request has no-cache"
        case .requestMaxAge: return "the stored response is older than the request accepts (max-age)"
        case .requestMinFresh: return "the stored response is not fresh for as long as the request requires (min-fresh)"
        case nil: break
        }
        switch plan.reason {
        case .uriMiss: return "nothing is stored under this key"
        case .varyMiss: return "no stored variant matches the request"
        case .method: return "requests with this method are not answered from the store"
        case .bypass: return "this request is not answered from the store"
        case .request: return "the stored response may not answer this request"
        case .miss, .stale, .partial: return "the stored response cannot be served"
        }
    }

    /// Whether a fetch for the URI is waiting for its response, which this request would follow.
    private var isUnderWay: Bool {
        proxy.transfers().contains {
            $0.id.kind == .fetch && $0.uri == request.uri && !$0.isStored && $0.received == 0 && $0.expected == nil
        }
    }

    private func refused(_ refusal: Refusal) -> (Explanation.Decision, String) {
        (.refuse, "\(refusal.status) \(refusal.name): \(denial?.text ?? "\(refusal.explanation)")")
    }

    /// Asks for each address whether it may be dialled, as `LinkOpener` does. Returns nil if at least one may be.
    private mutating func refusalToDial() -> (Explanation.Decision, String)? {
        guard let plan = routes() else { return refused(.routeUnknown) }
        describeProxyCredential(of: plan)
        let terms = snapshot.origins.terms(for: request.access)
        if let rule = terms.rule {
            note("origin", "terms", "origins[\(rule)]: \(terms)")
            if request.origin.scheme == .https, let tls = snapshot.configuration.origins[rule - 1].tls {
                note("origin", "tls", "origins[\(rule)]: \(tls)")
            }
        }
        if let cookies = request.cookies {
            let count = cookies.jar.count(for: cookies.origin, now: now)
            note("origin", "cookies", "jar \(cookies.use.jar), \(count) cookie" + (count == 1 ? "" : "s"))
        }
        let shares = snapshot.bandwidth.shares(for: request.access, terms)
        if !shares.isEmpty {
            note("origin", "bandwidth", shares.map { "\($0.bound) \(renderRate($0.rate))" }.joined(separator: ", "))
        }
        if case .direct = plan.current,
            let outage = proxy.shared.outage(
                of: request.origin, now: MonotonicTime.read().sinceStart, snapshot)
        {
            note("origin", "state", outage.text)
            if outage.isPaused, !plan.hasChoice { return refused(.originUnavailable) }
        }
        if case .direct = plan.current,
            let silence = proxy.shared.silence(about: request.host, now: MonotonicTime.read())
        {
            note("origin", "name", silence.text)
        }
        if request.boundIdentity != nil {
            note(
                "origin", "log-in",
                "it authenticates the connection, which is pinned to this client connection: nothing is stored or served from the store"
            )
        }
        if let credential = request.credential {
            let rule = credential.rule
            let schemes = rule.means.schemeNames.joined(separator: " or ")
            let time =
                rule.means.logIn(at: .origin(request.origin)).isUnasked
                ? "with every request" : "once the origin has asked for it"
            let key = CredentialLedger.Key(credential: rule.name, at: .origin(request.origin))
            guard rule.means.placeholderPlaces == nil else {
                let id = request.placeholderUse?.placeholder.id ?? ""
                note("origin", "credential", "\(rule.name), in place of the placeholder \(id)")
                return refusalToReach(plan)
            }
            let refusals = proxy.shared.credentialLedger.withLock { $0.entry(of: key)?.refusals ?? 0 }
            note(
                "origin", "credential",
                "\(rule.name) (\(schemes)), sent \(time)"
                    + Self.extent(of: rule.means) + extentOfBody(rule.means)
                    + (refusals > 0 ? "; refused \(refusals) times" : ""))
        } else if let withheld = request.withheldCredential(snapshot) {
            note("origin", "credential", "\(withheld.rule.name), not sent, \(request.withheldReason)")
        }
        return refusalToReach(plan)
    }

    /// The routes of the request. Asks a PAC file if it has to. Nil: the request is refused.
    private mutating func routes() -> RoutePlan? {
        let plan: RoutePlan?
        let rule: Int?
        switch snapshot.choice(for: request) {
        case .plan(let found): (plan, rule) = (found, found.rule)
        case .script(let choice):
            let script = snapshot.script(from: choice.source)
            let verdict = script.verdict(on: choice.origin, within: Self.scriptTimeMax)
            (plan, rule) = (choice.plan(by: verdict), choice.rule.number)
            note("origin", "pac file", "\(choice.source): \(Self.text(verdict))")
            if let download = script.tally.download { note("origin", "pac download", Self.text(download)) }
        }
        let prefix = rule.map { "routes[\($0)]: " } ?? ""
        note("origin", "route", prefix + (plan?.routes.map { "\($0)" }.joined(separator: ", then ") ?? "none"))
        return plan
    }

    private static func text(_ download: PACDownload) -> String {
        let success = download.fetchedAt.map { "fetched \(utc($0))" } ?? "never fetched"
        guard let failure = download.failure else { return success }
        return "\(success); failing since \(utc(failure.since)): \(failure.fault.text)"
    }

    private static func text(_ verdict: PACVerdict) -> String {
        switch verdict {
        case .success(let routes): routes.map { "\($0)" }.joined(separator: ", then ")
        case .failure(let failure): failure.text
        }
    }

    /// Notes what the next proxies of the routes get, and which of them refuse it.
    private mutating func describeProxyCredential(of plan: RoutePlan) {
        let proxies = plan.routes.compactMap { if case .proxy(let proxy) = $0 { proxy } else { nil } }
        let proven = proxies.filter { $0.credential != nil }
        guard let name = proven.first?.credential, let rule = snapshot.credentials[name]?.rule else { return }
        // A PAC file may name proxies that do not get it.
        let scope = proven.count == proxies.count ? "" : " for " + proven.map { "\($0)" }.joined(separator: ", ")
        var refusals: [String] = []
        for proxy in proven {
            let key = CredentialLedger.Key(credential: name, at: proxy.place)
            let entry = self.proxy.shared.credentialLedger.withLock { $0.entry(of: key) }
            if let entry { refusals.append("; refused \(entry.refusals) times by \(proxy)") }
        }
        let schemes = rule.means.schemeNames.joined(separator: " or ")
        note(
            "origin", "credential of the route",
            "\(name) (\(schemes))" + Self.extent(of: rule.means) + scope + refusals.joined())
    }

    /// What a credential does besides going with requests. Empty if nothing.
    private static func extent(of means: CredentialMeans) -> String {
        let schemes = means.challengeSchemes.filter(\.isOfConnection).sorted().map { "\($0)" }
        return schemes.isEmpty ? "" : "; with \(schemes.joined(separator: " and ")) it logs in connections"
    }

    private func extentOfBody(_ means: CredentialMeans) -> String {
        guard request.hasBody else { return "" }
        let coverage = means.bodyCoverage(
            type: request.fields.first(.contentType), isEncoded: request.fields.contains(.contentEncoding),
            isSecure: request.origin.scheme == .https)
        return switch coverage {
        case .nothing: ""
        case .whole: "; it covers the body, which is kept up to \(snapshot.limits.keptBodyBytesMax) bytes"
        case .unreadable: "; it cannot cover this form, which has a content coding"
        }
    }

    private mutating func refusalToReach(_ plan: RoutePlan) -> (Explanation.Decision, String)? {
        let goal = OpeningGoal(request.origin.endpoint, for: .tunnel, over: plan.current)
        guard goal.proxy == nil else { return refusalBehindProxy(goal) }
        guard case .success(let addresses) = knownAddresses() else {
            guard case .failure(let refusal) = knownAddresses() else { return nil }
            return refused(refusal)
        }
        var first: Denial?
        var isOpen = false
        for address in addresses.compactMap(IPAddress.init) {
            let objection = objection(to: address, over: goal.route)
            note("origin", "\(address)", objection?.text ?? "may be connected to")
            first = first ?? objection
            isOpen = isOpen || objection == nil
        }
        guard !isOpen else { return nil }
        guard let first else { return refused(.nameNotFound) }
        denial = first
        return refused(Refusal(first))
    }

    /// The proxy resolves names, so only what needs no look-up is judged.
    private mutating func refusalBehindProxy(_ goal: OpeningGoal) -> (Explanation.Decision, String)? {
        for address in goal.addressesBehindProxy {
            let objection = objection(to: address, over: goal.route)
            note("origin", "\(address)", objection?.text ?? "may be connected to")
            guard let objection else { continue }
            denial = objection
            return refused(Refusal(objection))
        }
        return nil
    }

    private func objection(to address: IPAddress, over route: Route) -> Denial? {
        proxy.shared.objection(
            to: request.access, address: address, port: request.access.port, of: .destination, over: route, snapshot,
            learning: proxy.shared.learning.active, now: moment)
    }

    private mutating func knownAddresses() -> Result<[SocketAddress], Refusal> {
        if let addresses { return addresses }
        let found = proxy.addresses(of: request.host, timeout: Self.lookUpTimeMax)
        addresses = found
        return found
    }
}
