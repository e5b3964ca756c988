import Credentials
import EventLoop
import Message
import Server

/// Answers one admin request: which paths there are, their methods, who can use them, and what they answer.
///
/// It knows no sockets: the same function answers over TCP, over the Unix socket, and in tests.
package struct AdminRouter: Sendable {
    let proxy: any AdministeredProxy
    let authority: AdminAuthority
    /// For requests whose work takes long.
    private let calls = CallPool(name: "admin", threadsMax: 1, waitingMax: 16)

    package init(proxy: any AdministeredProxy, token: [UInt8]?) {
        self.proxy = proxy
        authority = AdminAuthority(token: token)
    }

    /// One path of the admin server.
    enum Route: String, CaseIterable {
        case dashboard = "/"
        case resetBudgets = "/budgets/reset"
        case health = "/health"
        case credentials = "/credentials"
        case issueCredential = "/credentials/issue"
        case revokeCredential = "/credentials/revoke"
        case explain = "/explain"
        case fleet = "/fleet"
        case learning = "/learn"
        case forgetJournal = "/learn/forget"
        case journal = "/learn/show"
        case startLearning = "/learn/start"
        case stopLearning = "/learn/stop"
        case metrics = "/metrics"
        case objects = "/objects"
        case purge = "/purge"
        case clearSession = "/session/clear"
        case stats = "/stats"
        case transfers = "/transfers"
        case cancelTransfer = "/transfers/cancel"

        var methods: [String] {
            switch self {
            case .resetBudgets, .explain, .purge, .clearSession, .cancelTransfer, .issueCredential, .revokeCredential,
                .startLearning, .stopLearning, .forgetJournal:
                ["POST"]
            case .dashboard, .fleet, .health, .metrics, .objects, .stats, .transfers, .credentials, .learning,
                .journal:
                ["GET", "HEAD"]
            }
        }

        var meaning: String {
            switch self {
            case .dashboard: "the dashboard, for people"
            case .fleet: "all nodes of the fleet, for people"
            case .resetBudgets: "let budgets of a limit begin anew"
            case .health: "200 ok, 200 degraded while a disk is off, or 503 while draining"
            case .metrics: "all numbers, for Prometheus; /metrics?fleet has those of all nodes of a fleet"
            case .credentials: "the placeholders that clients hold, without their texts"
            case .issueCredential: "make a placeholder for a credential"
            case .revokeCredential: "end placeholders"
            case .explain: "what would become of a request, and why"
            case .learning: "the jobs whose requests have been noted"
            case .forgetJournal: "forget what is known of a job"
            case .journal: "the smallest rules that a job needed"
            case .startLearning: "note what a job requests"
            case .stopLearning: "end the run of a job"
            case .objects: "what is stored, as JSON lines"
            case .purge: "remove stored responses, or mark them stale"
            case .clearSession: "forget what is known about log-ins at origins, and their cookies"
            case .stats: "all numbers, as JSON; /stats?fleet has those of all nodes of a fleet"
            case .transfers: "the fetches and tunnels under way, as JSON"
            case .cancelTransfer: "end a fetch or a tunnel"
            }
        }
    }

    package func respond(to request: AdminRequest) -> AdminResponse {
        var response = answer(request)
        response.fields += Self.protections
        return response
    }

    /// Whether the answer may take seconds or minutes to be found: `respond` on a thread of its own then, so that others are answered meanwhile.
    func takesLong(_ request: AdminRequest) -> Bool { request.path == Route.purge.rawValue && request.method == "POST" }

    /// Answers on another thread, after earlier requests of this kind.
    ///
    /// - Parameter then: called once, on any thread.
    func respond(to request: AdminRequest, then: @escaping @Sendable (AdminResponse) -> Void) {
        let isTaken = calls.submit(key: "") { then(respond(to: request)) }
        if !isTaken { then(.problem(503, "too many requests of this kind wait: try again later")) }
    }

    private func answer(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfHost(request) { return refusal }
        guard let route = Route(rawValue: request.path) else { return Self.notFound }
        guard route.methods.contains(request.method) else {
            let allowed = route.methods.joined(separator: ", ")
            return .problem(405, "\(route.rawValue) takes \(allowed)", fields: [.init("Allow", allowed)])
        }
        switch route {
        case .dashboard: return page(dashboardPage)
        case .fleet: return page(fleetPage)
        case .health: return health
        case .metrics:
            return numbers(request, { Self.metrics($0.prometheus()) }, ofFleet: { Self.metrics($0.prometheus()) })
        case .credentials: return placeholders(request)
        case .resetBudgets: return resetBudgets(request)
        case .issueCredential: return issue(request)
        case .revokeCredential: return revoke(request)
        case .explain: return explain(request)
        case .learning: return journals(request)
        case .forgetJournal: return forgetJournal(request)
        case .journal: return journal(request)
        case .startLearning: return startLearning(request)
        case .stopLearning: return stopLearning(request)
        case .objects: return objects(request)
        case .purge: return purge(request)
        case .clearSession: return clearSession(request)
        case .stats: return numbers(request, { .json($0.json()) }, ofFleet: { .json($0.json()) })
        case .transfers: return transfers(request)
        case .cancelTransfer: return cancelTransfer(request)
        }
    }

    /// The status stays 200 while a disk tier is off: clients are served all the same, so a load balancer must not send them elsewhere.
    private var health: AdminResponse {
        if proxy.isDraining { return .text("draining", status: 503) }
        let lines = proxy.disksOff.map { "degraded: the disk of zone \($0.zone) is off: \($0.reason)" }
        return .text(lines.isEmpty ? "ok" : lines.joined(separator: "\n"))
    }

    private func purge(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        do throws(SelectionError) {
            let purge = try purgeRequest(body: request.body, contentType: request.contentType)
            let result = proxy.purge(purge)
            return .json(result.json(of: purge), status: result.isDurable ? 200 : 500)
        } catch {
            return .problem(400, error.message)
        }
    }

    /// The body is the name of a credential or a cookie jar, or empty for all.
    private func clearSession(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        let name = request.body.isEmpty ? nil : String(decoding: request.body, as: UTF8.self)
        guard let cleared = proxy.clearSession(of: name) else {
            return .problem(400, "there is no credential and no cookie jar \(name ?? "")")
        }
        guard cleared.problems.isEmpty else {
            return .problem(
                500, "the cookies are forgotten until the next start: " + cleared.problems.joined(separator: "; "))
        }
        var writer = JSONWriter()
        writer.object {
            $0.member("credentials", cleared.credentials)
            $0.member("cookie_jars", cleared.cookieJars)
        }
        return .json(writer.bytes)
    }

    private func placeholders(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        return .json(Placeholder.json(proxy.placeholders(), now: proxy.now))
    }

    private func issue(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        let wanted: IssueRequest
        do throws(SelectionError) {
            wanted = try IssueRequest(request.body)
        } catch {
            return .problem(400, error.message)
        }
        do throws(PlaceholderProblem) {
            let placeholder = try proxy.issuePlaceholder(
                of: wanted.credential, job: wanted.job, lifetime: wanted.lifetime)
            return .json(placeholder.issuedJSON(now: proxy.now))
        } catch {
            return .problem(error == .full ? 503 : 400, error.text(of: wanted.credential))
        }
    }

    private func revoke(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        do throws(SelectionError) {
            let wanted = try RevokeRequest(request.body)
            return .json(Placeholder.json(proxy.revokePlaceholders(wanted.which, job: wanted.job), now: proxy.now))
        } catch {
            return .problem(400, error.message)
        }
    }

    /// Everybody who reaches the admin server sees what is under way, but only who may change something sees secrets in URLs.
    private func transfers(_ request: AdminRequest) -> AdminResponse {
        .json(
            TransferReport.json(proxy.transfers(), showsSecrets: authority.refusalOfChange(request) == nil))
    }

    /// The body is the `id` of a transfer.
    private func cancelTransfer(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        let text = String(decoding: request.body, as: UTF8.self)
        guard let id = TransferID(text) else {
            return .problem(400, "the body is the id of a transfer, such as f0-12-3; /transfers has them")
        }
        guard proxy.cancelTransfer(id) else { return .problem(404, "the transfer \(id) is over") }
        var writer = JSONWriter()
        writer.object { $0.member("cancelled", "\(id)") }
        return .json(writer.bytes)
    }

    /// URLs can contain secrets of clients, so only clients that can change something see them.
    private func objects(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        do throws(SelectionError) {
            let nextPage = proxy.objects(try selection(ofQuery: request.query))
            var response = AdminResponse(status: 200, contentType: "application/x-ndjson", body: [])
            response.pieces = objectLines(nextPage)
            return response
        } catch {
            return .problem(400, error.message)
        }
    }

    /// The answer reveals rules and stored responses, so only clients that can change something get it.
    private func explain(_ request: AdminRequest) -> AdminResponse {
        if let refusal = authority.refusalOfChange(request) { return refusal }
        do throws(ExplainError) {
            return .json(try proxy.explain(try explainQuestion(body: request.body)).json)
        } catch {
            return .problem(400, error.message)
        }
    }

    private func page(_ text: (_ nonce: String) -> String) -> AdminResponse {
        let nonce = randomNonce()
        return AdminResponse(
            status: 200, contentType: "text/html; charset=utf-8",
            fields: [.init("Content-Security-Policy", dashboardSecurityPolicy(nonce: nonce))],
            body: Array(text(nonce).utf8))
    }

    /// The numbers of this node, or with the query `fleet` those of all nodes.
    private func numbers(
        _ request: AdminRequest, _ own: (Statistics) -> AdminResponse, ofFleet: (FleetView) -> AdminResponse
    ) -> AdminResponse {
        // Prometheus writes parameters with `=`.
        guard ["fleet", "fleet="].contains(request.query) else { return own(proxy.statistics()) }
        guard let view = proxy.fleetView() else {
            return .problem(404, "this Larder is in no fleet: its configuration has no fleet.redis")
        }
        return ofFleet(view)
    }

    private static func metrics(_ body: [UInt8]) -> AdminResponse {
        AdminResponse(status: 200, contentType: "text/plain; version=0.0.4; charset=utf-8", body: body)
    }

    /// 404 with a list of the paths.
    private static let notFound: AdminResponse = {
        let width = 2 + (Route.allCases.map(\.rawValue.utf8.count).max() ?? 0)
        let lines = Route.allCases.map { route in
            let method = route.methods[0]
            let path = route.rawValue + String(repeating: " ", count: width - route.rawValue.utf8.count)
            return "\(method)\(method.utf8.count == 3 ? "  " : " ")\(path)\(route.meaning)"
        }
        return .text((["There is no such page. There are:"] + lines).joined(separator: "\n"), status: 404)
    }()

    /// Fields of every answer: browsers must not store it, show it in a frame, or guess its type.
    private static let protections: [AdminResponse.Field] = [
        .init("Cache-Control", "no-store"), .init("X-Content-Type-Options", "nosniff"),
        .init("X-Frame-Options", "DENY"), .init("Referrer-Policy", "no-referrer"),
        .init("Cross-Origin-Resource-Policy", "same-origin"),
    ]
}
